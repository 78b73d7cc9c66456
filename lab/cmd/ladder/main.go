// Command ladder runs the three endpoints of the package internal/ladder.
package main

import (
	"os"

	"plimsoll.dev/lab/internal/ladder"
	"plimsoll.dev/lab/internal/service"
)

func main() {
	var config ladder.Config
	os.Exit(service.Main(service.Program{
		Name:   "ladder",
		About:  "/empty, /redis and /sql: one endpoint in three steps, each with one thing more in it.",
		Flags:  config.Flags,
		Settle: config.Settle,
		Open:   config.Open,
	}))
}
