// Serves the steps of the ladder over HTTP.

package ladder

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"plimsoll.dev/lab/internal/gamerecord"
	"plimsoll.dev/lab/internal/service"
)

type server struct {
	store store
	log   *slog.Logger
}

// router returns the handler of the three steps. The router of net/http suffices.
func (s server) router() http.Handler {
	steps := map[string]http.HandlerFunc{
		"/empty":   func(http.ResponseWriter, *http.Request) {},
		"/redis":   s.redis,
		"/sql":     s.sql,
		"/healthz": healthz,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		step, ok := steps[r.URL.Path]
		switch {
		case !ok:
			service.WriteError(w, http.StatusNotFound, "there is no such step: there are /empty, /redis and /sql")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			service.WriteError(w, http.StatusMethodNotAllowed, "use GET or HEAD")
		default:
			step(w, r)
		}
	})
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"ok"}`))
}

func (s server) redis(w http.ResponseWriter, r *http.Request) {
	if err := s.store.get(r.Context()); err != nil {
		s.fail(w, r, err)
	}
}

func (s server) sql(w http.ResponseWriter, r *http.Request) {
	app, token, err := Owner(r.URL.Query().Get("app_id"), r.URL.Query().Get("token"))
	if err != nil {
		service.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	records, err := s.store.records(r.Context(), app, token)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	body, err := json.Marshal(struct {
		Records []gamerecord.Record `json:"records"`
	}{records})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// Owner parses the owner whose records are requested. If both values are empty, it
// returns the first owner.
func Owner(app, token string) (uint32, string, error) {
	if app == "" && token == "" {
		return 1, gamerecord.Token(0), nil
	}
	id, err := strconv.ParseUint(app, 10, 32)
	if err != nil {
		return 0, "", errors.New("app_id is a number from 0 to 4294967295")
	}
	if token == "" || len(token) > 32 {
		return 0, "", errors.New("token has 1 to 32 bytes")
	}
	return uint32(id), token, nil
}

func (s server) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, context.Canceled):
		return // the client has gone away
	case errors.Is(err, errNoRedis), errors.Is(err, errNoSQL):
		service.WriteError(w, http.StatusServiceUnavailable, err.Error())
	default:
		s.log.Error("store", "path", r.URL.Path, "cause", err.Error())
		service.WriteError(w, http.StatusServiceUnavailable, "the store behind this step does not answer")
	}
}
