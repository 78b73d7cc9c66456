// Command figures measures the figures of lab/README.md again with wrk, and
// prints them as Markdown tables. `make -C lab figures` runs this command.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"plimsoll.dev/lab/internal/figures"
	"plimsoll.dev/lab/internal/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	seconds := pflag.Int("seconds", 4, "length of one run of wrk")
	rounds := pflag.Int("rounds", 3, "how often each variant is loaded, in turn with the others")
	only := pflag.String("only", "", "measure only the groups whose name begins so")
	lock := pflag.String("lock", "", "file to lock during each run, for several measurements on one machine")
	cache := pflag.String("cache", "", "folder for everything the lab keeps (default: plimsoll-lab in the user's cache)")
	home := pflag.String("home", ".", "the lab's folder of sources")
	pflag.Parse()
	if *seconds < 1 || *seconds > 60 || *rounds < 1 || *rounds > 20 {
		return fmt.Errorf("--seconds is 1 to 60 and --rounds 1 to 20")
	}
	plan := slices.DeleteFunc(figures.Plan(*seconds), func(g figures.Group) bool { return !strings.HasPrefix(g.Name, *only) })
	if len(plan) == 0 {
		return fmt.Errorf("no group's name begins with %q", *only)
	}
	if err := rig.Require(ctx, "wrk"); err != nil {
		return err
	}
	lab := &rig.Rig{Cache: *cache, Progress: os.Stderr}
	var err error
	if lab.Cache == "" {
		if lab.Cache, err = rig.DefaultCache(); err != nil {
			return err
		}
	}
	if lab.Home, err = filepath.Abs(*home); err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	lab.Bin = filepath.Dir(own)
	if err := lab.Open(); err != nil {
		return err
	}
	defer lab.Close()
	for _, group := range plan {
		samples, err := figures.Measure(ctx, lab, group, *rounds, *lock, os.Stderr)
		if err != nil {
			return err
		}
		fmt.Print(figures.Markdown(group, figures.Rows(group, samples)))
	}
	return nil
}
