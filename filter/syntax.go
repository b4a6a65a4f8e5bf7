package filter

// The syntax tree. Every node knows its range of the text.
type node interface{ where() span }

type (
	// logic combines two tests: op is &&, || or ^^.
	logic struct {
		op   string
		l, r node
	}
	not struct {
		at span
		x  node
	}
	// exists is a bare operand.
	exists struct{ x node }
	// compare compares two operands. quantifier is "", any or all.
	compare struct {
		op, quantifier string
		opAt           span
		l, r           node
	}
	member struct {
		at         span
		quantifier string
		negated    bool
		x          node
		set        []interval
	}
	// interval is from..to, including both. It is one value if to is nil.
	interval struct{ from, to *literal }

	// operands
	name struct {
		at   span
		text string
	}
	literal struct {
		at     span
		text   string
		quoted bool
		char   bool
	}
	slice struct {
		at    span
		x     node
		parts []sliceRange
	}
	mask struct {
		l, r node
	}
	// arithmetic is + - * / or %.
	arithmetic struct {
		op   string
		opAt span
		l, r node
	}
	call struct {
		at, nameAt span
		function   string
		args       []node
	}
)

// sliceRange is a part of a slice: bytes [from, from+length), or [from, to] if
// byEnd is set. Negative offsets count from the end. If open is set, the part
// extends to the end.
type sliceRange struct {
	from, to, length int
	byEnd, open      bool
}

func (n *logic) where() span   { return n.l.where().with(n.r.where()) }
func (n *not) where() span     { return n.at.with(n.x.where()) }
func (n *exists) where() span  { return n.x.where() }
func (n *compare) where() span { return n.l.where().with(n.r.where()) }
func (n *member) where() span  { return n.x.where().with(n.at) }
func (n *name) where() span    { return n.at }
func (n *literal) where() span { return n.at }
func (n *slice) where() span   { return n.x.where().with(n.at) }
func (n *mask) where() span    { return n.l.where().with(n.r.where()) }
func (n *call) where() span    { return n.at }

func (n *arithmetic) where() span { return n.l.where().with(n.r.where()) }
