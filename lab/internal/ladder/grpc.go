// Serves the steps of the ladder over gRPC.

package ladder

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"plimsoll.dev/lab/internal/ladder/ladderpb"
	"plimsoll.dev/lab/internal/service"
)

type rpcServer struct {
	ladderpb.UnimplementedLadderServer
	server
}

func (s rpcServer) Empty(context.Context, *ladderpb.EmptyRequest) (*ladderpb.EmptyReply, error) {
	return &ladderpb.EmptyReply{}, nil
}

func (s rpcServer) Redis(ctx context.Context, _ *ladderpb.RedisRequest) (*ladderpb.RedisReply, error) {
	if err := s.store.get(ctx); err != nil {
		return nil, s.rpcError("Redis", err)
	}
	return &ladderpb.RedisReply{}, nil
}

func (s rpcServer) Sql(ctx context.Context, in *ladderpb.SqlRequest) (*ladderpb.SqlReply, error) {
	if in.GetToken() == "" || len(in.GetToken()) > 32 {
		return nil, status.Error(codes.InvalidArgument, "token has 1 to 32 bytes")
	}
	records, err := s.store.records(ctx, in.GetAppId(), in.GetToken())
	if err != nil {
		return nil, s.rpcError("Sql", err)
	}
	reply := &ladderpb.SqlReply{Records: make([]*ladderpb.Record, len(records))}
	for i, r := range records {
		reply.Records[i] = &ladderpb.Record{
			Id: r.ID, AppId: r.AppID, Token: r.Token, PlayerId: r.PlayerID, Nickname: r.Nickname,
			PrizeGrade: r.PrizeGrade, Score: r.Score, PlayedAt: r.PlayedAt, Detail: r.Detail,
		}
	}
	return reply, nil
}

func (s rpcServer) rpcError(method string, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the caller went away")
	case errors.Is(err, errNoRedis), errors.Is(err, errNoSQL):
		return status.Error(codes.Unavailable, err.Error())
	}
	s.log.Error("store", "method", method, "cause", err.Error())
	return status.Error(codes.Unavailable, "the store behind this step does not answer")
}

// serveRPC opens the gRPC port, and serves calls until drain is called.
func (s server) serveRPC(address string) (port string, drain func(context.Context), err error) {
	listener, err := service.Listen(address)
	if err != nil {
		return "", nil, fmt.Errorf("--grpc-listen: %w", err)
	}
	rpc := grpc.NewServer()
	ladderpb.RegisterLadderServer(rpc, rpcServer{server: s})
	go func() {
		if err := rpc.Serve(listener); err != nil {
			s.log.Error("gRPC serving stopped", "cause", err.Error())
		}
	}()
	drain = func(ctx context.Context) {
		done := make(chan struct{})
		go func() { rpc.GracefulStop(); close(done) }()
		select {
		case <-done:
		case <-ctx.Done():
			rpc.Stop()
		}
	}
	return listener.Addr().String(), drain, nil
}
