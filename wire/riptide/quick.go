package riptide

// quick reads a bit-packed message of a type that makes up nearly all traffic, if nothing about it is odd. It says
// what slow would say. Otherwise it reports false and changes nothing. The first 8 bytes are in word. Its captured
// part ends at bit have, and the message at bit end.
func (m *Message) quick(l *Layout, word uint64, have, end int) bool {
	const at = 4 // behind the type
	switch {
	case l == bitsReliable && have >= at+24 && word>>(at+16)&128 == 0: // the message id has one group
		m.Sequence, m.MessageID, m.BodyBit = uint16(word>>at), uint16(word>>(at+16))&127, at+24
	case l == bitsUnreliable && have >= at+8 && word>>at&128 == 0:
		m.MessageID, m.BodyBit = uint16(word>>at)&127, at+8
	case l == bytesNotify && have >= at+40:
		m.Last, m.AckBits, m.Sequence = uint16(word>>at), uint16(word>>(at+16))&255, uint16(word>>(at+24))
		m.BodyBit = at + 40
	case l == bitsAck && have == end:
		return m.quickAck(word>>at, end-at)
	default:
		return false
	}
	m.BodyBits = max(end-m.BodyBit, 0)
	return true
}

// quickAck reads what follows the type of an Ack of a whole number of bytes.
func (m *Message) quickAck(word uint64, length int) bool {
	last, flag := uint16(word), word>>32&1 == 1
	switch {
	case !flag && length == 36 && word>>33 == 0:
		m.Cause, m.BodyBit = last, 37
	case flag && length == 52 && word>>49 == 0:
		m.Flag, m.Cause, m.HasCause, m.BodyBit = true, uint16(word>>33), true, 53
	default:
		return false
	}
	m.Last, m.AckBits = last, uint16(word>>16)
	return true
}
