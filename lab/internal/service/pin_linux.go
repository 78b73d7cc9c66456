// Pins a service to cores. On one machine, a set of cores represents a node. A
// service pinned to core 0 gains from a second service only if that has its own
// core, as a second node would.

package service

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

func pin(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		if cpu < 0 || cpu >= 64*len(set) {
			return fmt.Errorf("--cpus has no core %d", cpu)
		}
		set.Set(cpu)
	}
	// The Go runtime already has threads, and later threads inherit from their
	// creator. A second pass therefore finds threads created during the first.
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("--cpus needs /proc: %w", err)
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				continue
			}
			if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("cannot run on the cores %v of this machine: %w", cpus, err)
			}
		}
	}
	runtime.GOMAXPROCS(set.Count())
	return nil
}
