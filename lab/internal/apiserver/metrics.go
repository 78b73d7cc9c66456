// Metrics in the Prometheus text format: requests by route and status, their
// durations, and the metrics of the Go runtime.

package apiserver

import (
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// addMetrics counts the requests of all routes that are added later, and serves
// the metrics on /metrics.
func addMetrics(router *gin.Engine) {
	registry := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "http_requests_total", Help: "Requests answered.",
	}, []string{"method", "route", "status"})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "http_request_duration_seconds", Help: "Time to answer.",
		Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
	}, []string{"method", "route"})
	registry.MustRegister(requests, durations, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	router.Use(func(c *gin.Context) {
		began := time.Now()
		c.Next()
		// Labels contain only the route's pattern and known methods, so that
		// invented paths and methods of clients create no new series.
		method, route := c.Request.Method, c.FullPath()
		if route == "" {
			method, route = "any", "none"
		}
		requests.WithLabelValues(method, route, strconv.Itoa(c.Writer.Status())).Inc()
		durations.WithLabelValues(method, route).Observe(time.Since(began).Seconds())
	})
	router.GET("/metrics", gin.WrapH(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
}
