// The record of running processes, as stored in the cache.

package rig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// State contains the cases and backing services that were started and not ended.
type State struct {
	// Backing contains the services that cases share: "redis", "mariadb".
	Backing map[string]*Running `json:"backing"`
	Cases   map[string]*Running `json:"cases"`
}

// Running is a started case or backing service.
type Running struct {
	// Ready is false during the start.
	Ready     bool              `json:"ready"`
	Options   Options           `json:"options"`
	Needs     []string          `json:"needs,omitempty"`
	Processes []Process         `json:"processes"`
	Addresses map[string]string `json:"addresses"`
}

// Alive returns whether the start is complete and all processes run.
func (r *Running) Alive() bool {
	for _, p := range r.Processes {
		if !p.Alive() {
			return false
		}
	}
	return r.Ready
}

func (s *State) processes() []Process {
	var all []Process
	for _, group := range []map[string]*Running{s.Backing, s.Cases} {
		for _, r := range group {
			all = append(all, r.Processes...)
		}
	}
	return all
}

func statePath(cache string) string { return filepath.Join(cache, "run", "state.json") }

func loadState(cache string) (*State, error) {
	s := &State{Backing: map[string]*Running{}, Cases: map[string]*Running{}}
	text, err := os.ReadFile(statePath(cache))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("what runs cannot be read: %w", err)
	}
	if err := json.Unmarshal(text, s); err != nil {
		// No process is lost: running processes are found as orphans, and ended.
		fmt.Fprintf(os.Stderr, "lab: %s is damaged and is begun anew\n", statePath(cache))
		return &State{Backing: map[string]*Running{}, Cases: map[string]*Running{}}, nil
	}
	return s, nil
}

// save replaces the state file in one step, so that the file is always complete.
func (s *State) save(cache string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		partial := statePath(cache) + ".partial"
		if err = os.WriteFile(partial, text, 0o600); err == nil {
			err = os.Rename(partial, statePath(cache))
		}
	}
	if err != nil {
		return fmt.Errorf("what runs cannot be written down: %w", err)
	}
	return nil
}
