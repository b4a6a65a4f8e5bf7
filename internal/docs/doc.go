// Package docs sees to it that the documents show what the program prints. It has
// tests only.
//
// In README.md and docs/*.md, a block marked console holds commands, each on a
// line that begins with "$ ", and below each what it printed. The test runs them
// from the root of the repository and compares; `go test ./internal/docs -update` (or make
// golden) writes anew what they print.
package docs
