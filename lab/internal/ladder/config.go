// The switches of the ladder service.

package ladder

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"plimsoll.dev/lab/internal/service"
)

// Config contains the switches of the ladder service.
type Config struct {
	RPCListen     string
	RedisURL      string
	RedisPoolSize int
	RedisMaxIdle  int
	MySQLDSN      string
	SQLMaxOpen    int
	SQLMaxIdle    int
	Index         string
}

// Flags adds a flag for each switch.
func (c *Config) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&c.RPCListen, "grpc-listen", "", "address to serve the steps over gRPC on, too; empty for not")
	fs.StringVar(&c.RedisURL, "redis-url", "", "redis://host:port (or $LAB_REDIS_URL); empty answers 503 on /redis")
	fs.IntVar(&c.RedisPoolSize, "redis-pool-size", 100, "connections to Redis at most; a request waits for one")
	fs.IntVar(&c.RedisMaxIdle, "redis-max-idle", 0, "idle connections to Redis that are kept; what is over is closed after use (0: all are kept)")
	fs.StringVar(&c.MySQLDSN, "mysql-dsn", "", "user:password@tcp(host:port)/database (or $LAB_MYSQL_DSN); empty answers 503 on /sql")
	fs.IntVar(&c.SQLMaxOpen, "sql-max-open", 50, "database connections at most; a request waits for one")
	fs.IntVar(&c.SQLMaxIdle, "sql-max-idle", 50, "idle database connections that are kept; what is over is closed after use")
	fs.StringVar(&c.Index, "index", "on", "whether the query may use the index on (prize_grade, score): on or off")
}

// Settle checks the values of the switches.
func (c *Config) Settle(fs *pflag.FlagSet) error {
	for name, variable := range map[string]string{"redis-url": "LAB_REDIS_URL", "mysql-dsn": "LAB_MYSQL_DSN"} {
		if value := os.Getenv(variable); value != "" && !fs.Changed(name) {
			if err := fs.Set(name, value); err != nil {
				return fmt.Errorf("$%s: %w", variable, err)
			}
		}
	}
	switch {
	case c.Index != "on" && c.Index != "off":
		return fmt.Errorf("--index is on or off, not %q", c.Index)
	case c.RedisPoolSize <= 0 || c.SQLMaxOpen <= 0:
		return fmt.Errorf("--redis-pool-size and --sql-max-open are above 0")
	case c.RedisMaxIdle < 0 || c.SQLMaxIdle < 0:
		return fmt.Errorf("--redis-max-idle and --sql-max-idle are 0 or more")
	}
	return nil
}

// Open creates the service and connects to its stores.
func (c *Config) Open(ctx context.Context, env service.Env) (service.Served, error) {
	store, err := c.openStore(ctx)
	if err != nil {
		return service.Served{}, err
	}
	s := server{store: store, log: env.Log}
	served := service.Served{Handler: s.router(), Close: store.close}
	if c.RPCListen != "" {
		address, drain, err := s.serveRPC(c.RPCListen)
		if err != nil {
			store.close()
			return service.Served{}, err
		}
		served.Extra = map[string]string{"grpc": address}
		served.Drain = drain
	}
	return served, nil
}
