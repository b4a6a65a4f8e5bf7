// Package files holds the commands that write files: capture, export, report,
// merge and anonymise.
package files
