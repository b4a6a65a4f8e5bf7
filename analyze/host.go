package analyze

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
)

// Hosted is a source that holds samples of the capturing host, or will hold them. capture.Input is
// Hosted.
type Hosted interface {
	Host() *host.Timeline
	// InterfaceName returns the name of an interface of a file, or "".
	InterfaceName(file, index int) string
}

// hosted is what a session knows of the capturing host.
type hosted struct {
	source   Hosted
	session  *Session
	arrivals map[endpointKey]*arrival
	counted  uint64 // packets of the session when arrivals was made
}

// arrival is what came to one endpoint, over all flows.
type arrival struct {
	flows       int
	packets     uint64
	bytes       uint64
	first, last machine.Instant
}

// attend takes the samples of a source, if it has some.
func (s *Session) attend(src any) {
	x, ok := src.(Hosted)
	if !ok || x.Host() == nil {
		return
	}
	s.host = &hosted{source: x, session: s}
	for _, f := range s.flows {
		f.host = s.host
	}
}

// count returns what came to an endpoint so far. It counts anew where the capture grew by a quarter.
func (h *hosted) count(k endpointKey) *arrival {
	if n := h.session.n; h.arrivals == nil || n > h.counted+h.counted/4 {
		h.arrivals, h.counted = map[endpointKey]*arrival{}, n
		for _, f := range h.session.flows {
			h.addFlow(f.answer, f, machine.A)
			h.addFlow(f.origin, f, machine.B)
		}
	}
	return h.arrivals[k]
}

func (h *hosted) addFlow(to endpointKey, f *Flow, from machine.Side) {
	x := h.arrivals[to]
	if x == nil {
		x = &arrival{first: f.First}
		h.arrivals[to] = x
	}
	x.flows++
	x.packets, x.bytes = x.packets+f.Packets[from], x.bytes+f.Bytes[from]
	x.first, x.last = min(x.first, f.First), max(x.last, f.Last)
}

// What the kernel takes for a datagram in a queue, in bytes.
// Source: Linux, include/linux/skbuff.h: SKB_TRUESIZE, and net/core/skbuff.c: kmalloc_reserve
const (
	// queuePage is for a datagram that a driver received into a page: the page and the structure sk_buff.
	queuePage = 4096 + 256
	// queueSmall is the most for a short datagram that was copied, or comes from a socket of the same system.
	queueSmall = 1024 + 256
	// queueHead is what stands beside the payload in such a buffer: headers and the structure skb_shared_info.
	queueHead = 448
)

const (
	// lateAfter is how long datagrams wait unread, by the lowest estimate, until the program reads late.
	// Source: definition, read-late: a loop of ten frames a second reads within that time
	lateAfter = 100 * time.Millisecond
	// hostSlack is how far from a finding a sample may lie, and tell about it.
	// Source: definition, the time between two samples
	hostSlack = time.Second
)

// waited returns how long the datagrams in a queue had waited at least, by the usual pace of what came to the
// endpoint.
func (h *hosted) waited(k endpointKey, told *host.Told) time.Duration {
	x := h.count(k)
	if x == nil || x.packets < 2 || x.last <= x.first {
		return 0
	}
	gap := x.last.Sub(x.first) / time.Duration(x.packets)
	mean := x.bytes / x.packets
	each := queuePage + 2*mean
	if told.Least > 0 && told.Least <= queueSmall { // buffers of powers of two
		each = max(told.Least, 1<<bits.Len64(mean+queueHead)+256)
	}
	return scale.Mul(gap, int64(told.Queue/each))
}

// Host returns what the samples of the capturing host tell about a side, from the flow's first packet to its last. It
// returns false if the capture holds no samples.
func (f *Flow) Host(s machine.Side) (host.Told, bool) {
	if f.host == nil || f.Transport != capture.UDP || f.host.source.Host().Empty() {
		return host.Told{}, false
	}
	return f.host.source.Host().Endpoint(f.Addr(s), f.Addr(s.Other()), f.First, f.Last), true
}

// HostCause is where in the capturing host datagrams died, or waited.
type HostCause uint8

const (
	HostUnknown     HostCause = iota
	HostSocket                // the kernel dropped them at the socket
	HostLate                  // the program read them late
	HostClosed                // no socket was open
	HostApplication           // the program had them, and did not take them
	HostInterface             // an interface dropped them
	HostElsewhere             // the host dropped nothing
)

var hostCauseWords = [...]string{"unknown", "socket", "late", "closed", "application", "interface", "elsewhere"}

