package dissect

import (
	"slices"
	"strings"
)

// Versions says which implementations one side of a flow can be, by what it has sent. Every
// output that names a version takes it from here, so all of them agree.
//
// For example, a side of Riptide 2.1 whose Acks carry 16 unread bits:
//
//	Library  "Riptide"
//	Open     2.1.0, 2.1.1, 2.1.2
//	Proof    "its Acks carry 16 bits that nobody reads"
type Versions struct {
	Library string    // whose versions they are: "Riptide", "reliable"
	Open    []Release // those that are still possible, the oldest first
	Closed  []Release // those that the packets exclude
	Proof   string    // what excludes the closed ones, as a phrase; empty where nothing does
	Mixed   bool      // the packets contradict themselves: some are of one version, some of another
	Doubt   bool      // another dialect reads the packets nearly as well, so nothing is excluded for sure
}

// Release is one published version, or a row of versions that write and behave alike.
type Release struct {
	Name      string // "2.1.0", "from 1.3"
	Port      bool   // of another library: Name says it whole, as "Pytide 2.0.0"
	Behaviour string // the behaviour of replay that it has; empty where there is no reference
}

// Text names the library and its open versions: "Riptide 2.1.0, 2.1.1 or 2.1.2".
func (v *Versions) Text() string {
	var text strings.Builder
	for i, r := range v.Open {
		switch {
		case i > 0 && i == len(v.Open)-1:
			text.WriteString(" or ")
		case i > 0:
			text.WriteString(", ")
		}
		if i == 0 && !r.Port {
			text.WriteString(v.Library + " ")
		}
		text.WriteString(r.Name)
	}
	if text.Len() == 0 {
		return v.Library
	}
	return text.String()
}

// Short is Text in less room: "Riptide 2.1.0…2.1.2".
func (v *Versions) Short() string {
	if n := len(v.Open); n > 2 {
		few := Versions{Library: v.Library, Open: v.Open[:1]}
		return few.Text() + "…" + v.Open[n-1].Name
	}
	return v.Text()
}

// Excludes reports whether the packets exclude every version that has a behaviour of replay.
// A behaviour that no version has, such as a fault, is not excluded.
func (v *Versions) Excludes(behaviour string) bool {
	if v.Doubt {
		return false
	}
	has := func(r Release) bool { return r.Behaviour == behaviour }
	return slices.ContainsFunc(v.Closed, has) && !slices.ContainsFunc(v.Open, has)
}

// Without returns v without the open versions whose behaviour keep refuses. It returns v
// itself where none would remain.
func (v Versions) Without(refused func(behaviour string) bool) Versions {
	left := slices.DeleteFunc(slices.Clone(v.Open), func(r Release) bool { return refused(r.Behaviour) })
	if len(left) > 0 {
		v.Open = left
	}
	return v
}
