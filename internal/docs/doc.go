// Package docs tests that the documents show what the program prints. It has
// tests only.
//
// In README.md and docs/*.md a block marked console contains commands, each on
// a line that begins with "$ ", and their output. The test runs them from the
// root of the repository and compares. `go test ./internal/docs -update` (or
// make golden) rewrites the output.
package docs
