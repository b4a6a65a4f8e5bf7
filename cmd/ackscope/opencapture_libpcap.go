//go:build libpcap && cgo

package main

import (
	"errors"

	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/capture/libpcap"
)

// openCapture opens interfaces through libpcap, which opens them by itself: what
// it may do is what who runs it may.
func openCapture(list []afpacket.Options, user string) (afpacket.Group, error) {
	if user != "" {
		return nil, errors.New("-Z: not with libpcap, which opens the interfaces itself")
	}
	return libpcap.OpenGroup(list)
}
