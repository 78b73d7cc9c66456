package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// openRig opens a lab in this cache folder. These tests test failures; the
// end-to-end tests start real cases.

func openRig(t *testing.T, cache string) *Rig {
	t.Helper()
	r := &Rig{Cache: cache, Home: "../..", Bin: filepath.Join(cache, "no-programs"), Progress: io.Discard}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// sleeper starts a harmless process with these environment variables, which the
// lab would set.
func sleeper(t *testing.T, env ...string) Process {
	t.Helper()
	command := exec.Command("sleep", "60")
	command.Env = append(os.Environ(), env...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { command.Wait(); close(ended) }()
	t.Cleanup(func() { command.Process.Kill(); <-ended })
	p, err := identify("sleeper", command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOnlyTheProcessThatWasMeantIsEnded(t *testing.T) {
	p := sleeper(t)
	for _, row := range []struct {
		name   string
		change func(*Process)
	}{
		{"an older process had this id", func(p *Process) { p.Start-- }},
		{"it was before a reboot", func(p *Process) { p.Boot = "another" }},
	} {
		recycled := p
		row.change(&recycled)
		if recycled.Alive() {
			t.Errorf("%s: taken for alive", row.name)
		}
		if err := recycled.Stop(time.Second); err != nil || !p.Alive() {
			t.Fatalf("%s: the wrong process was ended (%v)", row.name, err)
		}
	}
	if err := p.Stop(5 * time.Second); err != nil || p.Alive() {
		t.Errorf("the right one was not ended: %v", err)
	}
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("ending what has ended: %v", err)
	}
}

func TestStopKillsWhatDoesNotHeed(t *testing.T) {
	command := exec.Command("sh", "-c", "trap '' TERM; echo; while :; do sleep 0.1; done")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 1)) // waits until the trap is set
	go command.Wait()
	p, err := identify("deaf", command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(300 * time.Millisecond); err != nil || p.Alive() {
		t.Errorf("%v", err)
	}
}

func TestOpenEndsWhatACutOffStartLeft(t *testing.T) {
	cache := t.TempDir()
	bystander := sleeper(t)
	other := sleeper(t, cacheVariable+"="+cache+"-of-another")
	orphan := sleeper(t, cacheVariable+"="+cache)
	openRig(t, cache).Close()
	if orphan.Alive() {
		t.Error("the left-over process still runs")
	}
	if !bystander.Alive() || !other.Alive() {
		t.Error("a process that is not this lab's was ended")
	}

	half := sleeper(t, cacheVariable+"="+cache)
	s := &State{Backing: map[string]*Running{}, Cases: map[string]*Running{"ladder": {Processes: []Process{half}}}}
	if err := s.save(cache); err != nil {
		t.Fatal(err)
	}
	r := openRig(t, cache)
	if half.Alive() || len(r.state.Cases) != 0 {
		t.Error("a case that was never ready was kept")
	}
}

func TestOpenKeepsWhatRuns(t *testing.T) {
	cache := t.TempDir()
	openRig(t, cache).Close()
	p := sleeper(t, cacheVariable+"="+cache)
	s := &State{Backing: map[string]*Running{}, Cases: map[string]*Running{
		"baseline": {Ready: true, Processes: []Process{p}, Addresses: map[string]string{"baseline": "http://127.0.0.1:1"}},
	}}
	if err := s.save(cache); err != nil {
		t.Fatal(err)
	}
	r := openRig(t, cache)
	addresses, err := r.Up(context.Background(), "baseline", Options{})
	if err != nil || addresses["baseline"] != "http://127.0.0.1:1" || !p.Alive() {
		t.Errorf("%v, %v", addresses, err)
	}
	if err := r.Purge(); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("purge while something runs: %v", err)
	}
	if err := r.Down("all"); err != nil || p.Alive() {
		t.Errorf("down: %v", err)
	}
}

func TestACaseThatLostItsDatabaseIsEnded(t *testing.T) {
	cache := t.TempDir()
	openRig(t, cache).Close()
	p := sleeper(t, cacheVariable+"="+cache)
	s := &State{Backing: map[string]*Running{}, Cases: map[string]*Running{
		"flashsale": {Ready: true, Needs: []string{"redis"}, Processes: []Process{p}},
	}}
	if err := s.save(cache); err != nil {
		t.Fatal(err)
	}
	if r := openRig(t, cache); p.Alive() || len(r.state.Cases) != 0 {
		t.Error("it still runs")
	}
}

func TestDamagedStateIsBegunAnew(t *testing.T) {
	cache := t.TempDir()
	openRig(t, cache).Close()
	orphan := sleeper(t, cacheVariable+"="+cache)
	if err := os.WriteFile(statePath(cache), []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := openRig(t, cache); len(r.state.Cases) != 0 || orphan.Alive() {
		t.Error("not begun anew")
	}
}

func TestFolders(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "mine.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ dir, says string }{
		{foreign, "not empty and not the lab's"},
		{filepath.Join(file, "below"), "cannot be made"},
		{"/proc/no-such-folder", "cannot be made"},
	} {
		err := (&Rig{Cache: row.dir, Progress: io.Discard}).Open()
		if err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q in one sentence", row.dir, err, row.says)
		}
	}
}

