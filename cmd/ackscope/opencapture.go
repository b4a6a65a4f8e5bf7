//go:build !libpcap || !cgo

package main

import "github.com/ackscope/ackscope/capture/afpacket"

// openCapture opens interfaces, with no more privileges than it takes.
func openCapture(list []afpacket.Options, user string) (afpacket.Group, error) {
	if err := openWithLeast(list, user); err != nil {
		return nil, err
	}
	return afpacket.OpenGroup(list)
}
