// Package files holds the commands that make files: capture, export, report, merge and
// anonymise.
package files
