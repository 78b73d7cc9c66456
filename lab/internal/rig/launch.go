// Starts a process, records it at once, and waits until it is ready.

package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// launch is the start of one case or backing service.
type launch struct {
	rig  *Rig
	name string // the name of the case
	into *Running
}

// spec describes a process to start.
type spec struct {
	name string
	path string
	args []string
	env  []string
	dir  string
	// ready is called repeatedly until it returns true or an error. The standard
	// input of a process is empty, and its output goes to two files.
	ready    func(ctx context.Context, stdout string) (bool, error)
	patience time.Duration
}

// startedProcess is a process and a channel that closes when the process ends.
type startedProcess struct {
	Process
	ended chan struct{}
}

// errEnded is the error for a process that ended before it was ready.
var errEnded = errors.New("ended")

// start starts a process and waits until it is ready.
func (l *launch) start(ctx context.Context, s spec) error {
	base := filepath.Join(l.rig.Cache, "logs", l.name+"-"+s.name)
	// The log is opened for appending, so that it can be truncated while the
	// process writes.
	const fresh = os.O_CREATE | os.O_TRUNC | os.O_WRONLY | os.O_APPEND
	stdout, err := os.OpenFile(base+".out", fresh, 0o600)
	if err != nil {
		return err
	}
	defer stdout.Close()
	stderr, err := os.OpenFile(base+".log", fresh, 0o600)
	if err != nil {
		return err
	}
	defer stderr.Close()

	command := exec.Command(s.path, s.args...)
	command.Dir = s.dir
	command.Env = append(append(os.Environ(), s.env...), cacheVariable+"="+l.rig.Cache)
	command.Stdout, command.Stderr = stdout, stderr
	// The process has its own session, so ^C in the terminal does not reach it.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("%s cannot be started: %w", s.name, err)
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	process, err := identify(s.name, command.Process.Pid)
	if err != nil {
		return fmt.Errorf("%s did not start: %s", s.name, reason(base))
	}
	process.Log = base + ".log"
	l.into.Processes = append(l.into.Processes, process)
	if err := l.rig.state.save(l.rig.Cache); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for {
		if ok, err := s.ready(ctx, base+".out"); err != nil {
			return fmt.Errorf("%s did not start: %w", s.name, err)
		} else if ok {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s did not start: %s (%w)", s.name, reason(base), errEnded)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s was not ready after %s; its last words: %s", s.name, s.patience, reason(base))
			}
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// reason returns why a process ended, from its log: a line marked as an error,
// otherwise the last line that is not JSON, otherwise the last line.
func reason(base string) string {
	text, err := os.ReadFile(base + ".log")
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return "it said nothing"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		if strings.Contains(line, "[ERROR]") || strings.Contains(line, "[emerg]") || strings.Contains(line, "Fatal") {
			return strings.TrimSpace(line)
		}
	}
	for _, line := range slices.Backward(lines) {
		if !strings.HasPrefix(line, "{") {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// service starts a program of the lab and returns its decoded address line.
func (l *launch) service(ctx context.Context, name, program string, env []string, args ...string) (map[string]any, error) {
	var said map[string]any
	path, err := l.rig.program(program)
	if err != nil {
		return nil, err
	}
	s := spec{name: name, path: path, args: args, env: env, patience: 30 * time.Second, ready: addressLine(&said)}
	if err := l.start(ctx, s); err != nil {
		return nil, err
	}
	return said, nil
}

// addressLine returns a ready function that is true once the first line of output
// is complete. It decodes that line into `into`.
func addressLine(into *map[string]any) func(context.Context, string) (bool, error) {
	return func(_ context.Context, stdout string) (bool, error) {
		text, err := os.ReadFile(stdout)
		if err != nil {
			return false, err
		}
		line, _, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return false, nil
		}
		if err := json.Unmarshal(line, into); err != nil {
			return false, fmt.Errorf("its first line is no address: %q", line)
		}
		return true, nil
	}
}

// text returns a text field of an address line.
func text(line map[string]any, field string) string {
	value, _ := line[field].(string)
	return value
}

// freePort returns a TCP port that was free a moment ago.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("there is no free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// onFreePort calls start with a free port. If the program ended because another
// process took that port, start is called again with another port.
func (l *launch) onFreePort(start func(port int) error) error {
	var err error
	for range 3 {
		var port int
		if port, err = freePort(); err != nil {
			return err
		}
		before := len(l.into.Processes)
		if err = start(port); err == nil || !portWasTaken(err) {
			return err
		}
		l.into.Processes = l.into.Processes[:before]
	}
	return err
}

func portWasTaken(err error) bool {
	said := strings.ToLower(err.Error())
	return errors.Is(err, errEnded) && (strings.Contains(said, "address already in use") || strings.Contains(said, "port in use") || strings.Contains(said, "can't start server: bind"))
}
