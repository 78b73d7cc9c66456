// Command gateway runs the gateway of the package internal/gateway.
package main

import (
	"os"

	"plimsoll.dev/lab/internal/gateway"
	"plimsoll.dev/lab/internal/service"
)

func main() {
	var config gateway.Config
	os.Exit(service.Main(service.Program{
		Name:   "gateway",
		About:  "the ladder's steps as JSON over HTTP, answered by gRPC calls to ladder servers.",
		Flags:  config.Flags,
		Settle: config.Settle,
		Open:   config.Open,
	}))
}
