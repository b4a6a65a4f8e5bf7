// Package files holds the commands that write files: capture, export, report,
// merge and anonymise. For example, `ackscope report match.pcapng -o
// report.html` writes one page.
package files
