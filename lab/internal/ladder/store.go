// Package ladder is a service with three endpoints (steps), each with one more
// operation: an empty response, a Redis GET, a SQL query. The steps are served
// over HTTP and, for the gateway, over gRPC. Both call the functions in this file.
package ladder

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"plimsoll.dev/lab/internal/gamerecord"
)

// Key is the Redis key that the second step reads.
const Key = "ladder:value"

var (
	errNoRedis = errors.New("this server was started without Redis (--redis-url)")
	errNoSQL   = errors.New("this server was started without a database (--mysql-dsn)")
)

// store contains the connections to Redis and to the SQL database. Either may be
// missing.
type store struct {
	redis *redis.Client
	db    *sql.DB
	query *sql.Stmt
}

func (c *Config) openStore(ctx context.Context) (s store, err error) {
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if c.RedisURL != "" {
		options, err := redis.ParseURL(c.RedisURL)
		if err != nil {
			return s, fmt.Errorf("--redis-url: %w", err)
		}
		options.PoolSize = c.RedisPoolSize
		options.MaxIdleConns = c.RedisMaxIdle
		options.PoolTimeout = 30 * time.Second
		s.redis = redis.NewClient(options)
		if err := s.redis.Set(ctx, Key, "the value of the ladder's one key", 0).Err(); err != nil {
			return s, fmt.Errorf("Redis at %s does not answer: %w", options.Addr, err)
		}
	}
	if c.MySQLDSN != "" {
		config, err := mysql.ParseDSN(c.MySQLDSN)
		if err != nil {
			return s, fmt.Errorf("--mysql-dsn is not user:password@tcp(host:port)/database: %w", err)
		}
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return s, fmt.Errorf("--mysql-dsn: %w", err)
		}
		s.db = sql.OpenDB(connector)
		s.db.SetMaxOpenConns(c.SQLMaxOpen)
		s.db.SetMaxIdleConns(c.SQLMaxIdle)
		whole, err := gamerecord.Seeded(ctx, s.db)
		if err != nil {
			return s, fmt.Errorf("the database at %s cannot be used: %w", config.Addr, err)
		}
		if !whole {
			return s, fmt.Errorf("the database at %s has no whole table game_record: `lab/up ladder` seeds one", config.Addr)
		}
		if s.query, err = s.db.PrepareContext(ctx, gamerecord.Query(c.Index == "on")); err != nil {
			return s, fmt.Errorf("the database at %s cannot be used: %w", config.Addr, err)
		}
	}
	return s, nil
}

func (s store) close() error {
	var errs []error
	if s.redis != nil {
		errs = append(errs, s.redis.Close())
	}
	if s.query != nil {
		errs = append(errs, s.query.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(errs...)
}

// get is the second step: one Redis GET. Its value is not returned.
func (s store) get(ctx context.Context) error {
	if s.redis == nil {
		return errNoRedis
	}
	return s.redis.Get(ctx, Key).Err()
}

// records is the third step: one SQL query.
func (s store) records(ctx context.Context, app uint32, token string) ([]gamerecord.Record, error) {
	if s.query == nil {
		return nil, errNoSQL
	}
	return gamerecord.Select(ctx, s.query, app, token)
}
