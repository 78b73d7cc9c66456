// Processes: which one was meant, is it still that one, and its end.

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

// Process names a process for good: ids are used again, but not with the same
// start time in the same boot.
type Process struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Start uint64 `json:"start_ticks"`
	Boot  string `json:"boot"`
	Log   string `json:"log,omitempty"`
}

// identify reads who has the id now.
func identify(name string, pid int) (Process, error) {
	_, start, err := readStat(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{Name: name, PID: pid, Start: start, Boot: bootID()}, nil
}

// Alive says whether it still runs; a zombie does not.
func (p Process) Alive() bool {
	state, start, err := readStat(p.PID)
	return err == nil && state != 'Z' && state != 'X' && start == p.Start && p.Boot == bootID()
}

// Stop ends it: SIGTERM, and SIGKILL when that is not heeded in time.
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
	// The name stands in brackets and may hold anything, brackets too.
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

// cacheVariable is set for everything that is started, so that what a broken
// start left behind can be told from everything else on the machine.
const cacheVariable = "PLIMSOLL_LAB_CACHE"

// orphans finds processes of this cache that nobody wrote down: those of a
// start that was killed between starting one and writing it down.
func orphans(cache string, known []Process) []Process {
	wanted := []byte(cacheVariable + "=" + cache)
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil { // a constant pattern is well-formed
		panic(err)
	}
	var found []Process
	for _, path := range entries {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(path) // those of others cannot be read
		if err != nil {
			continue
		}
		title, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		// nginx writes its title over its environment; the title names its folder.
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

// isKnown is also true for the children of a known process, which end with it.
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