func TestNoDiskRoom(t *testing.T) {
	err := checkRoom(t.TempDir(), 1<<62)
	if err == nil || !strings.Contains(err.Error(), "no disk room") {
		t.Errorf("got %v", err)
	}
	if err := checkRoom(t.TempDir(), 1); err != nil {
		t.Error(err)
	}
	r := openRig(t, t.TempDir())
	r.MinFree = 1 << 62
	if err := r.prepareData(context.Background()); err == nil || !strings.Contains(err.Error(), "no disk room") {
		t.Errorf("data folder: %v", err)
	}
}

func TestBadCases(t *testing.T) {
	r := openRig(t, t.TempDir())
	for _, row := range []struct {
		name    string
		options Options
		says    string
	}{
		{"lader", Options{}, `no case "lader": there are baseline, apiserver`},
		{"baseline", Options{LimitRate: 1}, "only cards has"},
		{"baseline", Options{}, "baseline is not built"},
	} {
		if _, err := r.Up(context.Background(), row.name, row.options); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.name, err, row.says)
		}
	}
	if len(r.state.processes()) > 0 || len(r.state.Cases) > 0 {
		t.Errorf("a failed start left %+v", r.state)
	}
	if err := r.Down("lader"); err == nil {
		t.Error("down of an unknown case")
	}
	if err := r.Down("baseline"); err != nil {
		t.Errorf("down of a case that does not run: %v", err)
	}
}

func TestRequire(t *testing.T) {
	for _, row := range []struct {
		name      string
		present   []string // programs present from the start
		root      bool
		install   error
		delivers  bool
		says      string
		installed []string
	}{
		{name: "all there", present: []string{"mariadbd", "mariadb-install-db", "nginx"}},
		{name: "user", says: "install with `apt-get install --no-install-recommends mariadb-server-core nginx-light` as root"},
		{name: "user, part", present: []string{"nginx", "mariadbd"}, says: "mariadb-server-core` as root"},
		{name: "root", root: true, delivers: true, installed: []string{"mariadb-server-core", "nginx-light"}},
		{name: "root, no network", root: true, install: errors.New(`apt-get update said "no route"`),
			says: `mariadb-server-core nginx-light cannot be installed: apt-get update said "no route"`, installed: []string{"mariadb-server-core", "nginx-light"}},
		{name: "root, package empty", root: true, says: "still missing after its install", installed: []string{"mariadb-server-core", "nginx-light"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			present, installed := slices.Clone(row.present), []string(nil)
			h := host{
				root: row.root,
				find: func(program string) (string, error) {
					if slices.Contains(present, program) {
						return "/bin/" + program, nil
					}
					return "", errors.New("missing")
				},
				install: func(_ context.Context, packages []string) error {
					installed = packages
					if row.delivers {
						present = []string{"mariadbd", "mariadb-install-db", "nginx"}
					}
					return row.install
				},
			}
			err := h.require(context.Background(), "mariadbd", "mariadb-install-db", "nginx")
			if (err == nil) != (row.says == "") || err != nil && (!strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %v, want %q", err, row.says)
			}
			if !slices.Equal(installed, row.installed) {
				t.Errorf("installed %v, want %v", installed, row.installed)
			}
		})
	}
}

