// Pinning where the system has no call for it: refused, not ignored.

//go:build !linux

package service

import "errors"

func pin(cpus []int) error {
	if len(cpus) > 0 {
		return errors.New("--cpus works on Linux only")
	}
	return nil
}
