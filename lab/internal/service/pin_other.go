// Refuses to pin a service on systems that have no call for pinning.

//go:build !linux

package service

import "errors"

func pin(cpus []int) error {
	if len(cpus) > 0 {
		return errors.New("--cpus works on Linux only")
	}
	return nil
}
