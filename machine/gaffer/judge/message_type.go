package judge

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/machine"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// typeDiverges returns the divergence of a packet with a message whose type is out of
// range. It returns nil for any other packet. Without a schema it reads the first message
// only.
func typeDiverges(
	s *wire.MessageSection, d *machine.Datagram, p *wire.Packet, unread error,
) *machine.Divergence {
	if s.Form == wire.MessagesNone || unread != nil || p.Kind != wire.KindRegular || d.Length > len(d.Bytes) {
		return nil
	}
	section, err := s.Open(d.Bytes[p.PayloadOffset:p.PayloadOffset+p.PayloadLen], 0)
	if err != nil {
		return nil
	}
	var m wire.Message
	read := 0
	for section.Next(&m) {
		read++
	}
	var wrong *common.ParseError
	if !errors.As(section.Err(), &wrong) || wrong.Field != "message.type" || !errors.Is(wrong, common.ErrRange) {
		return nil
	}
	v := machine.Diverge(d, MessageType, machine.RestsOnOwn,
		machine.Differ("gaffer.message.type", wrong.Expected, wrong.Found),
		fmt.Sprintf("message %d of %d in the packet has type %s, and the profile has types %s", read+1, section.Count,
			wrong.Found, wrong.Expected))
	v.Reference, v.Captured = "a type of "+wrong.Expected, "type "+wrong.Found
	return v
}
