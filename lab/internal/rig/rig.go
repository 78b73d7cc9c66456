// The operations up, down and status.

package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Rig is an open cache folder of the lab, with the state of its processes.
type Rig struct {
	Cache string // the folder of all files of the lab
	Home  string // the lab's sources, for files that are no Go programs
	Bin   string // the folder of the lab's built programs
	// MinFree is the free disk space that a data folder needs, in bytes; 0 means
	// the default.
	MinFree uint64
	// Progress receives messages about slow steps.
	Progress io.Writer

	state  *State
	unlock func()
}

const (
	// The data folder has about 500 MiB after the table is filled and was under
	// load.
	defaultMinFree = 1 << 30
	stopPatience   = 15 * time.Second
)

// Open creates the folder, waits for its lock, and reads the state of the running
// processes. It ends processes that an interrupted start left behind.
func (r *Rig) Open() (err error) {
	if r.Cache, err = filepath.Abs(r.Cache); err != nil {
		return err
	}
	if err := openCache(r.Cache); err != nil {
		return err
	}
	if r.unlock, err = lockCache(r.Cache); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if r.state, err = loadState(r.Cache); err != nil {
		return err
	}
	for _, p := range orphans(r.Cache, r.state.processes()) {
		r.say("ending process %d, left over by a start that was cut off", p.PID)
		if err := p.Stop(stopPatience); err != nil {
			return err
		}
	}
	for _, group := range []map[string]*Running{r.state.Backing, r.state.Cases} {
		for name, running := range group {
			if !running.Alive() {
				if running.Ready {
					r.say("%s does not run any more as it should: what is left of it is ended", name)
				} else {
					r.say("the start of %s was cut off: what is left of it is ended", name)
				}
				if err := r.end(running); err != nil {
					return err
				}
				delete(group, name)
			}
		}
	}
	// A case cannot work after one of the services it needs has ended.
	for name, running := range r.state.Cases {
		if slices.ContainsFunc(running.Needs, func(n string) bool { return r.state.Backing[n] == nil }) {
			r.say("%s lost a database it needs and is ended", name)
			if err := r.end(running); err != nil {
				return err
			}
			delete(r.state.Cases, name)
		}
	}
	return r.state.save(r.Cache)
}

// Close releases the lock. All processes continue to run.
func (r *Rig) Close() {
	if r.unlock != nil {
		r.unlock()
		r.unlock = nil
	}
}

func (r *Rig) say(format string, args ...any) {
	if r.Progress != nil {
		fmt.Fprintf(r.Progress, "lab: "+format+"\n", args...)
	}
}

func (r *Rig) room() uint64 {
	if r.MinFree > 0 {
		return r.MinFree
	}
	return defaultMinFree
}

// program returns the path of one of the lab's own programs.
func (r *Rig) program(name string) (string, error) {
	path := filepath.Join(r.Bin, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built: `make -C lab build` builds it", name)
	}
	return path, nil
}

// Up starts a case unless it is running, and returns its addresses.
func (r *Rig) Up(ctx context.Context, name string, o Options) (map[string]string, error) {
	return r.UpAs(ctx, name, name, o)
}

// UpAs starts a case under another name, so that several copies of it with
// different options can run side by side.
func (r *Rig) UpAs(ctx context.Context, as, name string, o Options) (map[string]string, error) {
	c, err := findCase(name)
	if err != nil {
		return nil, err
	}
	c.Name = as
	if (o.LimitRate != 0 || o.LimitBurst != 0) && name != "cards" {
		return nil, fmt.Errorf("the case %s has no limiting proxy: only cards has", name)
	}
	return r.up(ctx, c, o)
}

