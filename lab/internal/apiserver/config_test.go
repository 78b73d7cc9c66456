package apiserver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func settle(t *testing.T, yaml string, args ...string) (Config, error) {
	t.Helper()
	var c Config
	fs := pflag.NewFlagSet("apiserver", pflag.ContinueOnError)
	c.Flags(fs)
	if yaml != "" {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	return c, c.Settle(fs)
}

func TestFileThenFlags(t *testing.T) {
	file := `
server:
  mode: debug
  middlewares: [recovery, logger]
log:
  level: warn
  output-paths: [stdout, /dev/null]
feature:
  profiling: true
auth:
  token-lifetime: 5m
`
	c, err := settle(t, file, "--log.level=error", "--server.middlewares=dump")
	if err != nil {
		t.Fatal(err)
	}
	if c.Mode != "debug" || !c.Profiling || c.Metrics || c.TokenLifetime.Minutes() != 5 {
		t.Errorf("the file was not read: %+v", c)
	}
	if !slices.Equal(c.LogOutputs, []string{"stdout", "/dev/null"}) {
		t.Errorf("outputs %v", c.LogOutputs)
	}
	if c.LogLevel != "error" || !slices.Equal(c.Middlewares, []string{"dump"}) {
		t.Errorf("flags did not win: %+v", c)
	}
}

func TestDefaultsAndNone(t *testing.T) {
	c, err := settle(t, "")
	if err != nil || !slices.Equal(c.Middlewares, middlewareNames()) {
		t.Errorf("default middlewares %v, %v", c.Middlewares, err)
	}
	for _, args := range [][]string{{"--server.middlewares=none"}, {"--server.middlewares="}} {
		c, err := settle(t, "", args...)
		if err != nil || len(c.Middlewares) != 0 {
			t.Errorf("%v: middlewares %v, %v", args, c.Middlewares, err)
		}
	}
	t.Setenv("LAB_MYSQL_DSN", "from-environment")
	if c, err := settle(t, ""); err != nil || c.MySQLDSN != "from-environment" {
		t.Errorf("dsn %q, %v", c.MySQLDSN, err)
	}
	if c, err := settle(t, "", "--mysql.dsn=said"); err != nil || c.MySQLDSN != "said" {
		t.Errorf("dsn %q, %v", c.MySQLDSN, err)
	}
}

func TestBadSettings(t *testing.T) {
	for _, row := range []struct{ yaml, arg, says string }{
		{"", "--server.mode=fast", "server.mode is debug or release"},
		{"", "--server.middlewares=recovery,cache", `has no "cache"`},
		{"", "--log.level=loud", "log.level"},
		{"", "--log.output-paths=", "at least one"},
		{"", "--auth.jwt-secret=short", "needs 32 or more"},
		{"", "--auth.bcrypt-cost=40", "auth.bcrypt-cost"},
		{"", "--auth.token-lifetime=0s", "auth.token-lifetime"},
		{"", "--server.upload-max=0", "server.upload-max"},
		{"", "--config=/no/such/file.yaml", "cannot be read"},
		{"server: [", "", "not YAML"},
		{"server:\n  speed: 9\n", "", `no setting "server.speed"`},
		{"config: other.yaml\n", "", `no setting "config"`},
		{"server:\n  mode:\n", "", "server.mode: has no value"},
		{"feature:\n  metrics: perhaps\n", "", "feature.metrics"},
	} {
		_, err := settle(t, row.yaml, slices.DeleteFunc([]string{row.arg}, func(s string) bool { return s == "" })...)
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%q %q: %v, want %q", row.yaml, row.arg, err, row.says)
		}
	}
}
