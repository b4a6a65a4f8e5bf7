package host

import (
	"fmt"
	"strconv"
	"strings"
)

// maxComment bounds the text of a sample.
const maxComment = 4 << 10

// Text says for people what a sample holds:
//
//	host: 10.0.0.5:7777 game (pid 812): 491 dropped, 212992 bytes unread; eth0: 3 dropped in
func (s *Sample) Text() string {
	var parts []string
	for i := range s.Sockets {
		x := &s.Sockets[i]
		parts = append(parts, fmt.Sprintf("%v %s: %d dropped, %d bytes unread",
			x.Local, x.Owner.text(x.UID), x.Drops, x.Queue))
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if in, out := d.ReceiveDrops+d.ReceiveFIFO, d.TransmitDrops+d.TransmitFIFO; in+out > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d dropped in, %d out", d.Name, in, out))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no socket on the captured ports")
	}
	text := "host: " + strings.Join(parts, "; ")
	if len(text) > maxComment {
		return strings.ToValidUTF8(text[:maxComment], "") + " …"
	}
	return text
}

// text names the owner of a socket, or at least its user.
func (o *Owner) text(uid uint32) string {
	if o.PID == 0 {
		return "of user " + strconv.FormatUint(uint64(uid), 10)
	}
	return o.Name + " (pid " + strconv.Itoa(o.PID) + ")"
}
