// Package gamerecord contains the table game_record and the only query on it.
//
// With this data, the index has the same effect as in a real table. It avoids
// the scan and the sort of the matching rows, and it costs a walk through a part
// of the table in index order. The rows are spread evenly, so that part is
// equally large for every owner.
package gamerecord

import (
	"context"
	"database/sql"
	"fmt"
)

// The size of the table: Rows rows, owned by Owners pairs of (app_id, token).
const (
	Rows   = 500_000
	Apps   = 10
	Tokens = 25 // the number of tokens of each app
	Owners = Apps * Tokens
	// Limit is the number of records that one query returns.
	Limit = 50
)

// IndexName is the composite index on (prize_grade, score).
const IndexName = "prize_grade_score"

// Record is a row of the table game_record.
type Record struct {
	ID         int64  `json:"id"`
	AppID      uint32 `json:"app_id"`
	Token      string `json:"token"`
	PlayerID   int64  `json:"player_id"`
	Nickname   string `json:"nickname"`
	PrizeGrade int32  `json:"prize_grade"`
	Score      int32  `json:"score"`
	PlayedAt   string `json:"played_at"`
	Detail     string `json:"detail"`
}

// Token returns the n-th token of an app, as the rows contain it.
func Token(n int) string { return fmt.Sprintf("token-%02d", n) }

// Query returns the SQL of the query, with or without use of the index. Without,
// a hint makes the optimiser ignore the index, which gives the plan of a table
// without an index. Two servers with different switches can therefore be
// measured in turn on one table.
func Query(index bool) string {
	hint := ""
	if !index {
		hint = " ignore index (" + IndexName + ")"
	}
	return "select * from game_record" + hint +
		" where app_id=? and token=? and score != -1 order by prize_grade, score limit 50"
}

// Select runs a prepared query and returns its records.
func Select(ctx context.Context, query *sql.Stmt, app uint32, token string) ([]Record, error) {
	rows, err := query.QueryContext(ctx, app, token)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	records := make([]Record, 0, Limit)
	for rows.Next() {
		var r Record
		if err := rows.Scan(&r.ID, &r.AppID, &r.Token, &r.PlayerID, &r.Nickname, &r.PrizeGrade, &r.Score, &r.PlayedAt, &r.Detail); err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, rows.Err()
}
