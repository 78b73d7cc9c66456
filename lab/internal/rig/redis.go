// Starts a private Redis without files on disk, on loopback only.

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
		// Redis must not set its process title, because the title would overwrite
		// the environment variable by which the lab recognises its processes.
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

// redisEnv returns the environment variable with the address of Redis.
func (r *Rig) redisEnv() string {
	return "LAB_REDIS_URL=redis://" + r.state.Backing["redis"].Addresses["redis"]
}
