package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"plimsoll.dev/lab/internal/service"
)

// open creates an API server without a database. The end-to-end tests test the
// users' endpoints with a real database.

func open(t *testing.T, log io.Writer, change func(*Config)) http.Handler {
	t.Helper()
	c, err := settle(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&c)
	}
	level, err := service.ParseLevel(c.LogLevel)
	if err != nil {
		t.Fatal(err)
	}
	served, err := c.Open(context.Background(), service.Env{Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: level}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { served.Close() })
	return served.Handler
}

func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestMiddlewaresAreChosenByName(t *testing.T) {
	for _, row := range []struct {
		name   string
		header string // response header that the middleware sets
		logs   string // log line that the middleware writes
	}{
		{"recovery", "", ""},
		{"requestid", "X-Request-Id", ""},
		{"context", "", ""},
		{"nocache", "Cache-Control", ""},
		{"secure", "X-Frame-Options", ""},
		{"cors", "Access-Control-Allow-Origin", ""},
		{"logger", "", `"msg":"request"`},
		{"dump", "", `"msg":"response dump"`},
	} {
		for _, on := range []bool{true, false} {
			var log bytes.Buffer
			h := open(t, &log, func(c *Config) {
				c.Middlewares = nil
				if on {
					c.Middlewares = []string{row.name}
				}
			})
			w := ask(h, "GET", "/healthz", "", "Origin", "http://page.example")
			if w.Code != 200 || w.Body.String() != `{"status":"ok"}` {
				t.Errorf("%s: %d %s", row.name, w.Code, w.Body)
			}
			if row.header != "" && (w.Header().Get(row.header) != "") != on {
				t.Errorf("%s on=%v: header %s is %q", row.name, on, row.header, w.Header().Get(row.header))
			}
			if row.logs != "" && strings.Contains(log.String(), row.logs) != on {
				t.Errorf("%s on=%v logged %s", row.name, on, &log)
			}
		}
	}
}

func TestRequestIDIsKeptAndLogged(t *testing.T) {
	var log bytes.Buffer
	h := open(t, &log, nil)
	w := ask(h, "GET", "/healthz", "", "X-Request-ID", "mine-1")
	if w.Header().Get("X-Request-ID") != "mine-1" || !strings.Contains(log.String(), `"request_id":"mine-1"`) {
		t.Errorf("id %q, log %s", w.Header().Get("X-Request-ID"), &log)
	}
	if w := ask(h, "GET", "/healthz", "", "X-Request-ID", strings.Repeat("x", 500)); len(w.Header().Get("X-Request-ID")) != 32 {
		t.Errorf("an overlong id was kept: %q", w.Header().Get("X-Request-ID"))
	}
}

func TestCORSPreflight(t *testing.T) {
	h := open(t, io.Discard, nil)
	w := ask(h, "OPTIONS", "/healthz", "", "Origin", "http://page.example", "Access-Control-Request-Method", "GET")
	if w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Methods") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestRecoveryAnswersJSON(t *testing.T) {
	var log bytes.Buffer
	router := newRouter([]string{"recovery"}, false, slog.New(slog.NewJSONHandler(&log, nil)))
	router.GET("/panic", func(*gin.Context) { panic("broken") })
	w := ask(router, "GET", "/panic", "")
	checkError(t, w, 500)
	if !strings.Contains(log.String(), "broken") {
		t.Errorf("the cause was not logged: %s", &log)
	}
}

func checkError(t *testing.T, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	var body service.ErrorBody
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != status || body.Error.Status != status || body.Error.Message == "" {
		t.Errorf("got %d %q, want a JSON error %d", w.Code, w.Body, status)
	}
}

func TestSadPaths(t *testing.T) {
	h := open(t, io.Discard, nil)
	withFiles := open(t, io.Discard, func(c *Config) { c.UploadDir = t.TempDir() })
	for _, row := range []struct {
		h            http.Handler
		method, path string
		status       int
	}{
		{h, "GET", "/nowhere", 404},
		{h, "POST", "/healthz", 405},
		{h, "POST", "/login", 503},
		{h, "GET", "/v1/users", 503},
		{h, "GET", "/v1/users/anna", 503},
		{h, "POST", "/v1/files", 401},
		{withFiles, "GET", "/v1/files/abc", 401},
		{h, "GET", "/metrics", 404},
		{h, "GET", "/debug/pprof/", 404},
	} {
		checkError(t, ask(row.h, row.method, row.path, ""), row.status)
	}
}

