// Command flashsale runs the flash-sale service of the package internal/flashsale.
package main

import (
	"os"

	"plimsoll.dev/lab/internal/flashsale"
	"plimsoll.dev/lab/internal/service"
)

func main() {
	var config flashsale.Config
	os.Exit(service.Main(service.Program{
		Name:   "flashsale",
		About:  "a list of sale events as JSON, and orders on Redis that never oversell.",
		Flags:  config.Flags,
		Settle: config.Settle,
		Open:   config.Open,
	}))
}
