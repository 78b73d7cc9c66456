// An HTTP server with one planted limit, chosen by the settings in $ZOO (JSON). It prints its address and answers any path below
// /items; other paths are not found, and meet none of the limits but those of the rate and of the connections.
//
// Not here: which limit is the truth of which case (../../truth.json).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
)

type settings struct {
	CPUUs     int    `json:"cpu_us"`      // CPU time of a request
	SleepUs   int    `json:"sleep_us"`    // time that passes by itself
	Scatter   bool   `json:"scatter"`     // that time is one on average: half of it, and as much again at random
	SharedUs  int    `json:"shared_us"`   // time inside of what only one may enter
	SharedCPU int    `json:"shared_cpu"`  // CPU time inside of that
	Slots     int    `json:"slots"`       // requests inside at a time
	Conns     int    `json:"conns"`       // connections to the store; 0: one for each request
	Store     string `json:"store"`       // its address
	Call      string `json:"call"`        // what it is asked, in the words of its protocol
	Rate      int    `json:"rate"`        // requests a second; the rest is refused
	PerClient bool   `json:"per_client"`  // by X-Client or address
	Pace      int    `json:"pace"`        // requests a second; the rest waits
	SavedMs   int    `json:"saved_ms"`    // so much of that rate is saved up for who comes later
	Bytes     int    `json:"bytes"`       // length of the answer
	File      string `json:"file"`        // written and flushed for each request
	Garbage   int    `json:"garbage"`     // KiB allocated for a request, in small pieces
	Live      int    `json:"live"`        // MiB of small objects that stay
	GC        int    `json:"gc"`          // GOGC
	Procs     int    `json:"procs"`       // GOMAXPROCS
	Pause     int    `json:"pause_ms"`    // a stop of the accepting loop, in ms, again and again
	Backlog   bool   `json:"slow_accept"` // accept one connection each 2 ms
	WarmS     int    `json:"warm_s"`      // for so long a request costs five times as much
	MapMB     int    `json:"map_mb"`      // MiB of a file that is read as memory, here and there
	MapFile   string `json:"map_file"`    // where that file is made
}

var (
	set   settings
	in    sync.Mutex
	began = time.Now()
	keep  [][]*[64]byte
)

// Work, not time: who has to wait for a core needs as much of it afterwards.
func turns(count int, x uint32) uint32 {
	for i := 0; i < count; i++ {
		x = x*1664525 + 1013904223
	}
	return x
}

// Turns in a microsecond: of the fastest of many short stretches, in which nobody was in between.
var perUs = func() float64 {
	most := 0.0
	for i := 0; i < 200; i++ {
		from := time.Now()
		if turns(100_000, uint32(i)) == 0 {
			runtime.Gosched()
		}
		most = max(most, 100_000/(float64(time.Since(from).Nanoseconds())/1000))
	}
	return most
}()

func burn(us int) {
	if turns(int(float64(us)*perUs), uint32(us)) == 0 {
		runtime.Gosched()
	}
}

type link struct {
	net.Conn
	in *bufio.Reader
}

func dial() (*link, error) {
	conn, err := net.Dial("tcp", set.Store)
	if err != nil {
		return nil, err
	}
	return &link{conn, bufio.NewReader(conn)}, nil
}

// One question and its answer: a line, and a body where the line tells its length.
func (l *link) ask() error {
	if _, err := io.WriteString(l, set.Call+"\r\n"); err != nil {
		return err
	}
	line, err := l.in.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "$") || strings.HasPrefix(line, "$-1") {
		return err
	}
	_, err = l.in.ReadString('\n')
	return err
}

