package machine

// Fault describes one named way in which an implementation goes wrong. Each
// protocol's reference has a table of faults. An entry of the table embeds a
// Fault and adds what the reference then does differently.
type Fault struct {
	Name string
	Doc  string
	// Unobservable says why the fault never reaches the wire; empty when it
	// can.
	Unobservable string
	// Explained says why a correct endpoint could always have sent the same
	// bytes, although the fault reaches the wire. It is empty when no correct
	// endpoint could.
	Explained string
	// Scenario holds the flags of `ackscope simulate` that show the fault.
	Scenario []string
}

// About returns the description of an entry that embeds f.
func (f *Fault) About() *Fault { return f }

// LookupFault returns the entry with the given name from a protocol's table.
// When there is none, it returns the zero F, which is nil for pointers.
func LookupFault[F interface{ About() *Fault }](table []F, name string) (found F) {
	for _, f := range table {
		if f.About().Name == name {
			return f
		}
	}
	return found
}

// Faults returns the descriptions in a protocol's table, in the table's order.
func Faults[F interface{ About() *Fault }](table []F) []*Fault {
	list := make([]*Fault, len(table))
	for i, f := range table {
		list[i] = f.About()
	}
	return list
}
