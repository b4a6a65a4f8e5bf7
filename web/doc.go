// Package web holds the page that `ackscope web` serves. `make web` builds it, and the tag
// webassets links it into the program:
//
//	make web                              # needs npm; writes web/dist
//	go build -tags webassets ./cmd/ackscope
package web
