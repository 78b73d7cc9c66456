// Package rig starts and ends the processes that a case of the lab needs: private
// copies of Redis, MariaDB and nginx on free ports, and the services in front of
// them.
//
// All files are in one folder, the cache. Each process is recorded there as soon
// as it runs, so that the next start cleans up after an interrupted start. A
// process is ended only if its id and its start time equal the recorded ones. The
// machine's own databases, their folders and their ports are never used.
package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// marker is the name of the file that marks a folder as a cache of the lab.
const marker = ".plimsoll-lab"

// DefaultCache returns the default folder of the lab, in the user's cache folder.
func DefaultCache() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no cache folder for this user (%w): give one with --cache", err)
	}
	return filepath.Join(base, "plimsoll-lab"), nil
}

// openCache creates the cache folder. Fails if the folder contains other files.
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

// lockCache locks the folder, so that only one up or down works in it at a time.
// The lock ends with the process that has it.
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

// checkRoom returns an error if the disk of a folder has less free space than
// needed.
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
