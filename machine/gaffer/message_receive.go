package gaffer

import "slices"

// messageReceiver is the receiving half of the article's reliable ordered
// messages: the receive buffer indexed by message id, from which messages are
// taken in the order of their ids.
type messageReceiver struct {
	buffer []message // by id mod len
	next   int64     // the id that is handed over next
}

func newMessageReceiver(o *MessageOptions) messageReceiver {
	r := messageReceiver{buffer: make([]message, o.ReceiveBuffer), next: int64(o.FirstID)}
	for i := range r.buffer {
		r.buffer[i].id = -1
	}
	return r
}

// unwrap gives the id nearest to the next one that reads as wire.
func (r *messageReceiver) unwrap(wire uint16) int64 {
	return r.next + int64(int16(wire-uint16(r.next)))
}

// put enters a message that came in a packet, where the buffer has room for its
// id: one that was handed over already, or that lies beyond the buffer's end, is
// dropped.
func (r *messageReceiver) put(m message) {
	if m.id < r.next || m.id >= r.next+int64(len(r.buffer)) {
		return
	}
	if e := &r.buffer[m.id%int64(len(r.buffer))]; e.id != m.id {
		*e = m
	}
}

// take gives the next message in order, false where it has not come.
func (r *messageReceiver) take() (message, bool) {
	e := &r.buffer[r.next%int64(len(r.buffer))]
	if e.id != r.next {
		return message{}, false
	}
	m := *e
	*e = message{id: -1}
	r.next++
	return m, true
}

func (r *messageReceiver) clone() messageReceiver {
	c := *r
	c.buffer = slices.Clone(r.buffer)
	return c
}
