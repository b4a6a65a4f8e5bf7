package messages

import "slices"

// Receiver is the receiving half of the article's reliable ordered messages. Its buffer
// is indexed by message id. Messages are taken from it in the order of their ids.
type Receiver struct {
	Buffer []Message // by id mod len
	Next   int64     // the id that is delivered next
}

// NewReceiver returns an empty receive queue.
func NewReceiver(o *Options) Receiver {
	r := Receiver{Buffer: make([]Message, o.ReceiveBuffer), Next: int64(o.FirstID)}
	for i := range r.Buffer {
		r.Buffer[i].ID = -1
	}
	return r
}

// Unwrap returns the id with the low 16 bits wire that is nearest to the next one.
func (r *Receiver) Unwrap(wire uint16) int64 {
	return r.Next + int64(int16(wire-uint16(r.Next)))
}

// Put enters a message of a packet if the buffer has room for its id. It drops a
// message that was delivered already, or that is beyond the buffer's end.
func (r *Receiver) Put(m Message) {
	if m.ID < r.Next || m.ID >= r.Next+int64(len(r.Buffer)) {
		return
	}
	if e := &r.Buffer[m.ID%int64(len(r.Buffer))]; e.ID != m.ID {
		*e = m
	}
}

// Take returns the next message in order. It returns false if that message has not
// arrived.
func (r *Receiver) Take() (Message, bool) {
	e := &r.Buffer[r.Next%int64(len(r.Buffer))]
	if e.ID != r.Next {
		return Message{}, false
	}
	m := *e
	*e = Message{ID: -1}
	r.Next++
	return m, true
}

// Clone returns an independent copy.
func (r *Receiver) Clone() Receiver {
	c := *r
	c.Buffer = slices.Clone(r.Buffer)
	return c
}
