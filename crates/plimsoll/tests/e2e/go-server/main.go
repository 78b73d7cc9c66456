// The Go server of the end-to-end tests: plain net/http with its profile endpoints, on a free port
// that it prints. If the arguments name a certificate and its key, the server uses TLS. As a build
// under test, the server reads two environment variables: ADDRESS is its address, and COSTLY makes
// each request cost extra CPU time.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"strconv"
)

// costly uses about a fifth of a millisecond of CPU time.
//
//go:noinline
func costly() (sum uint64) {
	for i := uint64(0); i < 300_000; i++ {
		sum = sum*31 ^ i
	}
	return sum
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if os.Getenv("COSTLY") != "" {
			costly()
		}
		io.WriteString(w, "hello\n")
	})
	http.HandleFunc("/costly", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, costly())
	})
	// Each part is flushed, so that the body is sent in chunks.
	http.HandleFunc("/chunked", func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < 10; i++ {
			fmt.Fprintf(w, "part %d\n", i)
			w.(http.Flusher).Flush()
		}
	})
	http.HandleFunc("/echo-length", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if want := r.URL.Query().Get("want"); want != strconv.FormatInt(n, 10) || r.Method != "PUT" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	http.HandleFunc("/close", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
	})
	http.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/", http.StatusFound)
	})
	address := os.Getenv("ADDRESS")
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	// The server supports HTTP/1.1, and HTTP/2 with and without TLS.
	server := &http.Server{Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	if len(os.Args) == 3 {
		log.Fatal(server.ServeTLS(listener, os.Args[1], os.Args[2]))
	}
	log.Fatal(server.Serve(listener))
}
