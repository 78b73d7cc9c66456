package ladder

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"plimsoll.dev/lab/internal/ladder/ladderpb"
	"plimsoll.dev/lab/internal/service"
)

// open creates a ladder service with these flags. The end-to-end tests test the
// steps with real stores.

func open(t *testing.T, args ...string) (service.Served, error) {
	t.Helper()
	var c Config
	fs := pflag.NewFlagSet("ladder", pflag.ContinueOnError)
	c.Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := c.Settle(fs); err != nil {
		return service.Served{}, err
	}
	return c.Open(context.Background(), service.Env{Log: slog.New(slog.DiscardHandler)})
}

func TestHTTPWithoutStores(t *testing.T) {
	served, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/empty", 200},
		{"GET", "/healthz", 200},
		{"GET", "/redis", 503},
		{"GET", "/sql", 503},
		{"GET", "/sql?app_id=1&token=", 400},
		{"GET", "/sql?app_id=-1&token=x", 400},
		{"GET", "/sql?token=x", 400},
		{"GET", "/sql?app_id=1&token=" + strings.Repeat("x", 33), 400},
		{"POST", "/empty", 405},
		{"GET", "/", 404},
	} {
		w := httptest.NewRecorder()
		served.Handler.ServeHTTP(w, httptest.NewRequest(row.method, row.path, nil))
		var failed service.ErrorBody
		json.Unmarshal(w.Body.Bytes(), &failed)
		if w.Code != row.status || row.status >= 400 && failed.Error.Status != row.status {
			t.Errorf("%s %s: %d %s", row.method, row.path, w.Code, w.Body)
		}
	}
}

func TestRPCWithoutStores(t *testing.T) {
	served, err := open(t, "--grpc-listen=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+served.Extra["grpc"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client, ctx := ladderpb.NewLadderClient(conn), context.Background()
	if _, err := client.Empty(ctx, &ladderpb.EmptyRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := client.Redis(ctx, &ladderpb.RedisRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("redis: %v", err)
	}
	if _, err := client.Sql(ctx, &ladderpb.SqlRequest{AppId: 1, Token: "x"}); status.Code(err) != codes.Unavailable {
		t.Errorf("sql: %v", err)
	}
	if _, err := client.Sql(ctx, &ladderpb.SqlRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("sql without token: %v", err)
	}
	served.Drain(ctx)
	if _, err := client.Empty(ctx, &ladderpb.EmptyRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("after drain: %v", err)
	}
}

func TestBadSwitches(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, row := range []struct{ arg, says string }{
		{"--index=maybe", "--index is on or off"},
		{"--redis-pool-size=0", "above 0"},
		{"--sql-max-idle=-1", "0 or more"},
		{"--redis-url=http://x", "--redis-url"},
		{"--redis-url=redis://127.0.0.1:1", "Redis at 127.0.0.1:1 does not answer"},
		{"--mysql-dsn=nonsense", "--mysql-dsn"},
		{"--mysql-dsn=u:p@tcp(127.0.0.1:1)/lab", "the database at 127.0.0.1:1 cannot be used"},
		{"--grpc-listen=" + taken.Addr().String(), "is taken by another program"},
	} {
		if _, err := open(t, row.arg); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.arg, err, row.says)
		}
	}
}
