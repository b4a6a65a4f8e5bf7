package protocol

// Tools are nothing in a browser: it simulates nothing and opens no sockets.
type Tools struct{}
