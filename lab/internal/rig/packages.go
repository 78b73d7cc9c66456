// Finds and installs the needed programs of other projects, from Debian packages.

package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packageOf lists all needed programs with their Debian packages.
var packageOf = map[string]string{
	"redis-server":       "redis-server",
	"mariadbd":           "mariadb-server-core",
	"mariadb-install-db": "mariadb-server-core",
	// mariadb-install-db runs this program, but the server's package does not
	// depend on it.
	"my_print_defaults": "mariadb-client-core",
	"nginx":             "nginx-light",
	"node":              "nodejs",
	"wrk":               "wrk",
}

// host contains the functions of the machine that an installation needs. Tests
// replace them.
type host struct {
	find    func(program string) (string, error)
	root    bool
	install func(ctx context.Context, packages []string) error
}

func thisHost() host {
	return host{find: findProgram, root: os.Geteuid() == 0, install: aptInstall}
}

// findProgram returns the path of a program. It also searches the folders for
// servers, which a user's PATH may lack.
func findProgram(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is missing", program)
}

// require checks that programs exist, and installs missing ones if it runs as
// root.
func (h host) require(ctx context.Context, programs ...string) error {
	missing := func() (packages []string) {
		for _, program := range programs {
			if _, err := h.find(program); err != nil && !slices.Contains(packages, packageOf[program]) {
				packages = append(packages, packageOf[program])
			}
		}
		return packages
	}
	packages := missing()
	if len(packages) == 0 {
		return nil
	}
	list := strings.Join(packages, " ")
	if !h.root {
		return fmt.Errorf("missing: install with `apt-get install --no-install-recommends %s` as root", list)
	}
	fmt.Fprintf(os.Stderr, "lab: installing %s\n", list)
	if err := h.install(ctx, packages); err != nil {
		return fmt.Errorf("%s cannot be installed: %w", list, err)
	}
	if still := missing(); len(still) > 0 {
		return fmt.Errorf("%s is still missing after its install: look at `apt-get install %[1]s`", strings.Join(still, " "))
	}
	return nil
}

// Require checks that programs exist on this machine, and installs missing ones if
// it runs as root.
func Require(ctx context.Context, programs ...string) error {
	return thisHost().require(ctx, programs...)
}

// policyFile is the script that Debian packages ask whether to start their service.
const policyFile = "/usr/sbin/policy-rc.d"

// aptInstall installs packages without starting their services, because the lab
// runs its own copies.
func aptInstall(ctx context.Context, packages []string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("there is no apt-get here; install it by this system's own means")
	}
	if _, err := os.Stat(policyFile); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(policyFile, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
			return err
		}
		defer os.Remove(policyFile)
	}
	install := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	for _, arguments := range [][]string{{"update"}, install} {
		command := exec.CommandContext(ctx, "apt-get", arguments...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s said %q", arguments[0], lastLine(output))
		}
	}
	return nil
}

// lastLine returns the last line that is not empty.
func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}
