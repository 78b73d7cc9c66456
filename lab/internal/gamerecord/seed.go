// Seeding fills the table. The rows are streamed into a table of another name and
// indexed, and then that table gets its real name in one step. A table called
// game_record is therefore always complete, even after an interrupted seeding.

package gamerecord

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	"github.com/go-sql-driver/mysql"
)

// comment marks a complete table of this version. A change of the data below
// needs another comment; older tables are then created again.
var comment = fmt.Sprintf("plimsoll lab 1: %d rows of %d owners", Rows, Owners)

const columns = `(
	id bigint unsigned not null auto_increment primary key,
	app_id int unsigned not null,
	token varchar(32) not null,
	player_id bigint unsigned not null,
	nickname varchar(32) not null,
	prize_grade tinyint not null,
	score int not null,
	played_at datetime not null,
	detail varchar(255) not null
) engine=InnoDB default charset=ascii`

// Seeded returns whether the table exists and is complete.
func Seeded(ctx context.Context, db *sql.DB) (bool, error) {
	var found int
	err := db.QueryRowContext(ctx, `select count(*) from information_schema.tables
		where table_schema = database() and table_name = 'game_record' and table_comment = ?`, comment).Scan(&found)
	return found == 1, err
}

// Seed creates the table, unless it exists and is complete.
func Seed(ctx context.Context, db *sql.DB) error {
	if done, err := Seeded(ctx, db); err != nil || done {
		return err
	}
	const reader = "game_record"
	rows, sink := io.Pipe()
	mysql.RegisterReaderHandler(reader, func() io.Reader { return rows })
	defer mysql.DeregisterReaderHandler(reader)
	go func() {
		buffered := bufio.NewWriterSize(sink, 1<<16)
		sink.CloseWithError(errors.Join(write(buffered, Rows), buffered.Flush()))
	}()
	defer rows.Close()

	// All statements use one connection, because the settings belong to a session.
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range []string{
		"drop table if exists game_record_partial, game_record",
		"create table game_record_partial " + columns,
		"set session unique_checks = 0, foreign_key_checks = 0",
		"load data local infile 'Reader::" + reader + "' into table game_record_partial",
		"alter table game_record_partial add index " + IndexName + " (prize_grade, score), comment '" + comment + "'",
		"analyze table game_record_partial",
		"rename table game_record_partial to game_record",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("seeding game_record: %w", err)
		}
	}
	return nil
}

// write writes the rows as tab-separated text, the same at every seeding.
func write(w io.Writer, rows int) error {
	random := rand.New(rand.NewPCG(1, 2))
	// The detail of each row is a part of this text.
	text := make([]byte, 1<<16)
	for i := range text {
		text[i] = byte('a' + random.IntN(26))
	}
	line := make([]byte, 0, 256)
	number := func(n int, after string) {
		line = strconv.AppendInt(line, int64(n), 10)
		line = append(line, after...)
	}
	twoDigits := func(n int, after string) {
		line = append(line, byte('0'+n/10), byte('0'+n%10))
		line = append(line, after...)
	}
	for id := 1; id <= rows; id++ {
		owner := random.IntN(Owners)
		score := random.IntN(10_000)
		if random.IntN(5) == 0 {
			score = -1 // marks a game that was not finished
		}
		line = line[:0]
		number(id, "\t")
		number(owner/Tokens+1, "\t")
		line = append(line, Token(owner%Tokens)...)
		line = append(line, '\t')
		number(1+random.IntN(100_000), "\tplayer")
		number(random.IntN(100_000), "\t")
		number(random.IntN(10), "\t")
		number(score, "\t2030-")
		twoDigits(1+random.IntN(12), "-")
		twoDigits(1+random.IntN(28), " ")
		twoDigits(random.IntN(24), ":")
		twoDigits(random.IntN(60), ":")
		twoDigits(random.IntN(60), "\t")
		length := 80 + random.IntN(40)
		from := random.IntN(len(text) - length)
		line = append(line, text[from:from+length]...)
		line = append(line, '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}
