package filter

// Scope says what fields are about. A packet has them all; of a flow, an event,
// a message or a finding alone some make no sense.
type Scope uint8

const (
	OfMoment  Scope = 1 << iota // the frame's number and time
	OfAddress                   // addresses, ports, which side sent
	OfPacket                    // all else that stands in one packet
	OfFlow                      // the flow and its figures
	OfEvent                     // what was settled
	OfMessage                   // messages
	OfFinding                   // what rules found
)

// Scope says what the fields of the filter are about, all together.
func (f *Filter) Scope() Scope { return f.scope }

// Refuse returns the error of a filter that is asked about something that some of
// its fields are not about: it points at the first of them. nil where all of
// them are within the scope.
func (f *Filter) Refuse(within Scope, because string) error {
	for _, x := range f.asked {
		if x.scope&^within != 0 {
			return &Error{Filter: f.text, Offset: x.at.from, Length: max(x.at.to-x.at.from, 1),
				Message: f.text[x.at.from:x.at.to] + " " + because}
		}
	}
	return nil
}

// asked is a field of a filter.
type asked struct {
	scope Scope
	at    span
}
