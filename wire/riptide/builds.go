package riptide

import (
	"math/bits"
	"strings"
)

// Build is one published version of an implementation. It says how its senders differ from other
// builds of the same dialect. A simulation writes by it. A sender's packets show which builds the
// sender can be.
type Build struct {
	Name    string
	Dialect *Dialect

	// Cause is when an Ack names the id that it answers.
	Cause CauseRule

	// StopReason is the reason that a reader finds in the Disconnect of a stopping server. It is 0
	// where the server sends none.
	StopReason uint8

	// FirstSequence is the id of a side's first reliable message.
	FirstSequence uint16

	// OneSequence is set where every reliable message has the first id.
	OneSequence bool

	// PingStays is set where every heartbeat has ping id 1, and RTT 0 before the first sample. In
	// other builds the RTT is then -1, and ping ids count from 0.
	PingStays bool

	// RejectCopies is how often a Reject is sent, back to back.
	RejectCopies int

	EmptyShortArrays bool // short[] and ushort[] put only their length on the wire
	LostBoolArrays   bool // bool[] has no count: as the only value it leaves one bit, else nothing
	MergedSequences  bool // a reliable message to several clients carries their ids OR-ed together
	StaleBits        bool // text that begins at a byte boundary leaves bits that are OR-ed into the next value
	NoNotify         bool // never sends a Notify, although the dialect has it
}

// CauseRule is when an Ack names the id that it answers.
type CauseRule uint8

const (
	CauseIfOther CauseRule = iota // where it is not the newest id
	CauseAlways                   // always, even if the flag says that it does not count (2.1.0 to 2.1.2)
)

// Builds lists the known builds, by dialect and age. A BuildSet is a set of them.
var Builds = []*Build{
	{Name: "notes", Dialect: Notes, StopReason: 5, FirstSequence: 1, RejectCopies: 1},

	{Name: "2.0.0", Dialect: V20, StopReason: 5, FirstSequence: 1, RejectCopies: 1},
	{Name: "pytide-2.0.0", Dialect: V20, FirstSequence: 1, OneSequence: true, PingStays: true, RejectCopies: 1},

	{Name: "dev-d", Dialect: DevD, StopReason: 5, FirstSequence: 1, RejectCopies: 3},
	{Name: "dev-n", Dialect: DevN, StopReason: 5, FirstSequence: 1, RejectCopies: 3},

	{
		Name: "2.1.0", Dialect: V21, Cause: CauseAlways, StopReason: UnpackedStop, FirstSequence: 1, RejectCopies: 3,
		EmptyShortArrays: true, MergedSequences: true, StaleBits: true,
	},
	{
		Name: "2.1.1", Dialect: V21, Cause: CauseAlways, StopReason: UnpackedStop, FirstSequence: 1, RejectCopies: 3,
		EmptyShortArrays: true, StaleBits: true,
	},
	{
		Name: "2.1.2", Dialect: V21, Cause: CauseAlways, StopReason: UnpackedStop, FirstSequence: 1, RejectCopies: 3,
		EmptyShortArrays: true,
	},
	{Name: "2.2.0", Dialect: V21, StopReason: UnpackedStop, FirstSequence: 1, RejectCopies: 3},
	{Name: "2.2.1", Dialect: V21, StopReason: 5, FirstSequence: 1, RejectCopies: 3},
	{
		Name: "pytide-2.1.0-alpha", Dialect: V21, StopReason: UnpackedStop, FirstSequence: 2, PingStays: true,
		RejectCopies: 3, LostBoolArrays: true, NoNotify: true,
	},
}

// LookupBuild finds a build by its name, in upper or lower case.
func LookupBuild(name string) (*Build, bool) {
	for _, b := range Builds {
		if strings.EqualFold(b.Name, name) {
			return b, true
		}
	}
	return nil, false
}

// BuildSet is a set of Builds, by their index.
type BuildSet uint16

// BuildsOf returns the builds of a dialect.
func BuildsOf(d *Dialect) BuildSet {
	return Matching(func(b *Build) bool { return b.Dialect == d })
}

// Matching returns the builds for which keep returns true.
func Matching(keep func(*Build) bool) (s BuildSet) {
	for i, b := range Builds {
		if keep(b) {
			s |= 1 << i
		}
	}
	return s
}

// Has reports whether the set holds b.
func (s BuildSet) Has(b *Build) bool {
	for i, known := range Builds {
		if known == b {
			return s>>i&1 == 1
		}
	}
	return false
}

// Single reports whether the set holds one build.
func (s BuildSet) Single() bool { return bits.OnesCount16(uint16(s)) == 1 }

// Mixed reports whether some builds of the set have a property and others do not.
func (s BuildSet) Mixed(has func(*Build) bool) bool {
	return !s.All(has) && !s.All(func(b *Build) bool { return !has(b) })
}

// All reports whether the set is not empty and every build in it has a property.
func (s BuildSet) All(has func(*Build) bool) bool {
	for i, b := range Builds {
		if s>>i&1 == 1 && !has(b) {
			return false
		}
	}
	return s != 0
}

// String lists the set. Neighbouring releases form a range: "2.1.0-2.1.2", "2.2.1,
// pytide-2.1.0-alpha".
func (s BuildSet) String() string {
	var out []string
	for i := 0; i < len(Builds); i++ {
		if s>>i&1 == 0 {
			continue
		}
		first := i
		for i+1 < len(Builds) && s>>(i+1)&1 == 1 && follows(Builds[i], Builds[i+1]) {
			i++
		}
		name := Builds[first].Name
		if i > first {
			name += "-" + Builds[i].Name
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// follows reports whether b is a later release of the library than a, in the same dialect.
func follows(a, b *Build) bool {
	return a.Dialect == b.Dialect && a.Name[0] == '2' && b.Name[0] == '2'
}
