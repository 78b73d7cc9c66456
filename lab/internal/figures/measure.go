// Starts the variants of a group and loads them in turn.

package figures

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"plimsoll.dev/lab/internal/rig"
)

// Measure measures a group and returns the samples by round and variant. All
// variants run all the time, and only one of them is under load. If a lock file
// is given, each run of wrk locks it, so that two measurements on one machine do
// not disturb each other.
func Measure(ctx context.Context, lab *rig.Rig, group Group, rounds int, lockFile string, progress io.Writer) (samples [][]Sample, err error) {
	urls := make([]string, len(group.Variants))
	names := make([]string, len(group.Variants))
	defer func() {
		for _, name := range names {
			if name != "" {
				err = errors.Join(err, lab.Down(name))
			}
		}
	}()
	for i, v := range group.Variants {
		name := fmt.Sprintf("figures-%d", i)
		addresses, err := lab.UpAs(ctx, name, v.Case, v.Options)
		if err != nil {
			return nil, err
		}
		names[i] = name
		urls[i] = addresses[v.Address] + v.Path
	}
	for round := range rounds {
		row := make([]Sample, len(group.Variants))
		for i, v := range group.Variants {
			if row[i], err = one(ctx, lab, names[i], group.Load, urls[i], lockFile); err != nil {
				return nil, err
			}
			fmt.Fprintf(progress, "figures: round %d, %s, %s: %.0f QPS\n", round+1, group.Name, v.Name, row[i].QPS())
		}
		samples = append(samples, row)
	}
	return samples, nil
}

// one runs wrk once on one variant and returns the sample.
func one(ctx context.Context, lab *rig.Rig, name string, load Load, url, lockFile string) (Sample, error) {
	if lockFile != "" {
		file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return Sample{}, err
		}
		defer file.Close()
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			return Sample{}, err
		}
	}
	defer emptyLogs(lab, name)
	before, err := lab.CPU(name)
	if err != nil {
		return Sample{}, err
	}
	result, err := Run(ctx, load, url)
	if err != nil {
		return Sample{}, err
	}
	after, err := lab.CPU(name)
	return Sample{result, after - before}, err
}

// emptyLogs truncates the logs of a case, so that services under load do not fill
// the disk.
func emptyLogs(lab *rig.Rig, name string) {
	for _, p := range lab.Status().Cases[name].Processes {
		if strings.HasPrefix(p.Log, filepath.Join(lab.Cache, "logs")) {
			_ = os.Truncate(p.Log, 0) // a missing log needs no truncation
		}
	}
	_ = os.Truncate(filepath.Join(lab.Cache, "logs", "cards-access.log"), 0)
}
