// An ordinary Go service: `GET /` does WORK_US microseconds of work while it holds a mutex, then
// writes JSON. The mutex limits it.
//
// Not here: how it is started and measured (../lib/rows_services.py).
package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

func main() {
	wait, err := strconv.Atoi(os.Getenv("WORK_US"))
	if err != nil {
		panic(err)
	}
	var lock sync.Mutex
	seen := 0
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		lock.Lock()
		seen++
		mine := seen
		time.Sleep(time.Duration(wait) * time.Microsecond)
		lock.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]int{"seen": mine})
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
