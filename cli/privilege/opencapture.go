//go:build !libpcap || !cgo

package privilege

import "github.com/ackscope/ackscope/capture/afpacket"

// OpenCapture opens interfaces with the least privileges.
func OpenCapture(list []afpacket.Options, flags *Options) (afpacket.Group, error) {
	if err := OpenWithLeast(list, flags); err != nil {
		return nil, err
	}
	return afpacket.OpenGroup(list)
}
