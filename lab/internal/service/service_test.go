package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// started is a program under test that runs in the test's process.
type started struct {
	url    string
	stop   context.CancelFunc
	status chan int
	stderr *bytes.Buffer
}

func start(t *testing.T, p Program, args ...string) started {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	out, outWriter := io.Pipe()
	s := started{stop: cancel, status: make(chan int, 1), stderr: new(bytes.Buffer)}
	go func() {
		s.status <- Run(ctx, p, args, outWriter, s.stderr)
		outWriter.Close()
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("no address line: %v; status %d, said %q", err, <-s.status, s.stderr)
	}
	go io.Copy(io.Discard, out)
	var address struct{ URL string }
	if err := json.Unmarshal(line, &address); err != nil {
		t.Fatalf("address line %q: %v", line, err)
	}
	s.url = address.URL
	return s
}

func program(handler http.HandlerFunc) Program {
	return Program{Name: "sample", About: "A sample.", Open: func(context.Context, Env) (Served, error) {
		return Served{Handler: handler}, nil
	}}
}

func TestRequestInFlightFinishesAfterStop(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := start(t, program(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		io.WriteString(w, "whole")
	}))
	body := make(chan string, 1)
	go func() {
		resp, err := http.Get(s.url)
		if err != nil {
			body <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		body <- string(text)
	}()
	<-entered
	s.stop()
	waitRefused(t, s.url)
	close(release)
	if got := <-body; got != "whole" {
		t.Errorf("the request in flight got %q", got)
	}
	if status := <-s.status; status != 0 {
		t.Errorf("exit status %d: %s", status, s.stderr)
	}
}

func TestStopCutsOffAfterItsTimeout(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	s := start(t, program(func(http.ResponseWriter, *http.Request) { close(entered); <-release }), "--shutdown-timeout=50ms")
	go http.Get(s.url)
	<-entered
	s.stop()
	if status := <-s.status; status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	if !strings.Contains(s.stderr.String(), "still in flight after 50ms") {
		t.Errorf("said %q", s.stderr)
	}
}

// waitRefused waits until the server refuses new connections.
func waitRefused(t *testing.T, url string) {
	t.Helper()
	for range 500 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			return
		}
		conn.Close()
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server still accepts after stop")
}

func TestKeepAliveSwitch(t *testing.T) {
	for _, row := range []struct {
		args   []string
		closes bool
	}{
		{nil, false},
		{[]string{"--keepalive=on"}, false},
		{[]string{"--keepalive=off"}, true},
	} {
		s := start(t, program(func(http.ResponseWriter, *http.Request) {}), row.args...)
		resp, err := http.Get(s.url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Close != row.closes {
			t.Errorf("%v: Connection: close is %v, want %v", row.args, resp.Close, row.closes)
		}
		s.stop()
		<-s.status
	}
}

func TestBadStarts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	fine := program(func(http.ResponseWriter, *http.Request) {})
	broken := fine
	broken.Open = func(context.Context, Env) (Served, error) { return Served{}, errors.New("no database") }
	unsettled := fine
	unsettled.Flags = func(fs *pflag.FlagSet) { fs.String("colour", "red", "") }
	unsettled.Settle = func(*pflag.FlagSet) error { return errors.New("no such colour") }

	for _, row := range []struct {
		name   string
		p      Program
		args   []string
		status int
		says   string
	}{
		{"port taken", fine, []string{"--listen", taken.Addr().String()}, 1, "is taken by another program"},
		{"address without port", fine, []string{"--listen", "nowhere"}, 2, "--listen wants HOST:PORT"},
		{"address of another machine", fine, []string{"--listen", "192.0.2.1:0"}, 1, "cannot listen on 192.0.2.1:0"},
		{"keepalive", fine, []string{"--keepalive", "maybe"}, 2, "--keepalive is on or off"},
		{"log level", fine, []string{"--log-level", "loud"}, 1, "debug, info, warn or error"},
		{"log level offset", fine, []string{"--log-level", "info+2"}, 1, "debug, info, warn or error"},
		{"timeout", fine, []string{"--shutdown-timeout", "0s"}, 2, "a time above 0"},
		{"core", fine, []string{"--cpus", "-1"}, 2, "no core -1"},
		{"core beyond the machine", fine, []string{"--cpus", "1000"}, 2, "cannot run on the cores"},
		{"unknown flag", fine, []string{"--speed", "9"}, 2, "unknown flag"},
		{"stray word", fine, []string{"fast"}, 2, "takes flags only"},
		{"open fails", broken, nil, 1, "no database"},
		{"settle fails", unsettled, nil, 2, "no such colour"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := Run(context.Background(), row.p, row.args, &stdout, &stderr)
			if status != row.status || !strings.Contains(stderr.String(), row.says) {
				t.Errorf("status %d, said %q; want %d and %q", status, &stderr, row.status, row.says)
			}
			if lines := strings.Count(stderr.String(), "\n"); lines != 1 {
				t.Errorf("%d lines, want one sentence: %q", lines, &stderr)
			}
			if stdout.Len() > 0 {
				t.Errorf("an address was printed for a start that failed: %q", &stdout)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := Run(context.Background(), program(nil), []string{"--help"}, &stdout, &stderr); status != 0 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{"A sample.", "--listen", "--keepalive", "--shutdown-timeout"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in the help: %s", want, &stdout)
		}
	}
}
