// Package gamerecord is the table game_record and the one query on it.
//
// The data is laid out so that the index does here what it does in a real
// table: it spares the scan and the sort of the matching rows, and it costs a
// walk through a part of the table in index order. Rows are spread evenly, so
// that part is the same for every owner.
package gamerecord

import (
	"context"
	"database/sql"
	"fmt"
)

// A table of Rows rows, owned by Owners pairs of (app_id, token).
const (
	Rows   = 500_000
	Apps   = 10
	Tokens = 25 // per app
	Owners = Apps * Tokens
	// Limit is how many records one query returns.
	Limit = 50
)

// IndexName is the composite index on (prize_grade, score).
const IndexName = "prize_grade_score"

// Record is a row.
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

// Token is the n-th token of an app, as the rows have it.
func Token(n int) string { return fmt.Sprintf("token-%02d", n) }

// Query is the query with the index or without. Without, the optimiser is told
// not to see the index, which gives the plan of a table that has none; so two
// servers with either switch can be measured on one table in turn.
func Query(index bool) string {
	hint := ""
	if !index {
		hint = " ignore index (" + IndexName + ")"
	}
	return "select * from game_record" + hint +
		" where app_id=? and token=? and score != -1 order by prize_grade, score limit 50"
}

// Select runs a prepared Query.
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
