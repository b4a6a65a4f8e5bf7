package filter

// Scope is the set of things that fields describe. A packet has fields of all
// of them. A flow, an event, a message or a finding alone lacks some.
type Scope uint8

const (
	OfMoment  Scope = 1 << iota // the frame's number and time
	OfAddress                   // addresses, ports, the side that sent
	OfPacket                    // everything else about one packet
	OfFlow                      // the flow and its figures
	OfEvent                     // settled events
	OfMessage                   // messages
	OfFinding                   // findings of rules
)

// Scope returns the set of things that the filter's fields describe.
func (f *Filter) Scope() Scope { return f.scope }

// Refuse returns an error if a field of the filter describes something outside
// within. The error marks the first such field, and because completes its
// message. Otherwise Refuse returns nil.
func (f *Filter) Refuse(within Scope, because string) error {
	for _, x := range f.uses {
		if x.scope&^within != 0 {
			return &Error{
				Filter: f.text, Offset: x.at.from, Length: max(x.at.to-x.at.from, 1),
				Message: f.text[x.at.from:x.at.to] + " " + because,
			}
		}
	}
	return nil
}

// fieldUse is a field of a filter and its position.
type fieldUse struct {
	scope Scope
	at    span
}
