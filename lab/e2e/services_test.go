// Tests of the services, each started with `up` and checked by requests.

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/lab/internal/figures"
	"plimsoll.dev/lab/internal/gamerecord"
	"plimsoll.dev/lab/internal/rig"
)

func TestBaseline(t *testing.T) {
	url := up(t, "baseline")["baseline"]
	if a := ask(t, "GET", url+"/healthz", ""); a.status != 200 || a.body != `{"status":"ok"}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	wantError(t, ask(t, "POST", url+"/healthz", ""), 405)
	wantError(t, ask(t, "GET", url+"/", ""), 404)
	down(t, "baseline")
}

// TestCopies checks that copies of one case run side by side under their own
// names.
func TestCopies(t *testing.T) {
	kept := up(t, "baseline", "--as", "copy-kept")["baseline"]
	closed := up(t, "baseline", "--as", "copy-closed", "--", "--keepalive=off")["baseline"]
	if kept == closed {
		t.Errorf("both copies are at %s", kept)
	}
	for _, url := range []string{kept, closed} {
		if a := ask(t, "GET", url+"/healthz", ""); a.status != 200 {
			t.Errorf("%s: %d %s", url, a.status, a.body)
		}
	}
	down(t, "copy-kept")
	if a := ask(t, "GET", closed+"/healthz", ""); a.status != 200 {
		t.Errorf("the other copy ended, too: %d %s", a.status, a.body)
	}
	down(t, "copy-closed")
	for _, bad := range [][]string{{"up", "baseline", "--as", "Not/a name"}, {"up", "all", "--as", "x"}, {"down", "all", "--as", "x"}} {
		if _, stderr, status := lab(t, bad...); status != 2 || !strings.Contains(stderr, "--as") {
			t.Errorf("%v: status %d: %s", bad, status, stderr)
		}
	}
}

// TestUserFlow checks a user's actions: sign up, log in, read, change, upload,
// delete. It also checks the actions that a user must not do.
func TestUserFlow(t *testing.T) {
	url := up(t, "apiserver", "--", "--auth.bcrypt-cost=4", "--auth.admin-password=the admin's word",
		"--server.upload-max=100000")["apiserver"]
	login := func(name, password string) (answer, string) {
		a := ask(t, "POST", url+"/login", fmt.Sprintf(`{"username":%q,"password":%q}`, name, password))
		var said struct{ Token string }
		json.Unmarshal([]byte(a.body), &said)
		return a, "Bearer " + said.Token
	}
	name := fmt.Sprintf("anna%d", rand.Uint32())
	user := url + "/v1/users/" + name
	signUp := fmt.Sprintf(`{"username":%q,"password":"first word","nickname":"Änna","email":"anna@example.org"}`, name)

	if a := ask(t, "POST", url+"/v1/users", signUp); a.status != 201 || !strings.Contains(a.body, `"nickname":"Änna"`) || strings.Contains(a.body, "password") {
		t.Fatalf("sign-up: %d %s", a.status, a.body)
	}
	wantError(t, ask(t, "POST", url+"/v1/users", signUp), 409)
	for _, bad := range []string{"", "{", `{"username":"x1"}`, `{"username":"X","password":"long enough"}`, `{"name":"x1"}`, signUp + "{}"} {
		wantError(t, ask(t, "POST", url+"/v1/users", bad), 400)
	}
	wantError(t, ask(t, "POST", url+"/v1/users", `{"nickname":"`+strings.Repeat("x", 70000)+`"}`), 413)

	a, _ := login(name, "wrong word")
	wantError(t, a, 401)
	a, _ = login("nobody", "first word")
	wantError(t, a, 401)
	_, token := login(name, "first word")
	auth := []string{"Authorization", token}

	wantError(t, ask(t, "GET", user, ""), 401)
	wantError(t, ask(t, "GET", user, "", "Authorization", token+"x"), 401)
	if a := ask(t, "GET", user, "", auth...); a.status != 200 || !strings.Contains(a.body, `"email":"anna@example.org"`) {
		t.Errorf("get: %d %s", a.status, a.body)
	}
	if a := ask(t, "GET", url+"/v1/users?limit=100", "", auth...); a.status != 200 || !strings.Contains(a.body, name) {
		t.Errorf("list: %d %s", a.status, a.body)
	}
	wantError(t, ask(t, "GET", url+"/v1/users?limit=0", "", auth...), 400)
	wantError(t, ask(t, "GET", url+"/v1/users/nobody", "", auth...), 404)

	if a := ask(t, "PUT", user, `{"nickname":"Anne","password":"second word"}`, auth...); a.status != 200 || !strings.Contains(a.body, `"Anne"`) || !strings.Contains(a.body, "anna@example.org") {
		t.Errorf("update: %d %s", a.status, a.body)
	}
	wantError(t, ask(t, "PUT", user, `{"email":"none"}`, auth...), 400)
	wantError(t, ask(t, "PUT", url+"/v1/users/admin", `{"nickname":"x"}`, auth...), 403)
	wantError(t, ask(t, "DELETE", url+"/v1/users/admin", "", auth...), 403)
	a, _ = login(name, "first word")
	wantError(t, a, 401)

	upload(t, url, auth)

	_, admin := login("admin", "the admin's word")
	if a := ask(t, "DELETE", user, "", "Authorization", admin); a.status != 204 {
		t.Errorf("delete: %d %s", a.status, a.body)
	}
	wantError(t, ask(t, "GET", user, "", auth...), 404)

	if a := ask(t, "GET", url+"/metrics", ""); !strings.Contains(a.body, `http_requests_total{method="POST",route="/login",status="401"}`) {
		t.Errorf("metrics: %.500s", a.body)
	}
	if a := ask(t, "GET", url+"/debug/pprof/profile?seconds=1", ""); a.status != 200 || len(a.body) < 100 {
		t.Errorf("profile: %d, %d bytes", a.status, len(a.body))
	}
	log, err := os.ReadFile(filepath.Join(cache, "logs", "apiserver-apiserver.log"))
	if err != nil || !bytes.Contains(log, []byte(`"msg":"response dump"`)) || bytes.Contains(log, []byte("second word")) {
		t.Errorf("the log has no dump, or a password: %v", err)
	}

	// Without its database, the service reports that; a log-in must wait.
	if err := syscall.Kill(pid(t, "mariadb", "mariadb"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantError(t, ask(t, "POST", url+"/login", `{"username":"x1","password":"y"}`), 503)
	if a := ask(t, "GET", url+"/healthz", ""); a.status != 200 {
		t.Errorf("healthz without a database: %d", a.status)
	}
	down(t, "apiserver")
}

func upload(t *testing.T, url string, auth []string) {
	t.Helper()
	content := strings.Repeat("0123456789", 5000)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "numbers.txt")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(part, content)
	w.Close()
	a := ask(t, "POST", url+"/v1/files", form.String(), append(auth, "Content-Type", w.FormDataContentType())...)
	var made struct {
		ID, Name string
		Size     int
	}
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != 201 || made.Size != len(content) || made.Name != "numbers.txt" {
		t.Fatalf("upload: %d %s", a.status, a.body)
	}
	if a := ask(t, "GET", url+"/v1/files/"+made.ID, "", auth...); a.status != 200 || a.body != content {
		t.Errorf("download: %d, %d bytes", a.status, len(a.body))
	}
	wantError(t, ask(t, "POST", url+"/v1/files", "none", append(auth, "Content-Type", "text/plain")...), 400)
}

// TestNeverOversells lets hundreds of buyers order the last pieces at the same
// time, from two copies of the service that share one stock.
func TestNeverOversells(t *testing.T) {
	const pieces, buyers, tries = 1000, 300, 12
	addresses := up(t, "flashsale", "--", "--stock=1000")
	second := extra(t, "flashsale", "--redis-url=redis://"+addresses["redis"], "--stock=-1", "--json=generated")
	urls := []string{addresses["flashsale"], second}

	if one, two := ask(t, "GET", urls[0]+"/event/list", ""), ask(t, "GET", urls[1]+"/event/list", ""); one.body != two.body || len(one.body) < 7000 {
		t.Errorf("reflect and generated differ, or are short: %d and %d bytes", len(one.body), len(two.body))
	}
	for _, row := range []struct {
		name string
		good int
		most int // the largest number of pieces in an order
	}{
		{"single pieces", 101, 1},
		{"one to ten pieces", 102, 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			var sold, accepted, refused atomic.Int64
			orders := sync.Map{}
			var all sync.WaitGroup
			release := make(chan struct{})
			for buyer := range buyers {
				all.Go(func() {
					random := rand.New(rand.NewPCG(uint64(buyer), uint64(row.good)))
					<-release
					for range tries {
						quantity := 1 + random.IntN(row.most)
						a, err := try("POST", urls[random.IntN(2)]+"/event/1/order", fmt.Sprintf(`{"good_id":%d,"quantity":%d}`, row.good, quantity))
						if err != nil {
							t.Error(err)
							return
						}
						switch a.status {
						case 201:
							accepted.Add(1)
							sold.Add(int64(quantity))
							var made struct{ Order string }
							json.Unmarshal([]byte(a.body), &made)
							if _, twice := orders.LoadOrStore(made.Order, true); twice || made.Order == "" {
								t.Errorf("order number %q was given twice", made.Order)
							}
						case 409:
							refused.Add(1)
						default:
							t.Errorf("%d %s", a.status, a.body)
						}
					}
				})
			}
			close(release)
			all.Wait()
			var left struct{ Goods map[string]int64 }
			json.Unmarshal([]byte(ask(t, "GET", urls[0]+"/event/1/stock", "").body), &left)
			remaining := left.Goods[fmt.Sprint(row.good)]
			t.Logf("%d orders, %d pieces sold, %d left, %d refused", accepted.Load(), sold.Load(), remaining, refused.Load())
			if sold.Load()+remaining != pieces || remaining < 0 || sold.Load() > pieces {
				t.Errorf("%d pieces: %d sold and %d left", pieces, sold.Load(), remaining)
			}
			if row.most == 1 && (sold.Load() != pieces || refused.Load() != buyers*tries-pieces) {
				t.Errorf("%d sold, %d refused", sold.Load(), refused.Load())
			}
		})
	}
	for _, row := range []struct {
		path, body string
		status     int
	}{
		{"/event/1/order", `{"good_id":101}`, 409},
		{"/event/1/order", `{"good_id":201}`, 404},
		{"/event/11/order", `{"good_id":101}`, 404},
		{"/event/one/order", `{"good_id":101}`, 400},
		{"/event/1/order", `{"good_id":103,"quantity":0}`, 400},
		{"/event/1/order", `{"good_id":103,"quantity":-5}`, 400},
		{"/event/1/order", `{"good_id":"103"}`, 400},
		{"/event/1/order", ``, 400},
		{"/event/list", ``, 405},
	} {
		wantError(t, ask(t, "POST", urls[0]+row.path, row.body), row.status)
	}
	down(t, "flashsale")
}

// extra starts a further service beside the lab's cases. The service ends with
// the test.
func extra(t *testing.T, program string, args ...string) (url string) {
	t.Helper()
	command := exec.Command(filepath.Join(bin, program), args...)
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	var said struct{ URL string }
	if err != nil || json.Unmarshal(line, &said) != nil {
		command.Process.Kill()
		command.Wait()
		t.Fatalf("%s: %q, %s", program, line, &stderr)
	}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil || strings.Contains(stderr.String(), "DATA RACE") {
			t.Errorf("%s ended with %v: %s", program, err, &stderr)
		}
	})
	return said.URL
}

func TestLadderAndItsIndex(t *testing.T) {
	addresses := up(t, "ladder")
	url := addresses["ladder"]
	dsn, err := os.ReadFile(filepath.Join(cache, "mariadb", "password"))
	if err != nil {
		t.Fatal(err)
	}
	without := extra(t, "ladder", "--index=off", "--mysql-dsn=lab:"+string(dsn)+"@tcp("+addresses["mariadb"]+")/lab")

	for _, path := range []string{"/empty", "/redis"} {
		if a := ask(t, "GET", url+path, ""); a.status != 200 || a.body != "" {
			t.Errorf("%s: %d %q", path, a.status, a.body)
		}
	}
	path := "/sql?app_id=3&token=" + gamerecord.Token(7)
	var best [2]time.Duration
	var records [2][]gamerecord.Record
	// The two servers are measured in turn, and the best time of each counts. A
	// busy machine needs more rounds. With the index, the query takes 0.5 to 0.7
	// of the time, depending on the machine. The query plan is checked below.
	faster := func() bool { return best[0] < best[1]*9/10 }
	for round := 0; round < 5 || round < 40 && !faster(); round++ {
		for i, server := range []string{url, without} {
			began := time.Now()
			a := ask(t, "GET", server+path, "")
			took := time.Since(began)
			if best[i] == 0 || took < best[i] {
				best[i] = took
			}
			var said struct{ Records []gamerecord.Record }
			if err := json.Unmarshal([]byte(a.body), &said); err != nil || len(said.Records) != gamerecord.Limit {
				t.Fatalf("%d %.200s", a.status, a.body)
			}
			records[i] = said.Records
		}
	}
	for i, r := range records[0] {
		other := records[1][i]
		if r.PrizeGrade != other.PrizeGrade || r.Score != other.Score || r.AppID != 3 || r.Token != gamerecord.Token(7) || r.Score == -1 {
			t.Errorf("record %d: %+v with the index, %+v without", i, r, other)
		}
	}
	t.Logf("with the index %s, without %s", best[0], best[1])
	if !faster() {
		t.Errorf("with the index %s, without %s: it makes no difference", best[0], best[1])
	}
	db := database(t, addresses["mariadb"])
	for _, index := range []bool{true, false} {
		var plan string
		if err := db.QueryRow("explain format=json "+gamerecord.Query(index), 3, gamerecord.Token(7)).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		if uses := strings.Contains(plan, `"key": "`+gamerecord.IndexName+`"`); uses != index {
			t.Errorf("index %v: the plan is %s", index, plan)
		}
	}
	wantError(t, ask(t, "GET", url+"/sql?app_id=x&token=y", ""), 400)
	if a := ask(t, "GET", url+"/sql?app_id=999&token=none", ""); a.status != 200 || a.body != `{"records":[]}` {
		t.Errorf("an owner without records: %d %s", a.status, a.body)
	}
	down(t, "ladder")
}

func TestGateway(t *testing.T) {
	addresses := up(t, "gateway")
	url := addresses["gateway"]
	for _, path := range []string{"/empty", "/redis"} {
		if a := ask(t, "GET", url+path, ""); a.status != 200 || a.body != "{}" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	a := ask(t, "POST", url+"/sql", `{"appId":2,"token":"token-01"}`)
	var said struct{ Records []struct{ Token string } }
	if err := json.Unmarshal([]byte(a.body), &said); err != nil || len(said.Records) != gamerecord.Limit || said.Records[0].Token != "token-01" {
		t.Errorf("%d %.200s", a.status, a.body)
	}
	wantError(t, ask(t, "POST", url+"/sql", `{"appId":"two"}`), 400)
	if err := syscall.Kill(pid(t, "gateway", "ladder"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	wantError(t, ask(t, "GET", url+"/empty", ""), 503)
	down(t, "gateway")
}

func TestGatewayPairTakesTurns(t *testing.T) {
	addresses := up(t, "gateway-pair")
	for range 20 {
		if a := ask(t, "GET", addresses["gateway-pair"]+"/empty", ""); a.status != 200 || a.body != "{}" {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	// Both nodes serve requests. After one gateway has ended, nginx uses the other.
	if err := syscall.Kill(pid(t, "gateway-pair", "gateway-1"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if a := ask(t, "GET", addresses["gateway-pair"]+"/redis", ""); a.status != 200 {
			t.Errorf("with one gateway gone: %d %s", a.status, a.body)
		}
	}
	down(t, "gateway-pair")
}

var combined = regexp.MustCompile(`^127\.0\.0\.1 - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET \S+ HTTP/1\.1" \d{3} \d+ "[^"]*" "[^"]*"$`)

func TestCardsAndTheirProxy(t *testing.T) {
	addresses := up(t, "cards", "--limit-rate=5", "--limit-burst=10")
	for _, path := range []string{"/question", "/answer?id=3", "/pick?n=3"} {
		if a := ask(t, "GET", addresses["cards"]+path, ""); a.status != 200 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	wantError(t, ask(t, "GET", addresses["proxy"]+"/answer?id=none", ""), 400)
	passed, limited := 0, 0
	for range 60 {
		switch a := ask(t, "GET", addresses["proxy"]+"/pick", ""); a.status {
		case 200:
			passed++
		case 429:
			wantError(t, a, 429)
			limited++
		default:
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if passed < 9 || limited < 20 {
		t.Errorf("%d passed, %d were limited", passed, limited)
	}
	// Requests that do not go through the proxy are not limited.
	for range 60 {
		if a := ask(t, "GET", addresses["cards"]+"/pick", ""); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	down(t, "cards")
	log, err := os.ReadFile(filepath.Join(cache, "logs", "cards-access.log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(log)) {
		lines++
		if !combined.MatchString(strings.TrimSpace(line)) {
			t.Errorf("not in the combined format: %q", line)
		}
	}
	if lines < 60+passed {
		t.Errorf("%d lines", lines)
	}
}

// TestRequestInFlightSurvivesDown checks that `down` of a service lets a slow
// upload finish.
func TestRequestInFlightSurvivesDown(t *testing.T) {
	url := up(t, "apiserver", "--", "--auth.bcrypt-cost=4")["apiserver"]
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"username":"nobody","password":"none at all"}`
	fmt.Fprintf(conn, "POST /login HTTP/1.1\r\nHost: lab\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:10])
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) { // until the request is in the handler
		a := ask(t, "GET", url+"/debug/pprof/goroutine?debug=2", "")
		if strings.Contains(a.body, "userAPI.login") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the request did not reach its handler")
		}
	}
	ended := make(chan int, 1)
	go func() {
		_, _, status := lab(t, "down", "apiserver")
		ended <- status
	}()
	for range 500 {
		probe, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			break
		}
		probe.Close()
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Fprint(conn, body[10:])
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != 401 {
		t.Errorf("the request in flight got %v, %v", response, err)
	}
	if status := <-ended; status != 0 {
		t.Errorf("down: status %d", status)
	}
}

// TestFiguresRun runs a short measurement, to check that the command figures
// still works.
func TestFiguresRun(t *testing.T) {
	opened := &rig.Rig{Cache: cache, Home: home, Bin: bin, Progress: io.Discard}
	if err := opened.Open(); err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	plan := figures.Plan(1)
	group := plan[0]
	group.Variants = []figures.Variant{group.Variants[0], group.Variants[4]}
	samples, err := figures.Measure(context.Background(), opened, group, 1, filepath.Join(scratch, "measure.lock"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	rows := figures.Rows(group, samples)
	if len(rows) != 2 || rows[0].Share.Median != 1 || rows[1].QPS <= 0 || rows[1].PerCore <= 0 || rows[1].Refused != 0 {
		t.Errorf("%+v", rows)
	}
	if running := opened.Status().Cases; len(running) != 0 {
		t.Errorf("left %v", running)
	}
}
