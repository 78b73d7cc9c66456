package gamerecord

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestRowsAreEvenAndTheSame(t *testing.T) {
	const sampled = Rows / 10
	count := func() (rows, finished int, owners map[string]int, first string) {
		reader, writer := io.Pipe()
		go func() {
			buffered := bufio.NewWriterSize(writer, 1<<16)
			writer.CloseWithError(errors.Join(write(buffered, sampled), buffered.Flush()))
		}()
		owners = map[string]int{}
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			fields := strings.Split(lines.Text(), "\t")
			if len(fields) != 9 {
				t.Fatalf("%d fields in %q", len(fields), lines.Text())
			}
			if rows++; rows == 1 {
				first = lines.Text()
			}
			if fields[6] != "-1" {
				finished++
				owners[fields[1]+"/"+fields[2]]++
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		return rows, finished, owners, first
	}
	rows, finished, owners, first := count()
	if rows != sampled || len(owners) != Owners {
		t.Errorf("%d rows of %d owners", rows, len(owners))
	}
	if share := float64(finished) / float64(rows); share < 0.79 || share > 0.81 {
		t.Errorf("%.3f of the games are finished, want 0.8", share)
	}
	for owner, n := range owners {
		if n < 2*Limit {
			t.Errorf("owner %s has %d finished games only", owner, n)
		}
	}
	var again bytes.Buffer
	write(&limited{&again, 1}, Rows)
	if got := strings.TrimSuffix(again.String(), "\n"); got != first {
		t.Errorf("a second seeding begins with %q, the first with %q", got, first)
	}
}

// limited is a writer that fails after n writes, like a connection that breaks.
type limited struct {
	w io.Writer
	n int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.n == 0 {
		return 0, io.ErrClosedPipe
	}
	l.n--
	return l.w.Write(p)
}

func TestWriteStopsWithItsReader(t *testing.T) {
	if err := write(&limited{io.Discard, 10}, Rows); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

func TestQuery(t *testing.T) {
	const tail = " where app_id=? and token=? and score != -1 order by prize_grade, score limit 50"
	if got := Query(true); got != "select * from game_record"+tail {
		t.Error(got)
	}
	if got := Query(false); got != "select * from game_record ignore index (prize_grade_score)"+tail {
		t.Error(got)
	}
}
