//go:build !libpcap || !cgo

package cli

import "github.com/ackscope/ackscope/capture/afpacket"

// openCapture opens interfaces, with no more privileges than it takes.
func openCapture(list []afpacket.Options, flags *privilegeFlags) (afpacket.Group, error) {
	if err := openWithLeast(list, flags); err != nil {
		return nil, err
	}
	return afpacket.OpenGroup(list)
}
