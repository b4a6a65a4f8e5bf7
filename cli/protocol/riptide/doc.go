// Package riptide is Riptide on the command line. It serves simulate and lab. It also has two
// commands of its own: autopsy (how a connection ended) and guess (what messages hold).
package riptide
