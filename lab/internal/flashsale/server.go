// The HTTP endpoints: the list with its two JSON encoders, orders, and stock.

package flashsale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gin-contrib/pprof"
	"github.com/gin-gonic/gin"
	"github.com/mailru/easyjson"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"plimsoll.dev/lab/internal/service"
)

// Config contains the switches of the flash-sale service.
type Config struct {
	JSON      string
	Profiling bool
	RedisURL  string
	PoolSize  int
	Prefix    string
	Stock     int
}

// Flags adds a flag for each switch.
func (c *Config) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&c.JSON, "json", "reflect", "how the list becomes JSON: reflect (encoding/json) or generated (easyjson)")
	fs.BoolVar(&c.Profiling, "profiling", true, "serve /debug/pprof")
	fs.StringVar(&c.RedisURL, "redis-url", "", "redis://host:port (or $LAB_REDIS_URL); empty answers 503 to orders")
	fs.IntVar(&c.PoolSize, "redis-pool-size", 100, "connections to Redis at most")
	fs.StringVar(&c.Prefix, "redis-prefix", "flashsale", "what this service's keys begin with")
	fs.IntVar(&c.Stock, "stock", 1000, "pieces of each good, set anew at start; -1 keeps what is there")
}

// Settle checks the values of the switches.
func (c *Config) Settle(fs *pflag.FlagSet) error {
	if value := os.Getenv("LAB_REDIS_URL"); value != "" && !fs.Changed("redis-url") {
		c.RedisURL = value
	}
	switch {
	case c.JSON != "reflect" && c.JSON != "generated":
		return fmt.Errorf("--json is reflect or generated, not %q", c.JSON)
	case c.PoolSize <= 0:
		return fmt.Errorf("--redis-pool-size is above 0, not %d", c.PoolSize)
	case c.Stock < -1:
		return fmt.Errorf("--stock is 0 or more, or -1, not %d", c.Stock)
	}
	return nil
}

type server struct {
	list  EventList
	stock *stock // nil if there is no Redis
	log   *slog.Logger
}

// Open creates the service and connects to Redis.
func (c *Config) Open(ctx context.Context, env service.Env) (service.Served, error) {
	s := server{list: NewCatalogue(), log: env.Log}
	served := service.Served{}
	if c.RedisURL != "" {
		options, err := redis.ParseURL(c.RedisURL)
		if err != nil {
			return served, fmt.Errorf("--redis-url: %w", err)
		}
		options.PoolSize = c.PoolSize
		client := redis.NewClient(options)
		s.stock = &stock{client: client, prefix: c.Prefix}
		served.Close = client.Close
		if c.Stock >= 0 {
			err = s.stock.fill(ctx, s.list, c.Stock)
		} else if err = client.Ping(ctx).Err(); err != nil {
			err = fmt.Errorf("Redis at %s does not answer: %w", options.Addr, err)
		}
		if err != nil {
			client.Close()
			return service.Served{}, err
		}
	}
	served.Handler = s.router(c.JSON, c.Profiling)
	return served, nil
}

func (s server) router(how string, profiling bool) http.Handler {
	gin.DefaultWriter, gin.DefaultErrorWriter = os.Stderr, os.Stderr
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.Use(s.recovery)
	router.NoRoute(func(c *gin.Context) { abort(c, http.StatusNotFound, "there is no such endpoint") })
	router.NoMethod(func(c *gin.Context) {
		abort(c, http.StatusMethodNotAllowed, "this endpoint does not take "+c.Request.Method)
	})
	if profiling {
		pprof.Register(router)
	}
	listing := s.listReflect
	if how == "generated" {
		listing = s.listGenerated
	}
	router.GET("/event/list", listing)
	router.GET("/event/:id/stock", s.showStock)
	router.POST("/event/:id/order", s.order)
	return router
}

func abort(c *gin.Context, status int, message string) {
	c.AbortWithStatusJSON(status, service.NewError(status, message))
}

func (s server) recovery(c *gin.Context) {
	defer func() {
		if cause := recover(); cause != nil {
			s.log.Error("panic", "path", c.Request.URL.Path, "cause", fmt.Sprint(cause))
			abort(c, http.StatusInternalServerError, "the server failed on this request")
		}
	}()
	c.Next()
}

// listReflect encodes the list by reflection, at every request.
func (s server) listReflect(c *gin.Context) {
	body, err := json.Marshal(s.list)
	s.writeList(c, body, err)
}

// listGenerated encodes the same list with generated code, at every request.
func (s server) listGenerated(c *gin.Context) {
	body, err := easyjson.Marshal(s.list)
	s.writeList(c, body, err)
}

func (s server) writeList(c *gin.Context, body []byte, err error) {
	if err != nil {
		s.log.Error("encode", "cause", err.Error())
		abort(c, http.StatusInternalServerError, "the list cannot be encoded")
		return
	}
	c.Data(http.StatusOK, "application/json; charset=utf-8", body)
}

// event parses the event's number in the path. If it returns false, it has
// responded with an error.
func (s server) event(c *gin.Context) (int, bool) {
	if s.stock == nil {
		abort(c, http.StatusServiceUnavailable, "this server was started without Redis (--redis-url)")
		return 0, false
	}
	id, err := strconv.Atoi(c.Param("id"))
	switch {
	case err != nil:
		abort(c, http.StatusBadRequest, "an event's id is a number")
	case id < 1 || id > len(s.list.Events):
		abort(c, http.StatusNotFound, "there is no such event")
	default:
		return id, true
	}
	return 0, false
}

const orderBodyMax = 4 << 10

func (s server) order(c *gin.Context) {
	event, ok := s.event(c)
	if !ok {
		return
	}
	said := struct {
		Good     int `json:"good_id"`
		Quantity int `json:"quantity"`
	}{Quantity: 1}
	decoder := json.NewDecoder(http.MaxBytesReader(c.Writer, c.Request.Body, orderBodyMax))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&said); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		abort(c, http.StatusBadRequest, `the body is not {"good_id":101,"quantity":1}: `+err.Error())
		return
	}
	if said.Quantity < 1 || said.Quantity > 10 {
		abort(c, http.StatusBadRequest, "quantity is 1 to 10")
		return
	}
	if !s.list.has(event, said.Good) {
		abort(c, http.StatusNotFound, "this event has no such good")
		return
	}
	// An order is completed even if its buyer disconnects meanwhile. The Redis
	// script runs as one step, and the stock must show what was sold.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), 5*time.Second)
	defer cancel()
	number, err := s.stock.order(ctx, event, said.Good, said.Quantity)
	switch {
	case errors.Is(err, errSoldOut):
		abort(c, http.StatusConflict, "fewer pieces are left than you want")
	case err != nil:
		s.fail(c, err)
	default:
		c.JSON(http.StatusCreated, gin.H{
			"order": fmt.Sprintf("%d-%d", event, number), "event_id": event, "good_id": said.Good, "quantity": said.Quantity,
		})
	}
}

func (s server) showStock(c *gin.Context) {
	event, ok := s.event(c)
	if !ok {
		return
	}
	goods, orders, err := s.stock.left(c.Request.Context(), event)
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"event_id": event, "goods": goods, "orders": orders})
}

func (s server) fail(c *gin.Context, err error) {
	s.log.Error("redis", "path", c.Request.URL.Path, "cause", err.Error())
	abort(c, http.StatusServiceUnavailable, "the stock does not answer")
}
