// Package privilege opens sockets that take privileges, and then gives all of them up
// for good. SECURITY.md has the table of who goes on.
package privilege
