package machine

// Scope is what a protocol keeps of one endpoint over all of its flows, where no
// flow shows it alone: such as a counter that numbers packets whoever they go to.
//
// The analyzer feeds it every datagram that the endpoint sends, in the order of
// the capture, each just before the tracker of its flow; the tracker finds what
// the scope said of it in Datagram.Place.
type Scope interface {
	// Observe takes the next datagram that the endpoint sent; flow tells its flows
	// apart. It keeps nothing of d.
	Observe(flow int, d *Datagram) Place
	// Inspect adds to v what is known of the endpoint as a whole.
	Inspect(v *View)
	// Clone returns an independent copy: stepping one leaves the other as it was.
	Clone() Scope
	// Size returns the bytes that a clone takes, about; checkpoints are spaced by it.
	Size() int
}

// Place is a datagram's place in all that its sender has sent, by the sender's
// scope. The zero value says nothing: the protocol has no scope, or the datagram
// no number.
type Place struct {
	// Number is the datagram's, unwrapped by all that its sender has sent.
	Number int64
	// Missing counts the sender's numbers that are now so far behind that they
	// will not come any more, and have passed the tap in no flow; those that this
	// datagram settles.
	Missing uint32
	Known   bool
}
