// Package rig starts and ends what a case of the lab needs: Redis, MariaDB and
// nginx as private copies on free ports, and the services before them.
//
// All of it lives in one folder, the cache. What was started is written down
// there the moment it runs, so that a start that was cut off is cleaned up by
// the next, and a process is only ever ended when its id and its start time
// are both those that were written down. The machine's own databases, their
// folders and their ports are never looked at.
package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// marker is the file that says that a folder is the lab's.
const marker = ".plimsoll-lab"

// DefaultCache is the folder under the user's cache.
func DefaultCache() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no cache folder for this user (%w): give one with --cache", err)
	}
	return filepath.Join(base, "plimsoll-lab"), nil
}

// openCache makes the folder, or refuses one that holds something else.
func openCache(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the lab's folder cannot be made: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the lab's folder cannot be read: %w", err)
	}
	path := filepath.Join(dir, marker)
	if len(entries) > 0 {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s is not empty and not the lab's: give another folder with --cache", dir)
		}
	}
	for _, sub := range []string{"logs", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return fmt.Errorf("the lab's folder cannot be written: %w", err)
		}
	}
	if err := os.WriteFile(path, []byte("What is here belongs to plimsoll's lab and may be deleted when nothing of it runs.\n"), 0o600); err != nil {
		return fmt.Errorf("the lab's folder cannot be written: %w", err)
	}
	return nil
}

// lockCache lets one up or down at a time work in the folder. The lock goes
// with the process that holds it.
func lockCache(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the lab's folder cannot be locked: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintln(os.Stderr, "lab: waiting for another up or down to finish")
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("the lab's folder cannot be locked: %w", err)
		}
	}
	return func() { file.Close() }, nil
}

// checkRoom says when a folder's disk has less room than is needed.
func checkRoom(dir string, need uint64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("the disk room of %s cannot be read: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < need {
		return fmt.Errorf("no disk room: %s has %d MiB free and this needs %d MiB", dir, free>>20, need>>20)
	}
	return nil
}
