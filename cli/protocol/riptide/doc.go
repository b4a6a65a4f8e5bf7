// Package riptide is Riptide on the command line: for simulate and lab, and with two
// commands of its own, autopsy (how a connection ended) and guess (what messages hold).
package riptide