func main() {
	if err := json.Unmarshal([]byte(os.Getenv("ZOO")), &set); err != nil {
		log.Fatal(err)
	}
	if set.Procs > 0 {
		runtime.GOMAXPROCS(set.Procs)
	}
	if set.GC > 0 {
		debug.SetGCPercent(set.GC)
	}
	for i := 0; i < set.Live*8; i++ {
		page := make([]*[64]byte, 2048)
		for j := range page {
			page[j] = new([64]byte)
		}
		keep = append(keep, page)
	}
	slots := make(chan struct{}, max(set.Slots, 1))
	links := make(chan *link, max(set.Conns, 1))
	for i := 0; i < set.Conns; i++ {
		l, err := dial()
		if err != nil {
			log.Fatal(err)
		}
		links <- l
	}
	var file *os.File
	if set.File != "" {
		var err error
		if file, err = os.OpenFile(set.File, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			log.Fatal(err)
		}
	}
	var pages []byte
	if set.MapMB > 0 {
		pages = mapped(set.MapFile, set.MapMB)
	}
	body := []byte(strings.Repeat("x", max(set.Bytes, 2)))
	items := func(w http.ResponseWriter, r *http.Request) {
		if set.Slots > 0 {
			slots <- struct{}{}
			defer func() { <-slots }()
		}
		times := 1
		if time.Since(began) < time.Duration(set.WarmS)*time.Second {
			times = 5
		}
		burn(set.CPUUs * times)
		sleep := float64(set.SleepUs)
		if set.Scatter {
			sleep = sleep/2 + rand.ExpFloat64()*sleep/2
		}
		time.Sleep(time.Duration(sleep) * time.Microsecond)
		if set.SharedUs+set.SharedCPU > 0 {
			in.Lock()
			burn(set.SharedCPU)
			time.Sleep(time.Duration(set.SharedUs) * time.Microsecond)
			in.Unlock()
		}
		if set.Store != "" {
			var l *link
			var err error
			if set.Conns > 0 {
				l = <-links
				err = l.ask()
				links <- l
			} else if l, err = dial(); err == nil {
				err = l.ask()
				l.Close()
			}
			if err != nil {
				http.Error(w, "store", http.StatusBadGateway)
				return
			}
		}
		touched := byte(0)
		for i := 0; i < 16 && pages != nil; i++ {
			touched += pages[rand.Intn(len(pages)/4096)*4096]
		}
		runtime.KeepAlive(touched)
		var pieces [][]byte
		for i := 0; i < set.Garbage*4; i++ {
			pieces = append(pieces, make([]byte, 256))
		}
		if file != nil {
			file.Write([]byte("a line of the journal that must not be lost\n"))
			if err := file.Sync(); err != nil {
				http.Error(w, "journal", http.StatusInternalServerError)
				return
			}
		}
		runtime.KeepAlive(pieces)
		w.Write(body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/items", items)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", listener.Addr())
	var held net.Listener = listener
	if set.Backlog {
		held = slow{listener}
	}
	log.Fatal(http.Serve(held, rated(mux)))
}

// A file of so many MiB, as memory.
func mapped(path string, mb int) []byte {
	file, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	piece := []byte(strings.Repeat("plimsoll", 1<<17))
	for i := 0; i < mb; i++ {
		file.Write(piece)
	}
	file.Sync()
	pages, err := syscall.Mmap(int(file.Fd()), 0, mb<<20, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		log.Fatal(err)
	}
	// What lies beside is not wanted.
	syscall.Madvise(pages, syscall.MADV_RANDOM)
	return pages
}

type slow struct{ net.Listener }

func (s slow) Accept() (net.Conn, error) {
	time.Sleep(2 * time.Millisecond)
	return s.Listener.Accept()
}

type bucket struct {
	tokens float64
	at     time.Time
}

func rated(next http.Handler) http.Handler {
	if set.Rate == 0 && set.Pace == 0 {
		return next
	}
	var mu sync.Mutex
	buckets := map[string]*bucket{}
	var turn time.Time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := ""
		if set.PerClient {
			if client = r.Header.Get("X-Client"); client == "" {
				client, _, _ = net.SplitHostPort(r.RemoteAddr)
			}
		}
		now := time.Now()
		mu.Lock()
		if set.Pace > 0 {
			// Whoever comes to an idle server does not wait, nor do as many as it has saved up for.
			saved := now.Add(-time.Duration(set.SavedMs) * time.Millisecond)
			if turn.Before(saved) {
				turn = saved
			}
			wait := turn.Sub(now)
			turn = turn.Add(time.Second / time.Duration(set.Pace))
			mu.Unlock()
			time.Sleep(max(wait, 0))
			next.ServeHTTP(w, r)
			return
		}
		b := buckets[client]
		if b == nil {
			b = &bucket{float64(set.Rate) / 10, now}
			buckets[client] = b
		}
		b.tokens = min(float64(set.Rate)/10, b.tokens+now.Sub(b.at).Seconds()*float64(set.Rate))
		b.at = now
		ok := b.tokens >= 1
		if ok {
			b.tokens--
		}
		mu.Unlock()
		if !ok {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "later", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}
