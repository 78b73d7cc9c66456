package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"plimsoll.dev/lab/internal/ladder/ladderpb"
	"plimsoll.dev/lab/internal/service"
)

// backEnd is a real gRPC server whose responses the tests choose.
type backEnd struct {
	ladderpb.UnimplementedLadderServer
	address string
	mu      sync.Mutex
	seen    metadata.MD
	calls   int
	hold    chan struct{} // if set, Empty waits for this channel
}

func (b *backEnd) Empty(ctx context.Context, _ *ladderpb.EmptyRequest) (*ladderpb.EmptyReply, error) {
	b.mu.Lock()
	b.calls++
	b.seen, _ = metadata.FromIncomingContext(ctx)
	hold := b.hold
	b.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return &ladderpb.EmptyReply{}, nil
}

func (b *backEnd) Redis(context.Context, *ladderpb.RedisRequest) (*ladderpb.RedisReply, error) {
	return nil, errors.New("broken")
}

func (b *backEnd) Sql(_ context.Context, in *ladderpb.SqlRequest) (*ladderpb.SqlReply, error) {
	if in.GetToken() == "" {
		return nil, status.Error(codes.InvalidArgument, "token has 1 to 32 bytes")
	}
	return &ladderpb.SqlReply{Records: []*ladderpb.Record{{Id: 7, AppId: in.GetAppId(), Token: in.GetToken()}}}, nil
}

func startBackEnd(t *testing.T) *backEnd {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backEnd{address: listener.Addr().String()}
	server := grpc.NewServer()
	ladderpb.RegisterLadderServer(server, b)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return b
}

func open(t *testing.T, args ...string) (service.Served, error) {
	t.Helper()
	var c Config
	fs := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
	c.Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := c.Settle(fs); err != nil {
		return service.Served{}, err
	}
	served, err := c.Open(context.Background(), service.Env{Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Cleanup(func() { served.Close() })
	}
	return served, err
}

func ask(served service.Served, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Cookie", "a=b; sid=s%2F1; user=J\xf6rg")
	w := httptest.NewRecorder()
	served.Handler.ServeHTTP(w, r)
	return w
}

func TestSteps(t *testing.T) {
	for _, cookies := range []string{"expensive", "cheap"} {
		b := startBackEnd(t)
		served, err := open(t, "--backends="+b.address, "--cookies="+cookies, "--timeout=5s")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			method, path, body string
			status             int
			says               string
		}{
			{"GET", "/empty", "", 200, "{}"},
			{"POST", "/empty", "{}", 200, "{}"},
			{"GET", "/sql", "", 200, `"token-00"`},
			{"POST", "/sql", `{"appId":3,"token":"token-09"}`, 200, `"token-09"`},
			{"POST", "/sql", `{"token":""}`, 400, "token has"},
			{"POST", "/sql", `{"appid":3}`, 400, "not the JSON of SqlRequest {appId, token}"},
			{"POST", "/sql", `{"appId":-3}`, 400, "not the JSON"},
			{"POST", "/sql", ``, 400, "not the JSON"},
			{"POST", "/sql", strings.Repeat(" ", bodyMax+1), 413, "longer than"},
			{"GET", "/redis", "", 502, "the back end failed"},
			{"DELETE", "/empty", "", 405, "use GET"},
			{"GET", "/nowhere", "", 404, "no such step"},
			{"GET", "/healthz", "", 200, "ok"},
		} {
			w := ask(served, row.method, row.path, row.body)
			var failed service.ErrorBody
			json.Unmarshal(w.Body.Bytes(), &failed)
			if w.Code != row.status || !strings.Contains(w.Body.String(), row.says) || row.status >= 400 && failed.Error.Status != row.status {
				t.Errorf("%s %s %.40s: %d %s", row.method, row.path, row.body, w.Code, w.Body)
			}
		}
		if got := b.seen.Get("session-bin"); len(got) != 1 || got[0] != "s/1" {
			t.Errorf("the back end saw session %q", got)
		}
		if got := b.seen.Get("user-bin"); len(got) != 1 || got[0] != "J\xf6rg" {
			t.Errorf("the back end saw user %q", got)
		}
	}
}

func TestBackEndDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	served, err := open(t, "--backends="+address)
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(served, "GET", "/empty", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "does not answer") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestBackEndTooSlow(t *testing.T) {
	b := startBackEnd(t)
	b.hold = make(chan struct{})
	defer close(b.hold)
	served, err := open(t, "--backends="+b.address, "--timeout=50ms")
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(served, "GET", "/empty", ""); w.Code != 504 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestBackEndsTakeTurns(t *testing.T) {
	a, b := startBackEnd(t), startBackEnd(t)
	served, err := open(t, "--backends="+a.address+","+b.address)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		ask(served, "GET", "/empty", "")
	}
	if a.calls != 5 || b.calls != 5 {
		t.Errorf("%d and %d calls", a.calls, b.calls)
	}
}

// TestPoolSizeDecidesDials checks the number of new connections by pool size. If
// the pool is as large as the calls in flight, only the first wave opens
// connections. With a pool of one, the other calls open a connection each time.
func TestPoolSizeDecidesDials(t *testing.T) {
	const inFlight, waves = 10, 5
	for _, row := range []struct {
		size     int
		min, max int64
	}{
		{1, inFlight + (waves-1)*(inFlight-1), waves * inFlight},
		{inFlight, 1, inFlight},
	} {
		b := startBackEnd(t)
		p := newPool(b.address, row.size)
		for range waves {
			b.mu.Lock()
			b.hold, b.calls = make(chan struct{}), 0
			hold := b.hold
			b.mu.Unlock()
			var calls sync.WaitGroup
			for range inFlight {
				calls.Go(func() {
					err := p.call(context.Background(), func(ctx context.Context, conn *grpc.ClientConn) error {
						_, err := ladderpb.NewLadderClient(conn).Empty(ctx, &ladderpb.EmptyRequest{})
						return err
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			for count := 0; count < inFlight; time.Sleep(time.Millisecond) { // until all calls are in flight
				b.mu.Lock()
				count = b.calls
				b.mu.Unlock()
			}
			close(hold)
			calls.Wait()
		}
		if dials := p.dials.Load(); dials < row.min || dials > row.max {
			t.Errorf("pool of %d: %d dials, want %d to %d", row.size, dials, row.min, row.max)
		}
		p.close()
	}
}

func TestBothCookieReadersAgree(t *testing.T) {
	full := session{"s1", "anna k", "en_GB", "eu", "b"}
	for _, row := range []struct {
		header string
		want   session
	}{
		{"", session{}},
		{"sid=s1; user=anna%20k; locale=en_GB; region=eu; variant=b", full},
		{"x=1;sid=s1;  user = anna%20k ;locale=en_GB;;region=eu; variant=b; y=", full},
		{"sid=first; sid=second", session{id: "first"}},
		{"sid=; user=%zz; locale=a=b", session{user: "%zz", locale: "a=b"}},
		{"no pairs here", session{}},
	} {
		for name, read := range cookieReaders {
			if got := read(row.header); got != row.want {
				t.Errorf("%s %q: %+v, want %+v", name, row.header, got, row.want)
			}
		}
	}
}

func TestBadSwitches(t *testing.T) {
	for _, row := range []struct {
		args []string
		says string
	}{
		{nil, "--backends is missing"},
		{[]string{"--backends=nowhere"}, "--backends wants host:port"},
		{[]string{"--backends=127.0.0.1:1", "--pool-size=0"}, "--pool-size"},
		{[]string{"--backends=127.0.0.1:1", "--cookies=none"}, "--cookies is expensive or cheap"},
	} {
		if _, err := open(t, row.args...); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%v: %v", row.args, err)
		}
	}
}

func BenchmarkCookies(b *testing.B) {
	header := "theme=dark; sid=4f3c2b1a0d9e8f7a; user=player%2017; locale=en_GB; region=eu; variant=b"
	for name, read := range cookieReaders {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				read(header)
			}
		})
	}
}
