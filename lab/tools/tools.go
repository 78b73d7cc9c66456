// Package tools contains the code generators of the lab. It is a separate module,
// so that the generators do not become dependencies of the services. Only `go
// generate` needs this module, never a build or a test. The tool lines of go.mod
// name the commands.
package tools
