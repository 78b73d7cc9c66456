// Reads the CPU time that the processes of a case have used.

package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc's times: USER_HZ, which is 100 on every Linux.
const tick = 10 * time.Millisecond

// CPU returns the CPU time that a case and the databases it needs have used so
// far, including their child processes.
func (r *Rig) CPU(name string) (time.Duration, error) {
	running := r.state.Cases[name]
	if running == nil {
		return 0, fmt.Errorf("%s does not run", name)
	}
	roots := map[int]bool{}
	for _, p := range running.Processes {
		roots[p.PID] = true
	}
	for _, need := range running.Needs {
		for _, p := range r.state.Backing[need].Processes {
			roots[p.PID] = true
		}
	}
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil { // the constant pattern is always valid
		panic(err)
	}
	parents, times := map[int]int{}, map[int]time.Duration{}
	for _, path := range entries {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has just ended
		}
		parents[pid], times[pid] = parseTimes(string(text))
	}
	var total time.Duration
	for pid, spent := range times {
		for up := pid; up > 1; up = parents[up] {
			if roots[up] {
				total += spent
				break
			}
		}
	}
	return total, nil
}

// parseTimes parses a line of /proc/PID/stat. Returns the parent, and the sum of
// user and system time.
func parseTimes(line string) (parent int, spent time.Duration) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 13 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return parent, time.Duration(user+system) * tick
}