func TestEveryProgramHasAPackage(t *testing.T) {
	for _, program := range Programs() {
		if packageOf[program] == "" {
			t.Errorf("no package for %s", program)
		}
	}
}

// attempt starts a shell command as the lab starts a process.
func attempt(t *testing.T, script string, patience time.Duration, ready func(context.Context, string) (bool, error)) error {
	t.Helper()
	r := openRig(t, t.TempDir())
	running := &Running{}
	err := r.launch(context.Background(), r.state.Cases, "sample", running, func(ctx context.Context, l *launch) error {
		return l.start(ctx, spec{name: "sh", path: "/bin/sh", args: []string{"-c", script}, patience: patience, ready: ready})
	})
	for _, p := range running.Processes {
		if err != nil && p.Alive() {
			t.Errorf("%s: process %d was left", script, p.PID)
		}
		p.Stop(time.Second)
	}
	return err
}

func TestStartsThatFail(t *testing.T) {
	var said map[string]any
	never := func(context.Context, string) (bool, error) { return false, nil }
	for _, row := range []struct {
		script   string
		patience time.Duration
		ready    func(context.Context, string) (bool, error)
		says     string
	}{
		{"echo first >&2; echo no luck >&2; exit 3", time.Minute, never, "sh did not start: no luck"},
		{"echo '[ERROR] the cause' >&2; echo aborting >&2; exit 3", time.Minute, never, "[ERROR] the cause"},
		{"echo no luck >&2; echo '{\"msg\":\"stopping\"}' >&2; exit 3", time.Minute, never, "sh did not start: no luck"},
		{"exit 0", time.Minute, never, "it said nothing"},
		{"sleep 20", 100 * time.Millisecond, never, "was not ready after 100ms"},
		{"echo hello; sleep 20", time.Minute, addressLine(&said), `its first line is no address: "hello"`},
	} {
		if err := attempt(t, row.script, row.patience, row.ready); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.script, err, row.says)
		}
	}
	if err := attempt(t, `echo '{"url":"http://x"}'; sleep 20`, time.Minute, addressLine(&said)); err != nil || text(said, "url") != "http://x" {
		t.Errorf("%v, %v", said, err)
	}
}

func TestAnotherPortIsTriedWhenOneIsTaken(t *testing.T) {
	for _, row := range []struct {
		err   error
		tries int
	}{
		{nil, 1},
		{errors.New("bad configuration"), 1},
		{fmt.Errorf("bind: Address already in use (%w)", errEnded), 3},
	} {
		l, tries := &launch{into: &Running{}}, 0
		err := l.onFreePort(func(port int) error { tries++; return row.err })
		if tries != row.tries || (err == nil) != (row.err == nil) {
			t.Errorf("%v: %d tries, %v", row.err, tries, err)
		}
	}
}

func TestParseTimes(t *testing.T) {
	parent, spent := parseTimes("7 (a) name) (x) S 42 7 7 0 -1 4194304 1 0 0 0 150 50 0 0 20 0 1 0 12345 1 1")
	if parent != 42 || spent != 2*time.Second {
		t.Errorf("%d, %s", parent, spent)
	}
	if parent, spent := parseTimes("7 (a) Z"); parent != 0 || spent != 0 {
		t.Errorf("%d, %s", parent, spent)
	}
}
