package flashsale

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mailru/easyjson"
	"github.com/spf13/pflag"

	"plimsoll.dev/lab/internal/service"
)

// TestBothWaysMakeTheSameJSON compares the two encoders of the list. The
// end-to-end tests test orders with a real Redis.

func TestBothWaysMakeTheSameJSON(t *testing.T) {
	list := NewCatalogue()
	reflected, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	generated, err := easyjson.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(reflected, generated) {
		t.Errorf("reflect\n%s\ngenerated\n%s", reflected, generated)
	}
	if n := len(reflected); n < 7<<10 || n > 9<<10 {
		t.Errorf("the list has %d bytes, want about 8 KB", n)
	}
}

func open(t *testing.T, args ...string) (service.Served, error) {
	t.Helper()
	var c Config
	fs := pflag.NewFlagSet("flashsale", pflag.ContinueOnError)
	c.Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := c.Settle(fs); err != nil {
		return service.Served{}, err
	}
	return c.Open(context.Background(), service.Env{Log: slog.New(slog.DiscardHandler)})
}

func TestListOfEitherSwitch(t *testing.T) {
	for _, how := range []string{"reflect", "generated"} {
		served, err := open(t, "--json", how)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		served.Handler.ServeHTTP(w, httptest.NewRequest("GET", "/event/list", nil))
		var list EventList
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
			t.Fatalf("%s: %d, %v", how, w.Code, err)
		}
		if len(list.Events) != 10 || len(list.Events[9].Goods) != 10 || !list.has(10, 1010) || list.has(10, 101) {
			t.Errorf("%s: %+v", how, list)
		}
	}
}

func TestWithoutRedis(t *testing.T) {
	served, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/event/1/order", 503},
		{"GET", "/event/1/stock", 503},
		{"GET", "/event/1/order", 405},
		{"GET", "/", 404},
	} {
		w := httptest.NewRecorder()
		served.Handler.ServeHTTP(w, httptest.NewRequest(row.method, row.path, nil))
		var body service.ErrorBody
		if json.Unmarshal(w.Body.Bytes(), &body); w.Code != row.status || body.Error.Status != row.status {
			t.Errorf("%s %s: %d %s", row.method, row.path, w.Code, w.Body)
		}
	}
}

func TestBadSwitches(t *testing.T) {
	for _, row := range []struct{ arg, says string }{
		{"--json=fast", "--json is reflect or generated"},
		{"--redis-pool-size=0", "--redis-pool-size"},
		{"--stock=-2", "--stock"},
		{"--redis-url=http://x", "--redis-url"},
		{"--redis-url=redis://127.0.0.1:1", "cannot be put into Redis at 127.0.0.1:1"},
	} {
		if _, err := open(t, row.arg); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", row.arg, err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	list := NewCatalogue()
	b.Run("reflect", func(b *testing.B) {
		for b.Loop() {
			json.Marshal(list)
		}
	})
	b.Run("generated", func(b *testing.B) {
		for b.Loop() {
			easyjson.Marshal(list)
		}
	})
}
