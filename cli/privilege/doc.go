// Package privilege opens the sockets of a capture and then gives up all
// privileges, for good. For example, `sudo ackscope capture` opens its sockets
// as root and continues as the user who called sudo. SECURITY.md has the table
// of users.
package privilege
