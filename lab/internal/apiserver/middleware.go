// The middlewares that the setting server.middlewares can select. Their order is
// fixed, because a middleware may need an earlier one. For example, the logger
// needs the request's id.

package apiserver

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"plimsoll.dev/lab/internal/service"
)

const (
	requestIDHeader = "X-Request-ID"
	loggerKey       = "lab.logger"
	usernameKey     = "lab.username"
	adminKey        = "lab.admin"
)

type middleware struct {
	name string
	make func(*slog.Logger) gin.HandlerFunc
}

// middlewares lists all middlewares in the order in which they run.
var middlewares = []middleware{
	{"recovery", recovery},
	{"requestid", requestID},
	{"context", requestContext},
	{"nocache", headers(
		"Cache-Control", "no-cache, no-store, max-age=0, must-revalidate",
		"Expires", "Thu, 01 Jan 1970 00:00:00 GMT",
		"Pragma", "no-cache")},
	{"secure", headers(
		"X-Frame-Options", "DENY",
		"X-Content-Type-Options", "nosniff",
		"Referrer-Policy", "no-referrer",
		"Content-Security-Policy", "default-src 'none'")},
	{"cors", cors},
	{"logger", logger},
	{"dump", dump},
}

func middlewareNames() []string {
	names := make([]string, len(middlewares))
	for i, m := range middlewares {
		names[i] = m.name
	}
	return names
}

// recovery turns a panic into a JSON 500 instead of a broken connection.
func recovery(log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			if cause := recover(); cause != nil {
				if cause == http.ErrAbortHandler {
					panic(cause)
				}
				log.Error("panic", "path", c.Request.URL.Path, "cause", fmt.Sprint(cause))
				abort(c, http.StatusInternalServerError, "the server failed on this request")
			}
		}()
		c.Next()
	}
}

// requestID uses the request id of the caller or creates one, and returns the id
// in the response.
func requestID(*slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		id := c.GetHeader(requestIDHeader)
		if id == "" || len(id) > 128 {
			var random [16]byte
			rand.Read(random[:]) // never fails
			id = hex.EncodeToString(random[:])
			c.Request.Header.Set(requestIDHeader, id)
		}
		c.Header(requestIDHeader, id)
		c.Next()
	}
}

// requestContext gives the handlers a logger that logs the request's id.
func requestContext(log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Set(loggerKey, log.With("request_id", c.GetHeader(requestIDHeader)))
		c.Next()
	}
}

// logOf returns the request's logger. Without the middleware requestContext it
// returns the logger `fallback`.
func logOf(c *gin.Context, fallback *slog.Logger) *slog.Logger {
	if log, ok := c.Get(loggerKey); ok {
		return log.(*slog.Logger)
	}
	return fallback
}

// headers returns a middleware that sets fixed response headers, given as name,
// value, name, value.
func headers(pairs ...string) func(*slog.Logger) gin.HandlerFunc {
	return func(*slog.Logger) gin.HandlerFunc {
		return func(c *gin.Context) {
			for i := 0; i < len(pairs); i += 2 {
				c.Header(pairs[i], pairs[i+1])
			}
			c.Next()
		}
	}
}

// cors allows requests from pages of any origin, without credentials.
func cors(*slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.GetHeader("Origin") != "" {
			c.Header("Access-Control-Allow-Origin", "*")
			c.Header("Access-Control-Expose-Headers", requestIDHeader)
		}
		if c.Request.Method == http.MethodOptions && c.GetHeader("Access-Control-Request-Method") != "" {
			c.Header("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
			c.Header("Access-Control-Allow-Headers", "Authorization, Content-Type, "+requestIDHeader)
			c.Header("Access-Control-Max-Age", "600")
			c.AbortWithStatus(http.StatusNoContent)
			return
		}
		c.Next()
	}
}

// logger writes one log line for each request.
func logger(log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		began := time.Now()
		c.Next()
		logOf(c, log).Info("request",
			"method", c.Request.Method,
			"path", c.Request.URL.Path,
			"query", c.Request.URL.RawQuery,
			"status", c.Writer.Status(),
			"bytes", c.Writer.Size(),
			"duration_us", time.Since(began).Microseconds(),
			"client", c.ClientIP(),
			"user_agent", c.Request.UserAgent(),
			"user", c.GetString(usernameKey),
		)
	}
}

// abort responds with a JSON error and skips all later handlers.
func abort(c *gin.Context, status int, message string) {
	c.AbortWithStatusJSON(status, service.NewError(status, message))
}
