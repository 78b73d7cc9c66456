// The test of all cases together. It comes last, because it deletes the rows in
// the database.

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpAll runs `up all` and `down all` like a user. Then it tests a data folder
// of an older lab, and the removal of all data.
func TestUpAll(t *testing.T) {
	stdout, stderr, status := lab(t, "up", "all")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	healthy := 0
	for line := range strings.Lines(stdout) {
		var said struct {
			Case      string
			Addresses map[string]string
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for name, address := range said.Addresses {
			path := "/healthz"
			if said.Case == "flashsale" {
				path = "/event/list"
			}
			if !strings.HasPrefix(address, "http://") {
				continue
			}
			if a := ask(t, "GET", address+path, ""); a.status != 200 {
				t.Errorf("%s, %s: %d %s", said.Case, name, a.status, a.body)
			}
			healthy++
		}
	}
	if healthy != 13 {
		t.Errorf("%d HTTP addresses, want 13: %s", healthy, stdout)
	}
	down(t, "all")

	format := filepath.Join(cache, "mariadb", "data", "lab-format")
	if err := os.WriteFile(format, []byte("plimsoll lab data 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, status = lab(t, "up", "apiserver")
	if status != 0 || !strings.Contains(stderr, "stale or half made: it is made anew") {
		t.Errorf("a stale data folder: status %d: %s", status, stderr)
	}
	if _, stderr, status := lab(t, "down", "all", "--purge"); status != 0 {
		t.Errorf("purge: %s", stderr)
	}
	if _, err := os.Stat(filepath.Join(cache, "mariadb")); err == nil {
		t.Error("purge left the data folder")
	}
}
