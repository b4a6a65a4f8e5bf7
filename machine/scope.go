package machine

// Scope is what a protocol keeps of one endpoint over all of its flows. An
// example is a counter that numbers all packets of a host, whatever their
// receiver: no single flow shows all of its values.
//
// The analyzer passes it every datagram that the endpoint sends, in the order
// of the capture, each just before the flow's tracker sees it. The tracker
// reads the scope's answer from Datagram.Place.
type Scope interface {
	// Observe takes the next datagram that the endpoint sent. flow identifies
	// the endpoint's flow. Observe keeps nothing of d.
	Observe(flow int, d *Datagram) Place
	// Inspect adds to v what is known of the endpoint across its flows.
	Inspect(v *View)
	// Clone returns an independent copy: stepping one does not change the
	// other.
	Clone() Scope
	// Size returns the approximate bytes of a clone, which set the spacing of
	// checkpoints.
	Size() int
}

// Place is a datagram's position among all that its sender has sent. The zero
// value holds no position: the protocol has no scope, or the datagram no
// number.
type Place struct {
	// Number is the datagram's number, unwrapped over all that its sender has
	// sent.
	Number int64
	// Missing counts the sender's numbers that this datagram settles as
	// missing. They passed the tap in no flow, and are too old to come now.
	Missing uint32
	Known   bool
	// Again reports that a datagram with this number and the same bytes passed
	// before.
	Again bool
}
