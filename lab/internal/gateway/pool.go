// Package gateway turns HTTP requests with JSON into gRPC calls of the ladder.
package gateway

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// pool contains at most size idle connections to one back end. Each connection
// serves one call at a time. A call without an idle connection opens a new one,
// and a connection that returns to a full pool is closed. If the pool is smaller
// than the number of calls in flight, nearly every call needs a TCP and HTTP/2
// handshake. The lab measures the cost of these handshakes.
type pool struct {
	address string
	idle    chan *grpc.ClientConn
	dials   atomic.Int64
	closing sync.Once
}

func newPool(address string, size int) *pool {
	return &pool{address: address, idle: make(chan *grpc.ClientConn, size)}
}

func (p *pool) get() (*grpc.ClientConn, error) {
	select {
	case conn := <-p.idle:
		return conn, nil
	default:
	}
	p.dials.Add(1)
	return grpc.NewClient("passthrough:///"+p.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

func (p *pool) put(conn *grpc.ClientConn) {
	select {
	case p.idle <- conn:
	default:
		conn.Close()
	}
}

// call runs the function do with a connection of the pool.
func (p *pool) call(ctx context.Context, do func(context.Context, *grpc.ClientConn) error) error {
	conn, err := p.get()
	if err != nil {
		return err
	}
	if err = do(ctx, conn); status.Code(err) == codes.Unavailable {
		conn.Close() // it may be broken, so the next call opens a new one
		return err
	}
	p.put(conn)
	return err
}

// close closes the idle connections. The pool must not be used afterwards.
func (p *pool) close() {
	p.closing.Do(func() {
		for {
			select {
			case conn := <-p.idle:
				conn.Close()
			default:
				return
			}
		}
	})
}

// backends distributes calls over the pools in turn.
type backends struct {
	pools []*pool
	next  atomic.Uint64
}

func newBackends(addresses []string, size int) *backends {
	b := &backends{}
	for _, address := range addresses {
		b.pools = append(b.pools, newPool(address, size))
	}
	return b
}

func (b *backends) call(ctx context.Context, do func(context.Context, *grpc.ClientConn) error) error {
	return b.pools[b.next.Add(1)%uint64(len(b.pools))].call(ctx, do)
}

func (b *backends) close() error {
	for _, p := range b.pools {
		p.close()
	}
	return nil
}
