// An HTTP server in front of MariaDB with one planted limit, chosen by the settings in $ZOO (JSON). It prints its address and answers any
// path below /items; other paths are not found, and ask the database nothing.
//
// Not here: which limit is the truth of which case (../../truth.json).
package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"
)

type settings struct {
	Store string `json:"store"` // address of the database
	Conns int    `json:"conns"` // connections to it, at most
	Rows  int    `json:"rows"`  // rows of the table item
	Index bool   `json:"index"` // whether there is an index on its owner
	Query string `json:"query"` // asked once for each request; a ? is an owner, drawn anew
}

const owners = 1000

func main() {
	var set settings
	if err := json.Unmarshal([]byte(os.Getenv("ZOO")), &set); err != nil {
		log.Fatal(err)
	}
	// Values go into the text: each query is one exchange.
	db, err := sql.Open("mysql", "root@tcp("+set.Store+")/?interpolateParams=true")
	if err != nil {
		log.Fatal(err)
	}
	for i := 0; db.Ping() != nil; i++ {
		if i == 200 {
			log.Fatal("the database does not answer")
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, words := range filled(set) {
		if _, err := db.Exec(words); err != nil {
			log.Fatal(err)
		}
	}
	db.SetMaxOpenConns(set.Conns)
	db.SetMaxIdleConns(set.Conns)
	drawn := strings.Contains(set.Query, "?")
	http.HandleFunc("/items", func(w http.ResponseWriter, r *http.Request) {
		var arguments []any
		if drawn {
			arguments = append(arguments, rand.Intn(owners))
		}
		var answer string
		if err := db.QueryRow(set.Query, arguments...).Scan(&answer); err != nil {
			http.Error(w, "database", http.StatusBadGateway)
			return
		}
		fmt.Fprintln(w, answer)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

// What makes the database ready.
func filled(set settings) []string {
	index := ""
	if set.Index {
		index = ", INDEX (owner)"
	}
	return []string{
		"CREATE DATABASE IF NOT EXISTS zoo",
		"CREATE TABLE zoo.item (id INT PRIMARY KEY AUTO_INCREMENT, owner INT NOT NULL, note CHAR(60) NOT NULL" + index + ")",
		fmt.Sprintf("INSERT INTO zoo.item (owner, note) SELECT FLOOR(RAND(1) * %d), REPEAT('x', 60) FROM zoo.seq_1_to_%d",
			owners, max(set.Rows, 1)),
	}
}
