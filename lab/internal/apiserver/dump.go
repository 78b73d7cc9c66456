// The dump middleware writes each whole request and response to the log, with
// its JSON indented for readers.
//
// Left on in production, such a middleware costs a service most of its
// throughput. Every body is read, parsed, built up as a tree of maps, printed
// with indents and escaped into a log line. Like many real helpers, the
// middleware does this work before it checks the log level. A lower log.level
// therefore saves only the writing, which a profile shows.

package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// dumpBodyMax is the length of the longest body that is dumped, in bytes. For
// longer bodies and bodies without text, only length and type are logged.
const dumpBodyMax = 64 << 10

// secretFields are the JSON fields whose values are never logged, at any place in
// a body.
var secretFields = []string{"password", "token"}

func dump(log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		request := c.Request.Method + " " + c.Request.URL.RequestURI() + " " + c.Request.Proto + "\n" +
			dumpHeaders(c.Request.Header) + "\n" + dumpRequestBody(c.Request)
		logOf(c, log).Info("request dump", "dump", request)

		tee := &teeWriter{ResponseWriter: c.Writer}
		c.Writer = tee
		c.Next()

		response := fmt.Sprintf("%s %d %s\n", c.Request.Proto, tee.Status(), http.StatusText(tee.Status())) +
			dumpHeaders(tee.Header()) + "\n" + dumpBody(tee.Header(), tee.body.Bytes(), tee.cut)
		logOf(c, log).Info("response dump", "dump", response)
	}
}

// teeWriter is a response writer that also stores the first dumpBodyMax bytes.
type teeWriter struct {
	gin.ResponseWriter
	body bytes.Buffer
	cut  bool
}

func (t *teeWriter) Write(p []byte) (int, error) {
	room := dumpBodyMax - t.body.Len()
	t.cut = t.cut || len(p) > room
	t.body.Write(p[:min(len(p), room)])
	return t.ResponseWriter.Write(p)
}

func (t *teeWriter) WriteString(s string) (int, error) { return t.Write([]byte(s)) }

func dumpHeaders(header http.Header) string {
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		for _, value := range header[name] {
			if name == "Authorization" || name == "Cookie" {
				value = "(not shown)"
			}
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	return b.String()
}

// dumpRequestBody reads a JSON body, makes it available to the handler again,
// and returns its dump. Other bodies, such as uploads, are not read.
func dumpRequestBody(r *http.Request) string {
	if r.Body == nil || r.Body == http.NoBody {
		return ""
	}
	if !isJSON(r.Header) {
		return fmt.Sprintf("(%d bytes of %s)", r.ContentLength, r.Header.Get("Content-Type"))
	}
	head, err := io.ReadAll(io.LimitReader(r.Body, dumpBodyMax+1))
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), &failAfter{rest, err}), rest}
	return dumpBody(r.Header, head, len(head) > dumpBodyMax)
}

// failAfter is a reader that returns an earlier read error to the handler.
type failAfter struct {
	io.Reader
	err error
}

func (f *failAfter) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Reader.Read(p)
}

func isJSON(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

func dumpBody(header http.Header, body []byte, cut bool) string {
	switch {
	case len(body) == 0:
		return ""
	case cut:
		return fmt.Sprintf("(more than %d bytes of %s)", dumpBodyMax, header.Get("Content-Type"))
	case !isJSON(header):
		return fmt.Sprintf("(%d bytes of %s)", len(body), header.Get("Content-Type"))
	}
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return fmt.Sprintf("(%d bytes that are no JSON)", len(body))
	}
	hideSecrets(tree)
	pretty, err := json.MarshalIndent(tree, "", "    ")
	if err != nil { // a decoded value can always be encoded
		panic(err)
	}
	return string(pretty)
}

func hideSecrets(tree any) {
	switch node := tree.(type) {
	case map[string]any:
		for key, value := range node {
			if slices.Contains(secretFields, key) {
				node[key] = "(not shown)"
			} else {
				hideSecrets(value)
			}
		}
	case []any:
		for _, value := range node {
			hideSecrets(value)
		}
	}
}
