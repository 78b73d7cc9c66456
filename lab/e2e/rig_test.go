// Tests of up, down and status: what they start, clean up and refuse.

package e2e

import (
	"bufio"
	"database/sql"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"plimsoll.dev/lab/internal/gamerecord"
)

// cutOff runs `up ladder`, sends a signal while it fills the database, and
// returns the command's error output.
func cutOff(t *testing.T, signal os.Signal) (stderr string) {
	t.Helper()
	command := exec.Command(filepath.Join(bin, "lab"), "--cache", cache, "--home", home, "up", "ladder")
	pipe, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() && !strings.Contains(lines.Text(), "seeding") {
	}
	time.Sleep(300 * time.Millisecond) // by now some rows are written
	if err := command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(pipe)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil {
		t.Fatalf("up went on after %s", signal)
	}
	return string(rest)
}

// TestSeedingThatWasCutOff interrupts the filling of the database and repeats
// it. This test comes first, because it needs a data folder without rows.
func TestSeedingThatWasCutOff(t *testing.T) {
	oneSentence(t, cutOff(t, syscall.SIGINT), "interrupted")
	if stdout, _, _ := lab(t, "status"); stdout != "nothing runs\n" {
		t.Errorf("an interrupted up left %s", stdout)
	}
	cutOff(t, os.Kill)

	began := time.Now()
	addresses := up(t, "ladder")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("up with seeding took %s", took)
	}
	checkRows(t, addresses["mariadb"])
	began = time.Now()
	again := up(t, "ladder")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("a second up took %s", took)
	}
	if again["ladder"] != addresses["ladder"] || again["mariadb"] != addresses["mariadb"] {
		t.Errorf("a second up moved from %v to %v", addresses, again)
	}
}

