// The program whose profiles the tests read: every kind of profile that Go's runtime takes, with inlined frames,
// recursion and labels. It writes one file for each kind into the folder that it is given.
//
// Not a benchmark: what it does has no meaning beyond leaving traces of each kind.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
	"time"
)

type good struct {
	Name  string
	Price float64
	Tags  []string
}

var (
	mu   sync.Mutex
	kept [][]byte
	sink int
)

// small is inlined into its callers.
func small(n int) int { return n*2654435761 ^ n>>3 }

// spin calls nothing but inlined functions.
func spin(rounds int) int {
	sum := 0
	for i := 0; i < rounds; i++ {
		sum += small(i)
	}
	return sum
}

// recurse calls itself, and at the bottom what costs.
//
//go:noinline
func recurse(depth int) int {
	if depth == 0 {
		return spin(400_000)
	}
	return recurse(depth-1) + spin(20_000)
}

// even and odd call each other.
//
//go:noinline
func even(depth int) int {
	if depth == 0 {
		return spin(300_000)
	}
	return odd(depth - 1)
}

//go:noinline
func odd(depth int) int { return even(depth-1) + spin(30_000) }

func encode(goods []good) []byte {
	text, err := json.Marshal(goods)
	if err != nil {
		log.Fatal(err)
	}
	return text
}

func decode(text []byte) (goods []good) {
	if err := json.Unmarshal(text, &goods); err != nil {
		log.Fatal(err)
	}
	return goods
}

func shelf(n int) []good {
	goods := make([]good, n)
	for i := range goods {
		goods[i] = good{strings.Repeat("g", 1+i%9), float64(i) * 1.25, []string{"a", "b", "c"}[:i%4]}
	}
	return goods
}

func list() {
	goods := decode(encode(shelf(300)))
	sort.Slice(goods, func(i, j int) bool { return goods[i].Price > goods[j].Price })
	sink += len(goods)
}

func pick() { sink += recurse(8) + even(6) }

func serve(endpoint string, until time.Time, work func()) {
	pprof.Do(context.Background(), pprof.Labels("endpoint", endpoint), func(context.Context) {
		for time.Now().Before(until) {
			work()
		}
	})
}

// held keeps the lock while others want it.
//
//go:noinline
func held(d time.Duration) {
	mu.Lock()
	defer mu.Unlock()
	time.Sleep(d)
}

func contend() {
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 15 {
				held(2 * time.Millisecond)
			}
		}()
	}
	all.Wait()
}

func pipeline() {
	first, second := make(chan int), make(chan int)
	go func() {
		defer close(second)
		for n := range first {
			second <- n + 1
		}
	}()
	go func() {
		defer close(first)
		for n := range 40 {
			time.Sleep(time.Millisecond)
			first <- n
		}
	}()
	for n := range second {
		sink += n
	}
}

func write(folder, name string, kind string) {
	var out bytes.Buffer
	if err := pprof.Lookup(kind).WriteTo(&out, 0); err != nil {
		log.Fatal(err)
	}
	save(folder, name, out.Bytes())
}

func save(folder, name string, content []byte) {
	if err := os.WriteFile(filepath.Join(folder, name+".pb.gz"), content, 0o644); err != nil {
		log.Fatal(err)
	}
}

func main() {
	folder := os.Args[1]
	runtime.MemProfileRate = 16 << 10
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)

	var cpu bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		log.Fatal(err)
	}
	until := time.Now().Add(4 * time.Second)
	var all sync.WaitGroup
	all.Add(2)
	go func() { defer all.Done(); serve("/list", until, list) }()
	go func() { defer all.Done(); serve("/pick", until, pick) }()
	all.Wait()
	pprof.StopCPUProfile()
	save(folder, "cpu", cpu.Bytes())

	for i := range 200 {
		kept = append(kept, encode(shelf(1+i)))
	}
	contend()
	pipeline()

	// Goroutines that stand still in different places, some of them labelled.
	forever := make(chan int)
	for range 5 {
		go func() { <-forever }()
	}
	go pprof.Do(context.Background(), pprof.Labels("endpoint", "/wait"), func(context.Context) { <-forever })
	held(0)
	mu.Lock()
	for range 3 {
		go held(0)
	}
	time.Sleep(50 * time.Millisecond)
	runtime.GC()
	write(folder, "heap", "heap")
	write(folder, "allocs", "allocs")
	write(folder, "mutex", "mutex")
	write(folder, "block", "block")
	write(folder, "goroutine", "goroutine")
	write(folder, "threadcreate", "threadcreate")
	runtime.KeepAlive(kept)
}