// String returns the word that output uses.
func (c HostCause) String() string { return hostCauseWords[c] }

// HostCauses returns all words.
func HostCauses() []string { return hostCauseWords[:] }

// HostVerdict says what became of the datagrams of a finding inside the capturing host.
type HostVerdict struct {
	Cause     HostCause
	Certainty machine.Certainty
	Side      machine.Side // that the datagrams were on their way to
	Text      string       // a clause without a full stop
}

// Host returns what the samples of the capturing host say of the finding. It returns false if the rule does not
// concern datagrams on their way, or if the capture holds no samples.
func (f *Finding) Host() (HostVerdict, bool) {
	flow := f.Flow
	if f.Rule.Toward == machine.TowardNone || flow.host == nil || flow.Transport != capture.UDP ||
		flow.host.source.Host().Empty() {
		return HostVerdict{}, false
	}
	j := inquest{finding: f, flow: flow, host: flow.host, from: f.First.Add(-hostSlack), to: f.Last.Add(hostSlack)}
	if f.First >= flow.Last { // it was told at the end, of the whole flow
		j.from = flow.First
	}
	if f.Rule == icmpRefused { // it stands at the first error, and goes on
		j.to = flow.Last.Add(hostSlack)
	}
	j.to = min(j.to, flow.Last.Add(hostSlack))
	j.receiver = f.Side
	if t := f.Rule.Toward; t == machine.TowardPeer || t == machine.TowardTap {
		j.receiver = f.Side.Other()
	}
	v := j.verdict()
	v.Side = j.receiver
	return v, true
}

// inquest looks for the place where datagrams to the receiver died.
type inquest struct {
	finding  *Finding
	flow     *Flow
	host     *hosted
	receiver machine.Side
	from, to machine.Instant
}

func (j *inquest) verdict() HostVerdict {
	f, sender := j.flow, j.receiver.Other()
	told := j.host.source.Host().Endpoint(f.Addr(j.receiver), f.Addr(sender), j.from, j.to)
	seen, before := j.tap(&told)
	if told.Here && !before {
		if v := j.inside(&told, seen); v.Cause != HostUnknown {
			return v
		}
	}
	if v := j.interfaces(&told, before); v.Cause != HostUnknown {
		return v
	}
	return j.rest(&told, before)
}

// tap returns whether the datagrams of the finding were captured at the receiver's host, or died before that.
func (j *inquest) tap(told *host.Told) (seen, before bool) {
	switch j.finding.Rule.Toward {
	case machine.TowardSideSeen:
		return true, false
	case machine.TowardTap:
		return false, true
	case machine.TowardPeer:
		sender := j.host.source.Host().Endpoint(j.flow.Addr(j.receiver.Other()), j.flow.Addr(j.receiver), j.from, j.to)
		sum, ok := j.flow.Summary(j.receiver)
		if !ok || !told.Here || sender.Here {
			return false, false
		}
		return sum.Missing == 0, sum.Missing > 0 && 2*sum.Missing >= j.missing()
	}
	return false, false
}

// missing is how many datagrams the finding is about, as far as that is known.
func (j *inquest) missing() uint64 {
	n := uint64(0)
	for _, x := range j.flow.findings.all() { // those of the rule and side, with every certainty
		if x.Rule == j.finding.Rule && x.Side == j.finding.Side {
			n += x.Count
		}
	}
	if sum, ok := j.flow.Summary(j.receiver.Other()); ok {
		n = max(n, sum.Path.Lost)
	}
	return n
}

// inside looks at the receiver's socket.
func (j *inquest) inside(told *host.Told, seen bool) HostVerdict {
	who := j.receiver.String()
	if n := told.Drops.N; n > 0 {
		text := fmt.Sprintf("the kernel dropped %s at %s's socket", machine.Count(n, "datagram", "datagrams"), upper(who))
		if told.BufferErrors.N >= n {
			text += ", whose receive buffer was full"
		}
		return HostVerdict{Cause: HostSocket, Certainty: j.sure(told, n), Text: text + j.ofMissing(n)}
	}
	if wait := j.host.waited(j.key(), told); wait >= lateAfter {
		return HostVerdict{Cause: HostLate, Certainty: machine.Likely, Text: fmt.Sprintf(
			"read late: unread datagrams stood at %.0f kB at %s's socket, %d ms of them or more", float64(told.Queue)/1000,
			upper(who), wait.Milliseconds())}
	}
	if told.Closed && (told.Socket || j.finding.Rule == icmpClosed || j.finding.Rule == icmpRefused) {
		return HostVerdict{
			Cause: HostClosed, Certainty: machine.Certain,
			Text: fmt.Sprintf("no socket was open on %s's port at %s", upper(who),
				told.ClosedAt.Time().Format("15:04:05.000")),
		}
	}
	if seen && told.Socket && told.Drops.Known && told.Shared == 1 {
		return HostVerdict{Cause: HostApplication, Certainty: machine.Likely, Text: fmt.Sprintf(
			"the kernel dropped nothing at %s's socket: the application refused it, or a firewall of the host", upper(who))}
	}
	return HostVerdict{}
}

