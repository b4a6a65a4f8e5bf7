package machine

// Fault describes one named way in which an implementation goes wrong. Each
// protocol's reference has a table of them: its entries embed a Fault and add
// what the reference then does otherwise.
type Fault struct {
	Name string
	Doc  string
	// Unobservable says why the fault never reaches the wire; empty where it can.
	Unobservable string
	// Explained says why a right endpoint can always have sent the same, though the
	// fault reaches the wire; empty where it cannot.
	Explained string
	// Scenario is the flags of `ackscope simulate` in which it shows.
	Scenario []string
}

// About returns the description of an entry that embeds it.
func (f *Fault) About() *Fault { return f }

// LookupFault finds the entry of a name in a protocol's table; the zero F, nil of
// pointers, where there is none.
func LookupFault[F interface{ About() *Fault }](table []F, name string) (found F) {
	for _, f := range table {
		if f.About().Name == name {
			return f
		}
	}
	return found
}

// Faults returns the descriptions of a protocol's table, in its order.
func Faults[F interface{ About() *Fault }](table []F) []*Fault {
	list := make([]*Fault, len(table))
	for i, f := range table {
		list[i] = f.About()
	}
	return list
}
