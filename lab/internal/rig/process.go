// Identifies processes reliably, checks whether they still run, and ends them.

package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process identifies a process by its id and start time. Ids are reused, but not
// with the same start time in the same boot.
type Process struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Start uint64 `json:"start_ticks"`
	Boot  string `json:"boot"`
	Log   string `json:"log,omitempty"`
}

// identify returns the process that has this id now.
func identify(name string, pid int) (Process, error) {
	_, start, err := readStat(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{Name: name, PID: pid, Start: start, Boot: bootID()}, nil
}

// Alive returns whether the process still runs. A zombie does not count.
func (p Process) Alive() bool {
	state, start, err := readStat(p.PID)
	return err == nil && state != 'Z' && state != 'X' && start == p.Start && p.Boot == bootID()
}

// Stop ends the process with SIGTERM, and with SIGKILL if it has not ended in time.
func (p Process) Stop(patience time.Duration) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !p.Alive() {
			return nil
		}
		if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("%s (process %d) cannot be ended: %w", p.Name, p.PID, err)
		}
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if !p.Alive() {
				return nil
			}
		}
	}
	return fmt.Errorf("%s (process %d) does not end", p.Name, p.PID)
}

// readStat reads a process's state and start time from /proc.
func readStat(pid int) (state byte, start uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name is in brackets and may contain any characters, also brackets.
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return 0, 0, fmt.Errorf("process %d: not understood: %q", pid, text)
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("process %d: not understood: %q", pid, text)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0][0], start, err
}

func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// cacheVariable is an environment variable of all started processes. By this
// variable the lab recognises processes that a failed start left behind.
const cacheVariable = "PLIMSOLL_LAB_CACHE"

// orphans returns the processes of this cache that are not recorded. Such a
// process was started just before its `up` was killed.
func orphans(cache string, known []Process) []Process {
	wanted := []byte(cacheVariable + "=" + cache)
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil { // the constant pattern is always valid
		panic(err)
	}
	var found []Process
	for _, path := range entries {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(path) // fails for processes of other users
		if err != nil {
			continue
		}
		title, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		// nginx overwrites its environment with its title, which contains its folder.
		ours := hasVariable(environ, wanted) || bytes.Contains(title, []byte("nginx: master process")) && bytes.Contains(title, []byte(cache+"/"))
		if !ours {
			continue
		}
		p, err := identify("left over", pid)
		if err == nil && !isKnown(p, known) {
			found = append(found, p)
		}
	}
	return found
}

func hasVariable(environ, wanted []byte) bool {
	for _, variable := range bytes.Split(environ, []byte{0}) {
		if bytes.Equal(variable, wanted) {
			return true
		}
	}
	return false
}

// isKnown returns whether a process is known or a descendant of a known process,
// which ends with that process.
func isKnown(p Process, known []Process) bool {
	for pid, depth := p.PID, 0; pid > 1 && depth < 8; pid, depth = parentOf(pid), depth+1 {
		for _, k := range known {
			if k.PID == pid && k.Alive() {
				return true
			}
		}
	}
	return false
}

func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}
