// Package e2e starts the lab's real cases, with Redis, MariaDB, Node.js and
// nginx, and checks them by requests. The services are built with the race
// detector, and a detected race in any service fails the tests.
//
// All files are in a temporary folder, and all processes end with the tests. If
// the tests run as root, missing programs are installed. Otherwise the tests
// fail with one line that says what to install.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/lab/internal/rig"
	"plimsoll.dev/lab/internal/service"
)

// The folders of the lab under test.
var (
	scratch string // the folder of all files of this run
	cache   string
	bin     string
	home    string
)

func TestMain(m *testing.M) {
	status, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		status = 1
	}
	os.Exit(status)
}

func runAll(m *testing.M) (status int, err error) {
	if err := rig.Require(context.Background(), append(rig.Programs(), "wrk")...); err != nil {
		return 1, err
	}
	if home, err = filepath.Abs(".."); err != nil {
		return 1, err
	}
	// Without this variable, the race detector makes every program sleep for a
	// second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		return 1, err
	}
	if scratch, err = os.MkdirTemp("", "plimsoll-lab-test-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(scratch)
	cache, bin = filepath.Join(scratch, "cache"), filepath.Join(scratch, "bin")
	build := exec.Command("go", "build", "-race", "-o", bin+"/", "./cmd/...")
	build.Dir = home
	if output, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("the programs cannot be built: %s", output)
	}
	defer func() {
		down := exec.Command(filepath.Join(bin, "lab"), "--cache", cache, "down", "all")
		if output, downErr := down.CombinedOutput(); downErr != nil && err == nil {
			status, err = 1, fmt.Errorf("down all: %s", output)
		}
		if races := findRaces(); races != "" && err == nil {
			status, err = 1, fmt.Errorf("a service had a data race: %s", races)
		}
	}()
	return m.Run(), nil
}

// findRaces returns the first service log that contains a report of the race
// detector; empty if there is none.
func findRaces() string {
	logs, _ := filepath.Glob(filepath.Join(cache, "logs", "*.log"))
	for _, path := range logs {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("WARNING: DATA RACE")) {
			return string(text)
		}
	}
	return ""
}

// lab runs the command lab, and returns its output and its exit status.
func lab(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return labIn(t, cache, args...)
}

func labIn(t *testing.T, cache string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(bin, "lab"), append([]string{"--cache", cache, "--home", home}, args...)...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

// up starts a case and returns its addresses.
func up(t *testing.T, args ...string) map[string]string {
	t.Helper()
	stdout, stderr, status := lab(t, append([]string{"up"}, args...)...)
	if status != 0 {
		t.Fatalf("up %v: status %d: %s", args, status, stderr)
	}
	var said struct {
		Case      string
		Addresses map[string]string
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || len(said.Addresses) == 0 {
		t.Fatalf("up %v printed %q: %v", args, stdout, err)
	}
	return said.Addresses
}

func down(t *testing.T, name string) {
	t.Helper()
	if _, stderr, status := lab(t, "down", name); status != 0 {
		t.Fatalf("down %s: %s", name, stderr)
	}
}

// state returns the result of `lab status --json`.
func state(t *testing.T) rig.State {
	t.Helper()
	stdout, stderr, status := lab(t, "status", "--json")
	var s rig.State
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || status != 0 {
		t.Fatalf("status: %q, %s, %v", stdout, stderr, err)
	}
	return s
}

// pid returns the id of the process with this name in a case.
func pid(t *testing.T, caseName, process string) int {
	t.Helper()
	s := state(t)
	for _, group := range []map[string]*rig.Running{s.Cases, s.Backing} {
		if running := group[caseName]; running != nil {
			for _, p := range running.Processes {
				if p.Name == process {
					return p.PID
				}
			}
		}
	}
	t.Fatalf("%s has no process %s", caseName, process)
	return 0
}

// answer is the response to a request.
type answer struct {
	status int
	body   string
	closed bool // the server closes the connection
}

// ask sends one request and returns the response. Headers are given as name,
// value, name, value.
func ask(t *testing.T, method, url, body string, headers ...string) answer {
	t.Helper()
	a, err := try(method, url, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 500}}

func try(method, url, body string, headers ...string) (answer, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(text), response.Close}, err
}

// wantError checks that a response is a JSON error with this status.
func wantError(t *testing.T, a answer, status int) {
	t.Helper()
	var body service.ErrorBody
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || a.status != status || body.Error.Status != status || body.Error.Message == "" {
		t.Errorf("got %d %q, want a JSON error %d", a.status, a.body, status)
	}
}

// oneSentence checks that the error output of a failed command is one sentence
// that contains `want`.
func oneSentence(t *testing.T, stderr, want string) {
	t.Helper()
	var said []string
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "lab: starting ") && !strings.HasPrefix(line, "lab: ending ") {
			said = append(said, line)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], want) {
		t.Errorf("said %q, want one sentence with %q", stderr, want)
	}
}
