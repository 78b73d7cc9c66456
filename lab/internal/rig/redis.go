// A private Redis: nothing is kept on disk, loopback only.

package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

func startRedis(ctx context.Context, l *launch) error {
	path, err := findProgram("redis-server")
	if err != nil {
		return err
	}
	dir := filepath.Join(l.rig.Cache, "redis")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return l.onFreePort(func(port int) error {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
		defer client.Close()
		config := filepath.Join(dir, "redis.conf")
		// A title of its own would be written over its environment, by which
		// a left-over process is known.
		text := fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %q\nsave \"\"\nappendonly no\ndaemonize no\nmaxclients 4000\nset-proc-title no\n", port, dir)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return err
		}
		err := l.start(ctx, spec{
			name: "redis", path: path, args: []string{config}, dir: dir, patience: 20 * time.Second,
			ready: func(ctx context.Context, _ string) (bool, error) { return client.Ping(ctx).Err() == nil, nil },
		})
		if err == nil {
			l.into.Addresses["redis"] = address
		}
		return err
	})
}

// redisEnv tells a service where Redis is.
func (r *Rig) redisEnv() string {
	return "LAB_REDIS_URL=redis://" + r.state.Backing["redis"].Addresses["redis"]
}
