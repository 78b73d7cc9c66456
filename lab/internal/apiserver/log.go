// The outputs of log lines. Each line is written at once, with one write for each
// output. Nothing is buffered, because the cost of these writes under load is
// one of the figures that the lab measures.

package apiserver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"plimsoll.dev/lab/internal/service"
)

// Logger opens the configured outputs and creates the logger.
func (c *Config) Logger() (*slog.Logger, func() error, error) {
	level, err := service.ParseLevel(c.LogLevel)
	if err != nil {
		return nil, nil, err
	}
	var outputs []io.Writer
	var files []*os.File
	closeAll := func() error {
		var errs []error
		for _, file := range files {
			errs = append(errs, file.Close())
		}
		return errors.Join(errs...)
	}
	for _, path := range c.LogOutputs {
		switch path {
		case "stdout":
			outputs = append(outputs, os.Stdout)
		case "stderr":
			outputs = append(outputs, os.Stderr)
		default:
			file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, nil, errors.Join(fmt.Errorf("log.output-paths: %w", err), closeAll())
			}
			files = append(files, file)
			outputs = append(outputs, file)
		}
	}
	out := outputs[0]
	if len(outputs) > 1 {
		out = io.MultiWriter(outputs...)
	}
	options := &slog.HandlerOptions{Level: level, AddSource: c.Mode == "debug"}
	return slog.New(slog.NewJSONHandler(out, options)), closeAll, nil
}
