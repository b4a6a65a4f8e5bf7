// Package serving is `ackscope web`: a server on loopback for the page that analyzes captures in a
// browser. The server sends the files of the page, and learns nothing of a capture.
package serving
