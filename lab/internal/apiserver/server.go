// The router: the handlers of all endpoints, behind the selected middlewares.

package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/gin-contrib/pprof"
	"github.com/gin-gonic/gin"
	"golang.org/x/crypto/bcrypt"

	"plimsoll.dev/lab/internal/service"
)

// Version is the API's version.
const Version = "1.0.0"

// Open creates the server that a configuration describes.
func (c *Config) Open(ctx context.Context, env service.Env) (service.Served, error) {
	log := env.Log
	// In debug mode gin prints its table of routes. This goes to standard error,
	// because standard output is reserved for the address line.
	gin.DefaultWriter, gin.DefaultErrorWriter = os.Stderr, os.Stderr
	gin.SetMode(c.Mode)
	router := newRouter(c.Middlewares, c.Metrics, log)

	router.GET("/healthz", healthz)
	router.GET("/version", version)
	if c.Profiling {
		pprof.Register(router)
	}

	sessions := newTokens(c.JWTSecret, c.TokenLifetime)
	closeStore, err := c.addUsers(ctx, router, sessions, log)
	if err != nil {
		return service.Served{}, err
	}
	files, err := openFiles(c.UploadDir, c.UploadMax, log)
	if err != nil {
		closeStore()
		return service.Served{}, err
	}
	fileRoutes := router.Group("/v1/files", sessions.required, files.enabled)
	fileRoutes.POST("", files.upload)
	fileRoutes.GET("/:id", files.download)

	log.Info("configured", "mode", c.Mode, "middlewares", c.Middlewares, "log_level", c.LogLevel,
		"profiling", c.Profiling, "metrics", c.Metrics, "database", c.MySQLDSN != "")
	return service.Served{Handler: router, Close: closeStore}, nil
}

// newRouter creates a router with the selected middlewares, and with JSON errors
// for unknown routes.
func newRouter(chosen []string, withMetrics bool, log *slog.Logger) *gin.Engine {
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.RedirectTrailingSlash = false
	if err := router.SetTrustedProxies(nil); err != nil { // an empty list is always valid
		panic(err)
	}
	if withMetrics {
		addMetrics(router)
	}
	for _, m := range middlewares {
		if slices.Contains(chosen, m.name) {
			router.Use(m.make(log))
		}
	}
	router.NoRoute(func(c *gin.Context) { abort(c, http.StatusNotFound, "there is no such endpoint") })
	router.NoMethod(func(c *gin.Context) {
		abort(c, http.StatusMethodNotAllowed, "this endpoint does not take "+c.Request.Method)
	})
	return router
}

func healthz(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) }

func version(c *gin.Context) {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	c.JSON(http.StatusOK, gin.H{
		"version": Version, "revision": revision,
		"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
	})
}

// addUsers opens the database and adds the endpoints that need it. Without a
// database, these endpoints respond with an error.
func (c *Config) addUsers(ctx context.Context, router *gin.Engine, sessions tokens, log *slog.Logger) (func() error, error) {
	if c.MySQLDSN == "" {
		missing := func(c *gin.Context) {
			abort(c, http.StatusServiceUnavailable, "this server was started without a database (mysql.dsn)")
		}
		router.POST("/login", missing)
		router.Any("/v1/users", missing)
		router.Any("/v1/users/:name", missing)
		return func() error { return nil }, nil
	}
	store, err := openUsers(ctx, c.MySQLDSN, c.MySQLMaxOpen)
	if err != nil {
		return nil, err
	}
	decoy, err := bcrypt.GenerateFromPassword([]byte("no account has this"), c.BcryptCost)
	if err == nil && c.AdminPassword != "" {
		var hash []byte
		if hash, err = bcrypt.GenerateFromPassword([]byte(c.AdminPassword), c.BcryptCost); err == nil {
			err = store.putAdmin(ctx, hash)
		}
	}
	if err != nil {
		store.db.Close()
		return nil, fmt.Errorf("the admin account cannot be made: %w", err)
	}
	users := userAPI{store: store, tokens: sessions, cost: c.BcryptCost, log: log, debug: c.Mode == "debug", decoy: decoy}
	router.POST("/login", users.login)
	router.POST("/v1/users", users.create)
	known := router.Group("/v1/users", sessions.required)
	known.GET("", users.list)
	known.GET("/:name", users.get)
	known.PUT("/:name", users.update)
	known.DELETE("/:name", users.delete)
	return store.db.Close, nil
}
