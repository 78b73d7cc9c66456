// Command apiserver runs the API server of the package internal/apiserver.
package main

import (
	"os"

	"plimsoll.dev/lab/internal/apiserver"
	"plimsoll.dev/lab/internal/service"
)

func main() {
	var config apiserver.Config
	os.Exit(service.Main(service.Program{
		Name:   "apiserver",
		About:  "gin with a list of middlewares, users in MariaDB behind tokens, uploads, metrics and profiles.",
		Flags:  config.Flags,
		Settle: config.Settle,
		Log:    config.Logger,
		Open:   config.Open,
	}))
}
