// The HTTP endpoints. A request has a step's name in its path and the step's
// arguments as JSON. The gateway makes a gRPC call and returns the reply as JSON.

package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"plimsoll.dev/lab/internal/gamerecord"
	"plimsoll.dev/lab/internal/ladder/ladderpb"
	"plimsoll.dev/lab/internal/service"
)

// Config contains the switches of the gateway.
type Config struct {
	Backends []string
	PoolSize int
	Cookies  string
	Timeout  time.Duration
}

// Flags adds a flag for each switch.
func (c *Config) Flags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.Backends, "backends", nil, "gRPC addresses of ladder servers, host:port; calls go to them in turn")
	fs.IntVar(&c.PoolSize, "pool-size", 10, "idle connections kept to each back end; a call that finds none dials")
	fs.StringVar(&c.Cookies, "cookies", "cheap", "how the Cookie header is read: expensive or cheap")
	fs.DurationVar(&c.Timeout, "timeout", 30*time.Second, "how long a call may take")
}

// Settle checks the values of the switches.
func (c *Config) Settle(*pflag.FlagSet) error {
	if len(c.Backends) == 0 {
		return fmt.Errorf("--backends is missing: give the gRPC address of one ladder server or more")
	}
	for _, address := range c.Backends {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("--backends wants host:port, not %q", address)
		}
	}
	if c.PoolSize <= 0 || c.Timeout <= 0 {
		return fmt.Errorf("--pool-size and --timeout are above 0")
	}
	if _, ok := cookieReaders[c.Cookies]; !ok {
		return fmt.Errorf("--cookies is expensive or cheap, not %q", c.Cookies)
	}
	return nil
}

// Open creates the service. The start also succeeds if a back end is down. The
// back end may start later; until then calls return an error.
func (c *Config) Open(_ context.Context, env service.Env) (service.Served, error) {
	g := gateway{
		backends: newBackends(c.Backends, c.PoolSize),
		cookies:  cookieReaders[c.Cookies],
		timeout:  c.Timeout,
		log:      env.Log,
	}
	return service.Served{Handler: g, Close: g.backends.close}, nil
}

type gateway struct {
	backends *backends
	cookies  cookieReader
	timeout  time.Duration
	log      *slog.Logger
}

// step is one gRPC method of the ladder, with a function that creates the messages
// of a call.
type step struct {
	method string
	fresh  func() (request, reply proto.Message)
}

var steps = map[string]step{
	"/empty": {ladderpb.Ladder_Empty_FullMethodName, func() (proto.Message, proto.Message) {
		return &ladderpb.EmptyRequest{}, &ladderpb.EmptyReply{}
	}},
	"/redis": {ladderpb.Ladder_Redis_FullMethodName, func() (proto.Message, proto.Message) {
		return &ladderpb.RedisRequest{}, &ladderpb.RedisReply{}
	}},
	"/sql": {ladderpb.Ladder_Sql_FullMethodName, func() (proto.Message, proto.Message) {
		return &ladderpb.SqlRequest{AppId: 1, Token: gamerecord.Token(0)}, &ladderpb.SqlReply{}
	}},
}

const bodyMax = 64 << 10

func (g gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}`))
		return
	}
	step, ok := steps[r.URL.Path]
	if !ok {
		service.WriteError(w, http.StatusNotFound, "there is no such step: there are /empty, /redis and /sql")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		service.WriteError(w, http.StatusMethodNotAllowed, "use GET, or POST with the request as JSON")
		return
	}
	request, reply := step.fresh()
	if problem, failed := readRequest(w, r, request); failed != 0 {
		service.WriteError(w, failed, problem)
		return
	}

	s := g.cookies(r.Header.Get("Cookie"))
	// The names end in "-bin", because a cookie may contain any bytes and other
	// metadata only ASCII.
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(r.Context(),
		"session-bin", s.id, "user-bin", s.user, "locale-bin", s.locale,
		"region-bin", s.region, "variant-bin", s.variant), g.timeout)
	defer cancel()
	err := g.backends.call(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
		return conn.Invoke(ctx, step.method, request, reply)
	})
	if err != nil {
		g.fail(w, r, err)
		return
	}
	body, err := protojson.Marshal(reply)
	if err != nil {
		g.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// readRequest decodes the JSON body of a POST into the message.
func readRequest(w http.ResponseWriter, r *http.Request, request proto.Message) (problem string, failed int) {
	if r.Method != http.MethodPost {
		return "", 0
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		return fmt.Sprintf("the body cannot be read or is longer than %d bytes", bodyMax), http.StatusRequestEntityTooLarge
	}
	if err := protojson.Unmarshal(body, request); err != nil {
		name := request.ProtoReflect().Descriptor().Name()
		return fmt.Sprintf("the body is not the JSON of %s %s", name, fieldNames(request)), http.StatusBadRequest
	}
	return "", 0
}

// fieldNames lists the fields that the JSON of a message may contain.
func fieldNames(m proto.Message) string {
	fields := m.ProtoReflect().Descriptor().Fields()
	names := "{"
	for i := range fields.Len() {
		if i > 0 {
			names += ", "
		}
		names += fields.Get(i).JSONName()
	}
	return names + "}"
}

func (g gateway) fail(w http.ResponseWriter, r *http.Request, err error) {
	s := status.Convert(err)
	code, message := http.StatusBadGateway, "the back end failed"
	switch s.Code() {
	case codes.Canceled:
		return // the client has gone away
	case codes.InvalidArgument:
		code, message = http.StatusBadRequest, s.Message()
	case codes.DeadlineExceeded:
		code, message = http.StatusGatewayTimeout, "the back end did not answer in time"
	case codes.Unavailable:
		code, message = http.StatusServiceUnavailable, "the back end does not answer"
	}
	g.log.Error("call", "path", r.URL.Path, "code", s.Code().String(), "cause", s.Message())
	service.WriteError(w, code, message)
}
