package cause

import (
	"cmp"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Trouble is what the flows of a verdict have in common.
type Trouble uint8

const (
	Stall Trouble = iota // nothing of a side was captured for a while
	Loss
	Rise // of the round trip
)

var troubleWords = [...]string{"stall", "loss", "rtt-rise"}

func (t Trouble) String() string { return troubleWords[t] }

// Verdict is one common cause.
type Verdict struct {
	Trouble   Trouble
	Kind      Kind
	Group     string // the address, network, version or interface; empty for a player
	Also      string // another group of the very same flows: the capture cannot tell the two apart
	Down, Up  bool   // the directions that show it
	AtServer  bool   // the capture was taken at the server of most flows
	Flow      int    // number of the player's flow; 0 for a group
	Certainty machine.Certainty
	P         float64 // how often chance explains it

	Flows int // flows that show it
	In    int // of them, those of the group
	Of    int // flows of the group that could have shown it

	Moments int           // of stalls and rises
	Within  time.Duration // between the first and the last flow of a moment, at most
	Longest time.Duration // the longest stall, or the greatest rise
	First   machine.Instant
	Frame   machine.Ref // that ended the first stall; 0 for a loss

	Least, Most, Usual float64 // losses: of the group, and the median of the others
}

// Report is what the troubles of a capture's flows have in common.
type Report struct {
	Flows    int // that were compared
	More     int // that were left out, beyond 100,000
	Dropped  bool
	Verdicts []Verdict // the one that concerns most flows first; none: no common cause
}

// Enough reports whether there were enough flows to compare.
func (r *Report) Enough() bool { return r.Flows >= 2*groupLeast }

// Compare compares flows. If packets are known to be missing from the capture, stalls are
// possible causes only.
func Compare(flows []Flow, dropped bool) *Report {
	r := &Report{Flows: len(flows), Dropped: dropped}
	if !r.Enough() {
		return r
	}
	list := groups(flows)
	r.stalls(flows, list)
	r.rises(flows, list)
	for way := range ways {
		r.loss(flows, list, way)
	}
	r.lonely(flows)
	slices.SortStableFunc(r.Verdicts, func(x, y Verdict) int { return cmp.Compare(y.Flows, x.Flows) })
	return r
}

// waysApart is how far apart moments of both directions lie at most that are one.
const waysApart = time.Second

// stalls adds the verdicts about pauses.
func (r *Report) stalls(flows []Flow, list []group) {
	var found [ways][]moment
	var p [ways]float64
	for way := range ways {
		found[way], p[way] = moments(flows, list, func(f *Flow) []Event { return f.Pauses[way] }, pausesTogether)
	}
	paired := make([]bool, len(found[Up]))
	for i := range found[Down] {
		m := &found[Down][i]
		up := false
		for j := range found[Up] {
			if n := &found[Up][j]; max(m.from.Sub(n.from), n.from.Sub(m.from)) <= waysApart && 2*shared(m, n) >= len(m.flows) {
				up, paired[j] = true, true
			}
		}
		r.moment(flows, list, m, &Verdict{Trouble: Stall, Down: true, Up: up, P: p[Down]})
	}
	for j := range found[Up] {
		if !paired[j] {
			r.moment(flows, list, &found[Up][j], &Verdict{Trouble: Stall, Up: true, P: p[Up]})
		}
	}
}

// shared returns how many flows two moments have in common.
func shared(m, n *moment) (count int) {
	for _, f := range m.flows {
		if _, ok := slices.BinarySearch(n.flows, f); ok {
			count++
		}
	}
	return count
}

// rises adds the verdicts about round trips.
func (r *Report) rises(flows []Flow, list []group) {
	found, p := moments(flows, list, func(f *Flow) []Event { return f.Rises }, risesTogether)
	for i := range found {
		r.moment(flows, list, &found[i], &Verdict{Trouble: Rise, Down: true, Up: true, P: p})
	}
}

// moment adds a moment to the verdict of the same kind, or as a new one.
func (r *Report) moment(flows []Flow, list []group, m *moment, v *Verdict) {
	g, in, of := m.blame(flows, list)
	switch {
	case g != nil:
		v.Kind, v.Group, v.In, v.Of = g.kind, g.name, in, of
		v.Also = other(list, g, len(flows))
	case 2*len(m.flows) >= len(flows):
		v.Kind, v.In, v.Of = All, len(m.flows), len(flows)
	default:
		v.In, v.Of = len(m.flows), len(flows) // together in time, and nothing else in common
	}
	v.Flows, v.Moments, v.Within = len(m.flows), 1, m.to.Sub(m.from)
	v.Longest, v.First, v.Frame = time.Duration(m.took), m.from, m.frame
	v.AtServer, v.Certainty = atServer(flows, m.flows), machine.Likely
	if v.Also != "" || v.Kind == All || v.Kind == None || r.Dropped && v.Trouble == Stall {
		v.Certainty = machine.Possible
	}
	for i := range r.Verdicts {
		if x := &r.Verdicts[i]; x.same(v) {
			x.Moments++
			x.Flows, x.In, x.Of = max(x.Flows, v.Flows), max(x.In, v.In), max(x.Of, v.Of)
			x.Within, x.Longest = max(x.Within, v.Within), max(x.Longest, v.Longest)
			x.Certainty, x.P = min(x.Certainty, v.Certainty), max(x.P, v.P)
			return
		}
	}
	r.Verdicts = append(r.Verdicts, *v)
}

// other returns the name of another group of the very same flows: the capture cannot tell the
// two apart. A version that all flows have is none. Nothing shows what another version does.
func other(list []group, g *group, flows int) string {
	for i := range list {
		x := &list[i]
		if x != g && slices.Equal(x.flows, g.flows) && (x.kind != Version || len(x.flows) < flows) {
			return x.name
		}
	}
	return ""
}

// same reports whether two verdicts blame the same.
func (v *Verdict) same(x *Verdict) bool {
	return v.Trouble == x.Trouble && v.Kind == x.Kind && v.Group == x.Group && v.Down == x.Down && v.Up == x.Up
}

// atServer reports whether the capture was taken at the server of most flows.
func atServer(flows []Flow, list []int32) bool {
	count := 0
	for _, i := range list {
		if flows[i].AtServer {
			count++
		}
	}
	return 2*count > len(list)
}

// loss adds the verdict about the loss of one direction.
func (r *Report) loss(flows []Flow, list []group, way Way) {
	x := newRates(flows, way).compare(list, len(flows))
	if x == nil {
		return
	}
	v := Verdict{
		Trouble: Loss, Kind: Player, Down: way == Down, Up: way == Up, P: x.p, Certainty: machine.Likely,
		Flows: len(x.hit), In: x.in, Of: 1, Least: x.least, Most: x.most, Usual: x.usual,
		AtServer: atServer(flows, x.hit),
	}
	if x.group == nil {
		v.Flow = flows[x.flow].ID
	} else {
		v.Kind, v.Group, v.Of = x.group.kind, x.group.name, len(x.group.flows)
		if v.Also = other(list, x.group, len(flows)); v.Also != "" {
			v.Certainty = machine.Possible
		}
	}
	for i := range r.Verdicts {
		if y := &r.Verdicts[i]; y.Trouble == Loss && y.Kind == v.Kind && y.Group == v.Group && y.Flow == v.Flow {
			y.Up, y.Flows, y.In = true, max(y.Flows, v.Flows), max(y.In, v.In)
			y.Least, y.Most, y.P = min(y.Least, v.Least), max(y.Most, v.Most), max(y.P, v.P)
			return
		}
	}
	r.Verdicts = append(r.Verdicts, v)
}

const (
	// lonelyLeast is how many pauses of one player are a pattern.
	// Source: definition, common cause: one player stalls at three pauses while others have none
	lonelyLeast = 3
	// lonelyOthers is one flow of how many may have a pause beside that player's.
	// Source: definition, common cause: one player stalls while fewer than one in 20 others pause
	lonelyOthers = 20
)

// lonely adds the verdict about one player who stalls while others do not.
func (r *Report) lonely(flows []Flow) {
	worst, with, most, second := -1, 0, int64(0), int64(0)
	for i := range flows {
		took := int64(0)
		for way := range ways {
			for _, e := range flows[i].Pauses[way] {
				took += e.Took
			}
		}
		if took > 0 {
			with++
		}
		if took > most {
			worst, most, second = i, took, most
		} else {
			second = max(second, took)
		}
	}
	if worst < 0 || 2*second > most || lonelyOthers*(with-1) > len(flows) {
		return
	}
	f := &flows[worst]
	v := Verdict{
		Trouble: Stall, Kind: Player, Flow: f.ID, Certainty: machine.Likely, Flows: 1, In: 1, Of: 1, AtServer: f.AtServer,
		Down: len(f.Pauses[Down]) > 0, Up: len(f.Pauses[Up]) > 0,
	}
	v.Moments = max(len(f.Pauses[Down]), len(f.Pauses[Up]))
	if v.Moments < lonelyLeast {
		return
	}
	for way := range ways {
		for _, e := range f.Pauses[way] {
			if v.Frame == 0 || e.Until < v.First {
				v.First, v.Frame = e.Until, e.Frame
			}
			v.Longest = max(v.Longest, time.Duration(e.Took))
		}
	}
	r.Verdicts = append(r.Verdicts, v)
}