// database opens the lab's database in the same way as the services.
func database(t *testing.T, address string) *sql.DB {
	t.Helper()
	password, err := os.ReadFile(filepath.Join(cache, "mariadb", "password"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", "lab:"+string(password)+"@tcp("+address+")/lab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func checkRows(t *testing.T, address string) {
	t.Helper()
	db := database(t, address)
	var rows, finished, partial int
	if err := db.QueryRow("select count(*), sum(score != -1) from game_record").Scan(&rows, &finished); err != nil {
		t.Fatal(err)
	}
	if rows != gamerecord.Rows || finished < rows*79/100 || finished > rows*81/100 {
		t.Errorf("%d rows, %d finished", rows, finished)
	}
	if err := db.QueryRow("select count(*) from information_schema.tables where table_name = 'game_record_partial'").Scan(&partial); err != nil || partial != 0 {
		t.Errorf("a partial table was left: %v", err)
	}
}

func TestStaleTable(t *testing.T) {
	addresses := up(t, "ladder")
	if _, err := database(t, addresses["mariadb"]).Exec("alter table game_record comment 'of an older lab'"); err != nil {
		t.Fatal(err)
	}
	down(t, "ladder")
	checkRows(t, up(t, "ladder")["mariadb"])
	down(t, "all")
}

func TestADatabaseThatDied(t *testing.T) {
	before := up(t, "flashsale")
	old := pid(t, "flashsale", "flashsale")
	if err := syscall.Kill(pid(t, "redis", "redis"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantError(t, ask(t, "POST", before["flashsale"]+"/event/1/order", `{"good_id":101}`), 503)
	after := up(t, "flashsale")
	if ask(t, "POST", after["flashsale"]+"/event/1/order", `{"good_id":101}`).status != 201 {
		t.Error("no order after the second up")
	}
	if pid(t, "flashsale", "flashsale") == old {
		t.Error("the service still points to the Redis that is gone")
	}
	down(t, "flashsale")
}

// TestWhatNobodyWroteDown deletes the record of running processes. The lab must
// still find and end all processes, of each kind of server.
func TestWhatNobodyWroteDown(t *testing.T) {
	addresses := up(t, "cards")
	for _, name := range []string{"flashsale", "apiserver"} {
		for key, address := range up(t, name) {
			addresses[key] = address
		}
	}
	if err := os.WriteFile(filepath.Join(cache, "run", "state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, _ := lab(t, "status"); stdout != "nothing runs\n" || !strings.Contains(stderr, "left over") {
		t.Errorf("%s%s", stdout, stderr)
	}
	for name, address := range addresses {
		if conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://")); err == nil {
			conn.Close()
			t.Errorf("%s still runs", name)
		}
	}
}

func TestTwoUpsAtOnce(t *testing.T) {
	var both sync.WaitGroup
	addresses := make([]map[string]string, 2)
	for i := range addresses {
		both.Go(func() { addresses[i] = up(t, "baseline") })
	}
	both.Wait()
	if addresses[0]["baseline"] == "" || addresses[0]["baseline"] != addresses[1]["baseline"] {
		t.Errorf("%v", addresses)
	}
	// With other flags, the case is started again.
	if changed := up(t, "baseline", "--", "--keepalive=off"); !ask(t, "GET", changed["baseline"]+"/healthz", "").closed {
		t.Error("the flags after -- did not reach the service")
	}
	down(t, "baseline")
}

func TestStatus(t *testing.T) {
	if stdout, _, status := lab(t, "status"); status != 0 || stdout != "nothing runs\n" {
		t.Fatalf("%d %q", status, stdout)
	}
	address := up(t, "baseline")["baseline"]
	if stdout, _, _ := lab(t, "status"); !strings.Contains(stdout, address) {
		t.Errorf("no %s in %s", address, stdout)
	}
	down(t, "all")
	if stdout, _, _ := lab(t, "status"); stdout != "nothing runs\n" {
		t.Errorf("after down: %s", stdout)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(address, "http://")); err == nil {
		t.Error("its port is still open")
	}
}

func TestRefusals(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, row := range []struct {
		cache  string
		args   []string
		status int
		says   string
	}{
		{cache, []string{"up", "lader"}, 1, `no case "lader"`},
		{cache, []string{"up"}, 2, "wants one case"},
		{cache, []string{"sideways"}, 2, "say up, down, status or setup"},
		{cache, nil, 2, "say up, down"},
		{cache, []string{"status", "now"}, 2, "no more words"},
		{cache, []string{"up", "all", "--", "--json=generated"}, 2, "`up` of one case"},
		{cache, []string{"up", "ladder", "--limit-rate=5"}, 2, "go with `up cards`"},
		{cache, []string{"up", "cards", "--limit-rate=-5"}, 2, "above 0"},
		{cache, []string{"down", "ladder", "--purge"}, 2, "`down all`"},
		{cache, []string{"up", "baseline", "--speed"}, 2, "unknown flag"},
		{cache, []string{"up", "baseline", "--", "--speed=9"}, 1, "unknown flag: --speed"},
		{cache, []string{"up", "baseline", "--", "--listen=" + taken.Addr().String()}, 1, "is taken by another program"},
		{cache, []string{"up", "cards", "--", "--listen=" + taken.Addr().String()}, 1, "is taken by another program"},
		{foreign, []string{"up", "baseline"}, 1, "not empty and not the lab's"},
		{empty, []string{"up", "ladder", "--min-free=999999999"}, 1, "no disk room"},
	} {
		stdout, stderr, status := labIn(t, row.cache, row.args...)
		if status != row.status || stdout != "" {
			t.Errorf("%v: status %d, printed %q", row.args, status, stdout)
		}
		oneSentence(t, stderr, row.says)
	}
	for _, dir := range []string{cache, empty} {
		if stdout, _, _ := labIn(t, dir, "status"); stdout != "nothing runs\n" {
			t.Errorf("refused starts left %s", stdout)
		}
	}
}

func TestEveryProgramHasHelp(t *testing.T) {
	for _, program := range []string{"baseline", "apiserver", "flashsale", "ladder", "gateway", "lab"} {
		output, err := exec.Command(filepath.Join(bin, program), "--help").Output()
		if err != nil || !strings.Contains(string(output), "Usage:") {
			t.Errorf("%s --help: %v, %s", program, err, output)
		}
	}
}