func TestLogLevelAndFeatures(t *testing.T) {
	var log bytes.Buffer
	h := open(t, &log, func(c *Config) { c.LogLevel = "error"; c.Metrics = true; c.Profiling = true })
	ask(h, "GET", "/healthz", "")
	if log.Len() > 0 {
		t.Errorf("level error logged %s", &log)
	}
	if w := ask(h, "GET", "/metrics", ""); !strings.Contains(w.Body.String(), `http_requests_total{method="GET",route="/healthz",status="200"} 1`) {
		t.Errorf("metrics: %d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/debug/pprof/goroutine?debug=1", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "goroutine profile") {
		t.Errorf("pprof: %d", w.Code)
	}
	if w := ask(h, "GET", "/version", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"version":"1.0.0"`) {
		t.Errorf("version: %s", w.Body)
	}
}

func TestDumpPrettyPrintsAndHidesSecrets(t *testing.T) {
	var log bytes.Buffer
	h := open(t, &log, nil)
	ask(h, "POST", "/login", `{"username":"anna","password":"s3cret-word"}`, "Content-Type", "application/json", "Authorization", "Bearer abc.def")
	got := log.String()
	for _, want := range []string{`    \"username\": \"anna\"`, `503 Service Unavailable`, `POST /login HTTP/1.1`, `\"message\": \"this server`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	for _, secret := range []string{"s3cret-word", "abc.def"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s stands in the log", secret)
		}
	}
}

func TestDumpBodies(t *testing.T) {
	asJSON := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	for _, row := range []struct {
		header http.Header
		body   string
		cut    bool
		want   string
	}{
		{asJSON, `{"b":[1,{"password":"x"}]}`, false, "{\n    \"b\": [\n        1,\n        {\n            \"password\": \"(not shown)\"\n        }\n    ]\n}"},
		{asJSON, ``, false, ""},
		{asJSON, `{"open`, false, "(6 bytes that are no JSON)"},
		{asJSON, `{}`, true, "(more than 65536 bytes of application/json; charset=utf-8)"},
		{http.Header{"Content-Type": {"image/png"}}, `xyz`, false, "(3 bytes of image/png)"},
	} {
		if got := dumpBody(row.header, []byte(row.body), row.cut); got != row.want {
			t.Errorf("%q: got %q, want %q", row.body, got, row.want)
		}
	}
}

func TestDumpGivesTheBodyBack(t *testing.T) {
	for _, size := range []int{10, dumpBodyMax, dumpBodyMax + 1, 3 * dumpBodyMax} {
		body := strings.Repeat("7", size)
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		dumpRequestBody(r)
		if back, err := io.ReadAll(r.Body); err != nil || string(back) != body {
			t.Errorf("%d bytes: %d came back, %v", size, len(back), err)
		}
	}
}

func TestTokens(t *testing.T) {
	clock := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	mint := newTokens(strings.Repeat("k", 32), time.Hour)
	mint.now = func() time.Time { return clock }
	text, ends, err := mint.issue("anna", true)
	if err != nil || !ends.Equal(clock.Add(time.Hour)) {
		t.Fatal(ends, err)
	}
	if c, err := mint.check(text); err != nil || c.Subject != "anna" || !c.Admin {
		t.Errorf("%+v, %v", c, err)
	}
	other := newTokens("", time.Hour)
	other.now = mint.now
	if _, err := other.check(text); err == nil {
		t.Error("a token of another key was taken")
	}
	unsigned := "eyJhbGciOiJub25lIn0." + strings.Split(text, ".")[1] + "."
	if _, err := mint.check(unsigned); err == nil {
		t.Error("an unsigned token was taken")
	}
	clock = clock.Add(2 * time.Hour)
	if _, err := mint.check(text); err == nil {
		t.Error("a token was taken after its end")
	}
}