// ofMissing says how many datagrams are missing, where fewer of them are explained.
func (j *inquest) ofMissing(explained uint64) string {
	if missing := j.missing(); explained < missing {
		return fmt.Sprintf("; %d are missing", missing)
	}
	return ""
}

// upper returns the name of a side as messages write it.
func upper(side string) string { return string(side[0] - 'a' + 'A') }

// key is the receiver's endpoint.
func (j *inquest) key() endpointKey {
	if j.receiver == machine.A {
		return j.flow.origin
	}
	return j.flow.answer
}

// sure grades that n drops are of the finding's datagrams. The kernel does not say whose it dropped, so they are
// certainly the flow's where the socket serves no other. Where they are a small part of what is missing, something
// else took the rest.
func (j *inquest) sure(told *host.Told, n uint64) machine.Certainty {
	x := j.host.count(j.key())
	switch {
	case 2*n < j.missing():
		return machine.Possible
	case told.Shared > 1, x == nil || x.flows > 1:
		return machine.Likely
	}
	return machine.Certain
}

// interfaces looks at what the flow's interface dropped on that way.
func (j *inquest) interfaces(told *host.Told, before bool) HostVerdict {
	f := j.flow
	name := j.host.source.InterfaceName(f.FirstRef.File(), f.Interface)
	in, _ := j.host.source.Host().Device(name, f.Addr(j.receiver), j.from, j.to)
	if n := in.N + told.Softnet.N; n > 0 {
		return HostVerdict{Cause: HostInterface, Certainty: machine.Possible, Text: fmt.Sprintf(
			"%s and the queue behind it dropped %s on their way in; which ones is unknown%s", name,
			machine.Count(n, "packet", "packets"), j.ofMissing(n))}
	}
	_, out := j.host.source.Host().Device(name, f.Addr(j.receiver.Other()), j.from, j.to)
	if out.N > 0 && !before {
		sure := machine.Likely
		if 2*out.N < j.missing() {
			sure = machine.Possible
		}
		return HostVerdict{Cause: HostInterface, Certainty: sure, Text: fmt.Sprintf("%s dropped %s on their way out%s",
			name, machine.Count(out.N, "packet", "packets"), j.ofMissing(out.N))}
	}
	return HostVerdict{}
}

// rest is the verdict where no counter of the host grew.
func (j *inquest) rest(told *host.Told, before bool) HostVerdict {
	f, sender := j.flow, j.receiver.Other()
	if t := j.finding.Rule.Toward; told.Here && told.Why == "" && t != machine.TowardPeer && t != machine.TowardTap {
		// Nothing was lost, as far as the finding says: that no counter grew explains nothing.
		told.Why = fmt.Sprintf("no sample shows trouble at %s's socket in that time", upper(j.receiver.String()))
		return HostVerdict{Cause: HostUnknown, Certainty: machine.Unknown, Text: "unknown: " + told.Why}
	}
	if told.Here && (told.Socket && told.Drops.Known && told.Shared == 1 || before && told.Softnet.Known) {
		return HostVerdict{
			Cause: HostElsewhere, Certainty: machine.Likely,
			Text: fmt.Sprintf("the host of %s dropped nothing in that time",
				upper(j.receiver.String())),
		}
	}
	if told.Here && told.Why == "" {
		told.Why = "the samples do not cover the time"
	}
	from := j.host.source.Host().Endpoint(f.Addr(sender), f.Addr(j.receiver), j.from, j.to)
	if from.Here && !told.Here && from.Softnet.Known {
		return HostVerdict{Cause: HostElsewhere, Certainty: machine.Likely, Text: fmt.Sprintf(
			"the host of %s dropped nothing on the way out; of the other host there are no samples", upper(sender.String()))}
	}
	return HostVerdict{Cause: HostUnknown, Certainty: machine.Unknown, Text: "unknown: " + told.Why}
}
