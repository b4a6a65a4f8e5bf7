package riptide

import (
	"math/bits"
	"strings"
)

// Build is one published state of an implementation: what its senders do within
// their dialect that another of the same dialect does not. A simulation writes
// by it, and from what a sender writes the builds that it can be are found.
type Build struct {
	Name    string
	Dialect *Dialect

	// Cause says when an Ack names the id that it answers.
	Cause CauseRule

	// StopReason is the reason of the Disconnect of a stopping server as it
	// reads; 0 where none is sent.
	StopReason uint8

	// FirstSequence is the id of the first reliable message of a side.
	FirstSequence uint16

	// OneSequence is set where every reliable message has the first id.
	OneSequence bool

	// PingStays is set where every heartbeat has ping id 1, and its RTT is 0
	// before the first sample (elsewhere -1, and ping ids count from 0).
	PingStays bool

	// RejectCopies is how often a Reject is sent, back to back.
	RejectCopies int

	EmptyShortArrays bool // short[] and ushort[] put only their length on the wire
	LostBoolArrays   bool // bool[] is not counted: as the only value one bit of it is left, else nothing
	MergedSequences  bool // a reliable message to several clients goes out with their ids OR-ed
	StaleBits        bool // text that begins at a byte boundary leaves bits behind that are OR-ed into the next value
	NoNotify         bool // never sends a Notify although the dialect has it
}

// CauseRule says when an Ack names the id that it answers.
type CauseRule uint8

const (
	CauseIfOther CauseRule = iota // where it is not the newest id
	CauseAlways                   // also with a flag that says it does not count (2.1.0 to 2.1.2)
)

// Builds lists what is known, by dialect and age. A set of them is a BuildSet.
var Builds = []*Build{
	{Name: "notes", Dialect: Notes, StopReason: 5, FirstSequence: 1, RejectCopies: 1},

	{Name: "2.0.0", Dialect: V20, StopReason: 5, FirstSequence: 1, RejectCopies: 1},
	{Name: "pytide-2.0.0", Dialect: V20, FirstSequence: 1, OneSequence: true, PingStays: true, RejectCopies: 1},

	{Name: "dev-d", Dialect: DevD, StopReason: 5, FirstSequence: 1, RejectCopies: 3},
	{Name: "dev-n", Dialect: DevN, StopReason: 5, FirstSequence: 1, RejectCopies: 3},

	{Name: "2.1.0", Dialect: V21, Cause: CauseAlways, StopReason: UnpackedStop, FirstSequence: 1, RejectCopies: 3,
		EmptyShortArrays: true, MergedSequences: true, StaleBits: true},
	{Name: "2.1.1", Dialect: V21, Cause: CauseAlways, StopReason: UnpackedStop, FirstSequence: 1, RejectCopies: 3,
		EmptyShortArrays: true, StaleBits: true},
	{Name: "2.1.2", Dialect: V21, Cause: CauseAlways, StopReason: UnpackedStop, FirstSequence: 1, RejectCopies: 3,
		EmptyShortArrays: true},
	{Name: "2.2.0", Dialect: V21, StopReason: UnpackedStop, FirstSequence: 1, RejectCopies: 3},
	{Name: "2.2.1", Dialect: V21, StopReason: 5, FirstSequence: 1, RejectCopies: 3},
	{Name: "pytide-2.1.0-alpha", Dialect: V21, StopReason: UnpackedStop, FirstSequence: 2, PingStays: true,
		RejectCopies: 3, LostBoolArrays: true, NoNotify: true},
}

// LookupBuild finds a build by its name.
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

// Matching returns the builds that a condition holds for.
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

// Mixed reports whether some builds of the set have what another of it has not.
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

// String names the set with neighbouring releases as a range:
// "2.1.0-2.1.2", "2.2.1, pytide-2.1.0-alpha".
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

// follows reports whether b is a later release of what a is.
func follows(a, b *Build) bool {
	return a.Dialect == b.Dialect && a.Name[0] == '2' && b.Name[0] == '2'
}