func (r *Rig) up(ctx context.Context, c Case, o Options) (map[string]string, error) {
	if running := r.state.Cases[c.Name]; running != nil {
		if running.Options.equal(o) {
			return r.addresses(running), nil
		}
		r.say("%s runs with other options and is started anew", c.Name)
		if err := r.end(running); err != nil {
			return nil, err
		}
		delete(r.state.Cases, c.Name)
	}
	if err := checkRoom(r.Cache, min(r.room(), 64<<20)); err != nil {
		return nil, err
	}
	if err := Require(ctx, c.allPrograms()...); err != nil {
		return nil, err
	}
	for _, need := range c.backing {
		if r.state.Backing[need] != nil {
			continue
		}
		start := backingServices[need].start
		if err := r.launch(ctx, r.state.Backing, need, &Running{}, start); err != nil {
			return nil, errors.Join(err, r.dropUnused())
		}
	}
	running := &Running{Options: o, Needs: c.backing}
	err := r.launch(ctx, r.state.Cases, c.Name, running, func(ctx context.Context, l *launch) error {
		return c.start(ctx, l, o)
	})
	if err != nil {
		return nil, errors.Join(err, r.dropUnused())
	}
	return r.addresses(running), nil
}

// launch starts a case or backing service. A failed start leaves no process.
func (r *Rig) launch(ctx context.Context, group map[string]*Running, name string, running *Running,
	start func(context.Context, *launch) error) error {
	running.Addresses = map[string]string{}
	group[name] = running
	r.say("starting %s", name)
	err := start(ctx, &launch{rig: r, name: name, into: running})
	if err == nil {
		running.Ready = true
		err = r.state.save(r.Cache)
	}
	if err != nil {
		delete(group, name)
		return errors.Join(err, r.end(running), r.state.save(r.Cache))
	}
	return nil
}

// addresses returns the addresses of a case and of the backing services it needs.
func (r *Rig) addresses(running *Running) map[string]string {
	all := maps.Clone(running.Addresses)
	for _, need := range running.Needs {
		maps.Copy(all, r.state.Backing[need].Addresses)
	}
	return all
}

// end ends the processes of a case, the last started process first.
func (r *Rig) end(running *Running) error {
	var errs []error
	for _, p := range slices.Backward(running.Processes) {
		errs = append(errs, p.Stop(stopPatience))
	}
	return errors.Join(errs...)
}

// Down ends a case or all cases, and the backing services that no other case
// needs.
func (r *Rig) Down(name string) error {
	names := []string{name}
	if name == "all" {
		names = slices.Collect(maps.Keys(r.state.Cases))
	} else if _, err := findCase(name); err != nil && r.state.Cases[name] == nil {
		return err
	}
	for _, name := range names {
		running := r.state.Cases[name]
		if running == nil {
			r.say("%s does not run", name)
			continue
		}
		r.say("ending %s", name)
		if err := r.end(running); err != nil {
			return err
		}
		delete(r.state.Cases, name)
		if err := r.state.save(r.Cache); err != nil {
			return err
		}
	}
	return r.dropUnused()
}

// dropUnused ends the backing services that no case needs.
func (r *Rig) dropUnused() error {
	for name, running := range r.state.Backing {
		used := false
		for _, c := range r.state.Cases {
			used = used || slices.Contains(c.Needs, name)
		}
		if used {
			continue
		}
		r.say("ending %s", name)
		if err := r.end(running); err != nil {
			return err
		}
		delete(r.state.Backing, name)
	}
	return r.state.save(r.Cache)
}

// Purge deletes the content of the cache. Fails if a process is running.
func (r *Rig) Purge() error {
	if len(r.state.processes()) > 0 {
		return errors.New("something still runs: `lab/down all` ends it")
	}
	subs := []string{filepath.Join(r.Cache, "mariadb"), filepath.Join(r.Cache, "redis"), filepath.Join(r.Cache, "uploads"), filepath.Join(r.Cache, "logs")}
	proxies, err := filepath.Glob(filepath.Join(r.Cache, "nginx-*"))
	for _, sub := range append(subs, proxies...) {
		err = errors.Join(err, os.RemoveAll(sub))
	}
	if err != nil {
		return fmt.Errorf("the lab's folder cannot be emptied: %w", err)
	}
	return nil
}

// Status returns the state of all running cases and backing services.
func (r *Rig) Status() *State { return r.state }
