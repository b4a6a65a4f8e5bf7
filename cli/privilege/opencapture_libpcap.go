//go:build libpcap && cgo

package privilege

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/capture/libpcap"
)

// OpenCapture opens interfaces through libpcap. libpcap opens and configures
// them in one call, so the whole process keeps its privileges until then. After
// that it becomes the chosen user.
func OpenCapture(list []afpacket.Options, flags *Options) (afpacket.Group, error) {
	who, err := flags.successor(current())
	if err != nil {
		return nil, err
	}
	group, err := libpcap.OpenGroup(list)
	if err != nil {
		return nil, err
	}
	if err := become(who); err != nil {
		return nil, errors.Join(fmt.Errorf("going on as user %d, group %d: %w", who.UID, who.GID, err), group.Close())
	}
	return group, nil
}
