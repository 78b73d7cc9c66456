// Package service contains the common part of all Go programs of the lab: read
// flags, listen, print the address, serve, and stop without breaking a request.
// The package knows no endpoint and no database.
//
// The contract with the program that starts a service:
//   - the first line on standard output is one JSON object with the address
//     (so port 0 works), written once the port is open;
//   - log lines are JSON on standard error unless a program says otherwise;
//   - SIGTERM or SIGINT stops accepting, lets requests in flight finish, and
//     ends with status 0; a failed start is one sentence and status 1, a bad
//     flag status 2.
package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// Program describes a service: its name, its own flags, and how it starts.
type Program struct {
	Name  string
	About string
	// Flags adds the program's own flags; nil if the program has none.
	Flags func(*pflag.FlagSet)
	// Settle is called after the flags are read and before the port opens. It may
	// read a configuration file or refuse a flag's value.
	Settle func(*pflag.FlagSet) error
	// Log creates the program's logger; nil means JSON on standard error at the
	// level of --log-level.
	Log func() (*slog.Logger, func() error, error)
	// Open creates the handler after Settle was called.
	Open func(context.Context, Env) (Served, error)
}

// Env contains the values that a program gets when it starts.
type Env struct {
	Log *slog.Logger
}

// Served is a started program: its handler, and the functions that end it.
type Served struct {
	Handler http.Handler
	// Extra is added to the address line, such as the address of a second listener.
	Extra map[string]string
	// Drain ends further servers beside Handler, and lets calls in flight finish.
	Drain func(context.Context)
	// Close frees the resources of Open, after the last response.
	Close func() error
}

// common contains the flags that every program of the lab has.
type common struct {
	listen          string
	keepAlive       string
	shutdownTimeout time.Duration
	cpus            []int
	logLevel        string
}

func (c *common) add(fs *pflag.FlagSet, ownLog bool) {
	fs.StringVar(&c.listen, "listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one, which is printed")
	fs.StringVar(&c.keepAlive, "keepalive", "on", "on: connections are used again; off: each is closed after its answer")
	fs.DurationVar(&c.shutdownTimeout, "shutdown-timeout", 10*time.Second, "how long requests in flight may take to finish after SIGTERM")
	fs.IntSliceVar(&c.cpus, "cpus", nil, "run on these cores only, such as 0 or 0,1 (default: all)")
	if !ownLog {
		fs.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error")
	}
}

func (c *common) check() error {
	if c.keepAlive != "on" && c.keepAlive != "off" {
		return fmt.Errorf("--keepalive is on or off, not %q", c.keepAlive)
	}
	if _, _, err := net.SplitHostPort(c.listen); err != nil {
		return fmt.Errorf("--listen wants HOST:PORT, such as 127.0.0.1:0, not %q", c.listen)
	}
	if c.shutdownTimeout <= 0 {
		return fmt.Errorf("--shutdown-timeout wants a time above 0, not %s", c.shutdownTimeout)
	}
	return nil
}

// Main runs a program with the process's own arguments, streams and signals,
// and returns its exit status.
func Main(p Program) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return Run(ctx, p, os.Args[1:], os.Stdout, os.Stderr)
}

// Run is like Main, but gets arguments and streams as parameters. It serves until
// ctx is done.
func Run(ctx context.Context, p Program, args []string, stdout, stderr io.Writer) int {
	var c common
	fs := pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.SortFlags = false
	fs.Usage = func() {}
	c.add(fs, p.Log != nil)
	if p.Flags != nil {
		p.Flags(fs)
	}
	complain := func(status int, err error) int {
		fmt.Fprintf(stderr, "%s: %s\n", p.Name, err)
		return status
	}

	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(stdout, "%s: %s\n\nUsage: %s [flags]\n\n%s", p.Name, p.About, p.Name, fs.FlagUsages())
		return 0
	case err != nil:
		return complain(2, fmt.Errorf("%w (see --help)", err))
	case fs.NArg() > 0:
		return complain(2, fmt.Errorf("takes flags only, not %q (see --help)", fs.Arg(0)))
	}
	if p.Settle != nil {
		if err := p.Settle(fs); err != nil {
			return complain(2, err)
		}
	}
	if err := c.check(); err != nil {
		return complain(2, err)
	}
	if err := pin(c.cpus); err != nil {
		return complain(2, err)
	}
	if err := serve(ctx, p, c, stdout, stderr); err != nil {
		return complain(1, err)
	}
	return 0
}

func serve(ctx context.Context, p Program, c common, stdout, stderr io.Writer) error {
	makeLog := p.Log
	if makeLog == nil {
		makeLog = func() (*slog.Logger, func() error, error) {
			level, err := ParseLevel(c.logLevel)
			if err != nil {
				return nil, nil, err
			}
			return slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})), nil, nil
		}
	}
	log, closeLog, err := makeLog()
	if err != nil {
		return err
	}
	if closeLog != nil {
		defer closeLog()
	}

	// The port is opened first, so that a used port is reported before any
	// database is contacted.
	listener, err := Listen(c.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	served, err := p.Open(ctx, Env{Log: log})
	if err != nil {
		return err
	}
	if served.Close != nil {
		defer served.Close()
	}

	server := &http.Server{
		Handler:           served.Handler,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	server.SetKeepAlivesEnabled(c.keepAlive == "on")
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()

	if err := announce(stdout, p.Name, listener.Addr(), served.Extra); err != nil {
		return fmt.Errorf("the address cannot be written to standard output: %w", err)
	}
	log.Info("listening", "service", p.Name, "address", listener.Addr().String(), "keepalive", c.keepAlive)

	select {
	case err := <-done:
		return fmt.Errorf("serving stopped: %w", err)
	case <-ctx.Done():
	}
	log.Info("stopping: requests in flight may finish", "service", p.Name, "timeout", c.shutdownTimeout.String())
	grace, cancel := context.WithTimeout(context.Background(), c.shutdownTimeout)
	defer cancel()
	err = server.Shutdown(grace)
	if served.Drain != nil {
		served.Drain(grace)
	}
	if err != nil {
		return fmt.Errorf("requests were still in flight after %s and were cut off", c.shutdownTimeout)
	}
	log.Info("stopped", "service", p.Name)
	return nil
}

// Listen opens a TCP port. If the port is used, the error is one sentence.
func Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is taken by another program: give another port, or port 0 for a free one", address)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return listener, nil
}

func announce(w io.Writer, name string, address net.Addr, extra map[string]string) error {
	line := map[string]any{
		"service": name,
		"listen":  address.String(),
		"url":     "http://" + address.String(),
		"pid":     os.Getpid(),
	}
	for key, value := range extra {
		line[key] = value
	}
	return json.NewEncoder(w).Encode(line)
}

// ParseLevel parses the name of a log level.
func ParseLevel(name string) (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil || strings.ContainsAny(name, "+-") {
		return 0, fmt.Errorf("the log level is debug, info, warn or error, not %q", name)
	}
	return level, nil
}