func form(t *testing.T, field, content string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile(field, "../../etc/name.txt")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(part, content)
	w.Close()
	return b.String(), w.FormDataContentType()
}

func TestUpload(t *testing.T) {
	dir := t.TempDir()
	c := Config{}
	h := open(t, io.Discard, func(made *Config) {
		made.UploadDir, made.UploadMax, made.JWTSecret = dir, 100, strings.Repeat("k", 32)
		c = *made
	})
	token, _, err := newTokens(c.JWTSecret, time.Hour).issue("anna", false)
	if err != nil {
		t.Fatal(err)
	}
	auth := []string{"Authorization", "Bearer " + token, "Content-Type"}

	body, kind := form(t, "file", "hello")
	w := ask(h, "POST", "/v1/files", body, append(auth, kind)...)
	var made struct {
		ID   string
		Size int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != 201 || made.Size != 5 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/v1/files/"+made.ID, "", auth[:2]...); w.Code != 200 || w.Body.String() != "hello" {
		t.Errorf("download: %d %q", w.Code, w.Body)
	}
	checkError(t, ask(h, "GET", "/v1/files/"+strings.Repeat("0", 64), "", auth[:2]...), 404)
	checkError(t, ask(h, "GET", "/v1/files/..passwd", "", auth[:2]...), 400)

	other, otherKind := form(t, "picture", "hello")
	long, longKind := form(t, "file", strings.Repeat("x", 101))
	huge, hugeKind := form(t, "file", strings.Repeat("x", 200<<10))
	for _, row := range []struct {
		body, kind string
		status     int
	}{
		{other, otherKind, 400},
		{long, longKind, 413},
		{huge, hugeKind, 413},
		{body[:len(body)-20], kind, 400},
		{"{}", "application/json", 400},
	} {
		checkError(t, ask(h, "POST", "/v1/files", row.body, append(auth, row.kind)...), row.status)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%d files in the folder, want the one upload: %v", len(left), err)
	}
}

func TestUploadWithoutRoom(t *testing.T) {
	// Every write to /dev/full fails with "no space left on device".
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Fatal("this test needs /dev/full, which Linux has")
	}
	files := fileAPI{maxSize: 10, log: slog.New(slog.DiscardHandler)}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	_, noRoom := full.Write([]byte("x"))
	w := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(w)
	files.fail(c, noRoom)
	checkError(t, w, 507)
}

func TestLoggerOutputs(t *testing.T) {
	dir := t.TempDir()
	c := Config{LogLevel: "info", LogOutputs: []string{dir + "/a.log", dir + "/b.log"}}
	log, closeLog, err := c.Logger()
	if err != nil {
		t.Fatal(err)
	}
	log.Info("hello")
	closeLog()
	for _, name := range []string{"/a.log", "/b.log"} {
		if text, err := os.ReadFile(dir + name); err != nil || !strings.Contains(string(text), `"msg":"hello"`) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	c.LogOutputs = []string{dir + "/no/such/folder.log"}
	if _, _, err := c.Logger(); err == nil || !strings.Contains(err.Error(), "log.output-paths") {
		t.Errorf("a file that cannot be made: %v", err)
	}
}

func TestUserInput(t *testing.T) {
	say := func(s string) *string { return &s }
	for _, row := range []struct {
		in   userInput
		says string
	}{
		{userInput{Username: say("anna"), Password: say("long enough"), Email: say("a@b.example"), Nickname: say("Änna")}, ""},
		{userInput{Email: say("")}, ""},
		{userInput{Username: say("A")}, "username"},
		{userInput{Username: say("anna; drop")}, "username"},
		{userInput{Password: say("short")}, "password"},
		{userInput{Password: say(strings.Repeat("x", 73))}, "password"},
		{userInput{Email: say("no address")}, "email"},
		{userInput{Email: say("Anna <a@b.example>")}, "email"},
		{userInput{Nickname: say(strings.Repeat("ä", 65))}, "nickname"},
	} {
		got := row.in.problem()
		if (row.says == "") != (got == "") || !strings.HasPrefix(got, row.says) {
			t.Errorf("got %q, want %q", got, row.says)
		}
	}
}
