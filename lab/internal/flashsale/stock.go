// The stock of goods, stored in Redis. One script checks and reduces the stock in
// a single step of the Redis server. Two buyers can therefore never both get the
// last piece, whatever the load and the number of copies of this service.

package flashsale

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

var errSoldOut = errors.New("sold out")

// take is the script that places an order. KEYS are the stock and the orders of
// an event; ARGV are the good and the quantity. The script returns the order's
// number, or 0 if fewer pieces are left than ordered.
var take = redis.NewScript(`
local left = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
local wanted = tonumber(ARGV[2])
if left < wanted then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[1], -wanted)
return redis.call('INCR', KEYS[2])
`)

type stock struct {
	client *redis.Client
	prefix string
}

func (s stock) stockKey(event int) string  { return s.prefix + ":stock:" + strconv.Itoa(event) }
func (s stock) ordersKey(event int) string { return s.prefix + ":orders:" + strconv.Itoa(event) }

// fill sets the stock of every good and deletes all orders.
func (s stock) fill(ctx context.Context, list EventList, pieces int) error {
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, event := range list.Events {
			p.Del(ctx, s.stockKey(event.ID), s.ordersKey(event.ID))
			for _, good := range event.Goods {
				p.HSet(ctx, s.stockKey(event.ID), strconv.Itoa(good.ID), pieces)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the stock cannot be put into Redis at %s: %w", s.client.Options().Addr, err)
	}
	return nil
}

// order removes pieces from the stock and returns the order's number in its event.
func (s stock) order(ctx context.Context, event, good, quantity int) (int64, error) {
	number, err := take.Run(ctx, s.client, []string{s.stockKey(event), s.ordersKey(event)}, good, quantity).Int64()
	if err != nil {
		return 0, err
	}
	if number == 0 {
		return 0, errSoldOut
	}
	return number, nil
}

// left returns the remaining stock of each good of an event, and the number of
// orders.
func (s stock) left(ctx context.Context, event int) (goods map[string]int, orders int64, err error) {
	var remaining *redis.MapStringStringCmd
	var count *redis.StringCmd
	_, err = s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		remaining = p.HGetAll(ctx, s.stockKey(event))
		count = p.Get(ctx, s.ordersKey(event))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // redis.Nil: there is no order yet
		return nil, 0, err
	}
	goods = map[string]int{}
	for good, text := range remaining.Val() {
		if goods[good], err = strconv.Atoi(text); err != nil {
			return nil, 0, fmt.Errorf("stock of %s: %w", good, err)
		}
	}
	orders, err = count.Int64()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return goods, orders, err
}
