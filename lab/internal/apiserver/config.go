// Package apiserver is a typical API server: gin, a list of middlewares, users in
// a SQL database, tokens, uploads, metrics. Each feature has a switch, so that
// the cost of each feature under load can be measured separately.
package apiserver

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
	"golang.org/x/crypto/bcrypt"

	"plimsoll.dev/lab/internal/service"
)

// Config contains all settings, which flags or a YAML file can set.
type Config struct {
	File string

	Mode        string
	Middlewares []string
	UploadDir   string
	UploadMax   int64

	LogLevel   string
	LogOutputs []string

	Profiling bool
	Metrics   bool

	MySQLDSN      string
	MySQLMaxOpen  int
	AdminPassword string
	JWTSecret     string
	TokenLifetime time.Duration
	BcryptCost    int
}

// Flags adds a flag for each setting. The keys of the YAML file have the same
// names, so each setting is described only here.
func (c *Config) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&c.File, "config", "", "YAML file with the settings below, nested at the dots; flags win over it")
	fs.StringVar(&c.Mode, "server.mode", "release", "debug (routes printed, log lines with their source, errors with their cause) or release")
	fs.StringSliceVar(&c.Middlewares, "server.middlewares", middlewareNames(), "middlewares to run, in the order of the default; none for none")
	fs.StringVar(&c.UploadDir, "server.upload-dir", "", "folder for uploaded files; empty refuses uploads")
	fs.Int64Var(&c.UploadMax, "server.upload-max", 16<<20, "largest upload in bytes")
	fs.StringVar(&c.LogLevel, "log.level", "info", "debug, info, warn or error; request and dump lines are info")
	fs.StringSliceVar(&c.LogOutputs, "log.output-paths", []string{"stderr"}, "where log lines go: stdout, stderr, files; several are all written")
	fs.BoolVar(&c.Profiling, "feature.profiling", false, "serve /debug/pprof")
	fs.BoolVar(&c.Metrics, "feature.metrics", false, "serve /metrics in the Prometheus text format")
	fs.StringVar(&c.MySQLDSN, "mysql.dsn", "", "user:password@tcp(host:port)/database (or $LAB_MYSQL_DSN); empty answers 503 where users are needed")
	fs.IntVar(&c.MySQLMaxOpen, "mysql.max-open-connections", 50, "database connections at most")
	fs.StringVar(&c.AdminPassword, "auth.admin-password", "", "make the account admin with this password (or $LAB_ADMIN_PASSWORD)")
	fs.StringVar(&c.JWTSecret, "auth.jwt-secret", "", "at least 32 bytes (or $LAB_JWT_SECRET); empty takes a random one, so tokens end with the process")
	fs.DurationVar(&c.TokenLifetime, "auth.token-lifetime", time.Hour, "how long a token is good for")
	fs.IntVar(&c.BcryptCost, "auth.bcrypt-cost", bcrypt.DefaultCost, "work per password hash; one step doubles it")
}

// Settle reads the file named by --config, lets flags override its values, and
// checks the configuration.
func (c *Config) Settle(fs *pflag.FlagSet) error {
	for name, variable := range map[string]string{
		"mysql.dsn": "LAB_MYSQL_DSN", "auth.admin-password": "LAB_ADMIN_PASSWORD", "auth.jwt-secret": "LAB_JWT_SECRET",
	} {
		if value := os.Getenv(variable); value != "" && !fs.Changed(name) {
			if err := fs.Set(name, value); err != nil {
				return fmt.Errorf("$%s: %w", variable, err)
			}
		}
	}
	if c.File != "" {
		text, err := os.ReadFile(c.File)
		if err != nil {
			return fmt.Errorf("the configuration cannot be read: %w", err)
		}
		if err := applyYAML(fs, text); err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
	}
	return c.check()
}

func (c *Config) check() error {
	if c.Mode != "debug" && c.Mode != "release" {
		return fmt.Errorf("server.mode is debug or release, not %q", c.Mode)
	}
	if slices.Equal(c.Middlewares, []string{"none"}) {
		c.Middlewares = nil
	}
	for _, name := range c.Middlewares {
		if !slices.Contains(middlewareNames(), name) {
			return fmt.Errorf("server.middlewares has no %q: there are %s, and none", name, strings.Join(middlewareNames(), ", "))
		}
	}
	if _, err := service.ParseLevel(c.LogLevel); err != nil {
		return fmt.Errorf("log.level: %w", err)
	}
	if len(c.LogOutputs) == 0 || slices.Contains(c.LogOutputs, "") {
		return errors.New("log.output-paths names at least one of stdout, stderr or a file")
	}
	if c.JWTSecret != "" && len(c.JWTSecret) < 32 {
		return fmt.Errorf("auth.jwt-secret has %d bytes and needs 32 or more", len(c.JWTSecret))
	}
	if c.BcryptCost < bcrypt.MinCost || c.BcryptCost > 14 {
		return fmt.Errorf("auth.bcrypt-cost is %d to 14, not %d", bcrypt.MinCost, c.BcryptCost)
	}
	if c.TokenLifetime <= 0 {
		return fmt.Errorf("auth.token-lifetime is above 0, not %s", c.TokenLifetime)
	}
	if c.UploadMax <= 0 || c.MySQLMaxOpen <= 0 {
		return errors.New("server.upload-max and mysql.max-open-connections are above 0")
	}
	return nil
}

// applyYAML sets every flag that the YAML text names, except flags that the
// command line has set.
func applyYAML(fs *pflag.FlagSet, text []byte) error {
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("not YAML: %s", first)
	}
	return applyTree(fs, "", tree)
}

func applyTree(fs *pflag.FlagSet, prefix string, tree map[string]any) error {
	for key, value := range tree {
		name := prefix + key
		if branch, ok := value.(map[string]any); ok {
			if err := applyTree(fs, name+".", branch); err != nil {
				return err
			}
			continue
		}
		f := fs.Lookup(name)
		if f == nil || name == "config" {
			return fmt.Errorf("there is no setting %q", name)
		}
		if f.Changed {
			continue
		}
		text, err := scalar(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		// Only the flag's value is set. The flag set's record of the flags on the
		// command line stays unchanged.
		if err := f.Value.Set(text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func scalar(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", errors.New("has no value")
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			part, err := scalar(item)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return strings.Join(parts, ","), nil
	default:
		return fmt.Sprint(v), nil
	}
}
