// Command baseline is a minimal HTTP server: net/http alone, one endpoint, no
// router and no log line for each request. The throughput of every other
// service is stated as a share of this server's throughput on the same
// machine. The server is no example of good practice and gets no features.
package main

import (
	"context"
	"net/http"
	"os"

	"plimsoll.dev/lab/internal/service"
)

func main() {
	os.Exit(service.Main(service.Program{
		Name:  "baseline",
		About: "net/http alone: GET /healthz answers {\"status\":\"ok\"}.",
		Open: func(context.Context, service.Env) (service.Served, error) {
			return service.Served{Handler: http.HandlerFunc(serve)}, nil
		},
	}))
}

var healthy = []byte(`{"status":"ok"}`)

func serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/healthz":
		service.WriteError(w, http.StatusNotFound, "no such endpoint: this server has /healthz only")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		service.WriteError(w, http.StatusMethodNotAllowed, "use GET or HEAD")
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(healthy) // an error means that the client has gone away
	}
}
