package machine

// Origin is where the cause of what a rule found most likely lies. For example, a burst of
// losses lies in the network, and a false ack in an endpoint's code.
type Origin uint8

const (
	OriginUnsaid  Origin = iota // the rule says nothing: see Rule.Cause
	OriginNetwork               // loss, delay, order and silence on the way
	OriginLibrary               // timers, windows and limits of the library, and how the game uses it
	OriginCode                  // a fault in the code of an endpoint
	OriginCapture               // how the capture was taken; the endpoints are not concerned
)

var originWords = [...]string{"unsaid", "network", "library", "code", "capture"}

// String returns the word that output uses.
func (o Origin) String() string {
	if int(o) < len(originWords) {
		return originWords[o]
	}
	return "unknown"
}

// Cause returns where the cause of what r finds most likely lies: r.Origin, or what follows
// from the rule's kind.
//
//   - An error is a fault in an endpoint's code.
//   - A packet that is sent again is the doing of a library.
//   - What concludes from packets that did not pass concerns the network.
//   - Anything else concerns the library and how the game uses it.
func (r *Rule) Cause() Origin {
	switch {
	case r.Origin != OriginUnsaid:
		return r.Origin
	case r.CaptureLoss:
		return OriginCapture
	case r.Severity == Error:
		return OriginCode
	case r.Resend != "":
		return OriginLibrary
	case r.Absence:
		return OriginNetwork
	}
	return OriginLibrary
}
