// Package ladderpb is the generated code of ladder.proto.
package ladderpb

//go:generate go run -C ../../../tools ./protogen ../internal/ladder/ladderpb/ladder.proto
