// Command lab starts and ends the cases (groups of example servers) of the lab.
// The scripts `lab/up`, `lab/down` and `lab/status` build this command and the
// services, and run the command.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"plimsoll.dev/lab/internal/rig"
)

const usage = `lab: the sample services, started with all that they need.

Usage:
  lab up [flags] CASE|all [-- SERVICE FLAGS]   start a case; its addresses come out as JSON
  lab down [flags] CASE|all                    end a case, and the databases no other needs
  lab status [flags]                           show what runs
  lab setup [flags]                            install the programs that any case needs

Cases:
%s
Flags:
%s`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// said contains the parsed flags of the command line.
type said struct {
	cache, home, bin, as  string
	minFreeMiB            uint64
	limitRate, limitBurst int
	purge, json           bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s said
	fs := pflag.NewFlagSet("lab", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	fs.StringVar(&s.cache, "cache", "", "folder for everything the lab keeps (default: plimsoll-lab in the user's cache)")
	fs.StringVar(&s.home, "home", ".", "the lab's folder of sources")
	fs.StringVar(&s.bin, "bin", "", "folder of the lab's built programs (default: that of this one)")
	fs.StringVar(&s.as, "as", "", "up: name of this copy of the case, so that copies with different flags run side by side")
	fs.Uint64Var(&s.minFreeMiB, "min-free", 0, "MiB of free disk that a new data folder needs (default 1024)")
	fs.IntVar(&s.limitRate, "limit-rate", 0, "up cards: requests a second that the proxy lets each client make (default 1000)")
	fs.IntVar(&s.limitBurst, "limit-burst", 0, "up cards: requests beyond the rate that pass at once (default 200)")
	fs.BoolVar(&s.purge, "purge", false, "down all: delete the data and the logs, too")
	fs.BoolVar(&s.json, "json", false, "status: as JSON")

	complain := func(status int, err error) int {
		fmt.Fprintf(stderr, "lab: %s\n", err)
		return status
	}
	if err := fs.Parse(args); errors.Is(err, pflag.ErrHelp) {
		cases := ""
		for _, c := range rig.Cases {
			cases += fmt.Sprintf("  %-13s %s\n", c.Name, c.About)
		}
		fmt.Fprintf(stdout, usage, cases, fs.FlagUsages())
		return 0
	} else if err != nil {
		return complain(2, fmt.Errorf("%w (see --help)", err))
	}
	words, serviceFlags := fs.Args(), []string(nil)
	if dash := fs.ArgsLenAtDash(); dash >= 0 {
		words, serviceFlags = fs.Args()[:dash], fs.Args()[dash:]
	}
	if err := checkWords(words, serviceFlags, s); err != nil {
		return complain(2, err)
	}
	if err := s.defaults(); err != nil {
		return complain(1, err)
	}
	if words[0] == "setup" {
		if err := rig.Require(ctx, rig.Programs()...); err != nil {
			return complain(1, err)
		}
		return 0
	}

	lab := &rig.Rig{Cache: s.cache, Home: s.home, Bin: s.bin, MinFree: s.minFreeMiB << 20, Progress: stderr}
	if err := lab.Open(); err != nil {
		return complain(1, err)
	}
	defer lab.Close()
	var err error
	switch words[0] {
	case "up":
		err = up(ctx, lab, words[1], s.as, rig.Options{Flags: serviceFlags, LimitRate: s.limitRate, LimitBurst: s.limitBurst}, stdout)
	case "down":
		if err = lab.Down(words[1]); err == nil && s.purge {
			err = lab.Purge()
		}
	case "status":
		err = status(lab.Status(), s.json, stdout)
	}
	if ctx.Err() != nil && err != nil {
		return complain(1, errors.New("interrupted; what had been started for it is ended"))
	}
	if err != nil {
		return complain(1, err)
	}
	return 0
}

// nameForm is the form of a copy's name, which is part of the names of its logs.
var nameForm = regexp.MustCompile(`^[a-z0-9-]{0,32}$`)

// checkWords returns an error if the words and flags of a command line do not
// belong together.
func checkWords(words, serviceFlags []string, s said) error {
	wants := map[string]int{"up": 2, "down": 2, "status": 1, "setup": 1}
	if len(words) == 0 || wants[words[0]] == 0 {
		return errors.New("say up, down, status or setup (see --help)")
	}
	if len(words) != wants[words[0]] {
		if wants[words[0]] == 2 {
			return fmt.Errorf("%s wants one case, or all (see --help)", words[0])
		}
		return fmt.Errorf("%s wants no more words (see --help)", words[0])
	}
	switch command := words[0]; {
	case len(serviceFlags) > 0 && (command != "up" || words[1] == "all"):
		return errors.New("flags for a service go with `up` of one case")
	case (s.limitRate != 0 || s.limitBurst != 0) && (command != "up" || words[1] != "cards"):
		return errors.New("--limit-rate and --limit-burst go with `up cards`")
	case s.limitRate < 0 || s.limitBurst < 0:
		return errors.New("--limit-rate and --limit-burst are above 0")
	case s.as != "" && (command != "up" || words[1] == "all"):
		return errors.New("--as goes with `up` of one case")
	case !nameForm.MatchString(s.as):
		return fmt.Errorf("--as %q: a name has at most 32 of a-z, 0-9 and '-'", s.as)
	case s.purge && (command != "down" || words[1] != "all"):
		return errors.New("--purge goes with `down all`")
	}
	return nil
}

func (s *said) defaults() (err error) {
	if s.cache == "" {
		if s.cache, err = rig.DefaultCache(); err != nil {
			return err
		}
	}
	if s.bin == "" {
		own, err := os.Executable()
		if err != nil {
			return fmt.Errorf("--bin is needed: %w", err)
		}
		s.bin = filepath.Dir(own)
	}
	s.home, err = filepath.Abs(s.home)
	return err
}

// up starts one case or all cases, and prints one line of JSON for each.
func up(ctx context.Context, lab *rig.Rig, name, as string, o rig.Options, stdout io.Writer) error {
	names := []string{name}
	if name == "all" {
		names = nil
		for _, c := range rig.Cases {
			names = append(names, c.Name)
		}
	}
	for _, name := range names {
		addresses, err := lab.UpAs(ctx, cmp.Or(as, name), name, o)
		if err != nil {
			return err
		}
		line := struct {
			Case      string            `json:"case"`
			Addresses map[string]string `json:"addresses"`
		}{name, addresses}
		if err := json.NewEncoder(stdout).Encode(line); err != nil {
			return err
		}
	}
	return nil
}

func status(state *rig.State, asJSON bool, stdout io.Writer) error {
	if asJSON {
		return json.NewEncoder(stdout).Encode(state)
	}
	if len(state.Cases)+len(state.Backing) == 0 {
		_, err := fmt.Fprintln(stdout, "nothing runs")
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CASE\tPROCESS\tPID\tADDRESS\tLOG")
	for _, group := range []map[string]*rig.Running{state.Cases, state.Backing} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			running := group[name]
			for _, p := range running.Processes {
				address := running.Addresses[p.Name]
				if p.Name == "round-robin" {
					address = running.Addresses[name]
				}
				fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", name, p.Name, p.PID, address, p.Log)
			}
		}
	}
	return table.Flush()
}
