// Package tools holds what writes the lab's generated code. It is a module of
// its own so that the services' dependencies stay theirs; only `go generate`
// needs it, never a build or a test. The commands it runs are named by the
// tool lines of go.mod.
package tools
