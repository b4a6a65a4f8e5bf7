package analyze

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

var socketDropped = &machine.Rule{
	ID: "socket-dropped", Severity: machine.Warn, Origin: machine.OriginCode,
	Summary: "the capturing host's kernel dropped datagrams at the side's socket",
	Explain: `Datagrams reached the side's host and its socket, and the kernel dropped them there. Nearly always the receive buffer of the socket was full: the program did not read in time. The network did not lose these datagrams.

ackscope reads the counter of the socket each second during a live capture, and from the samples that a capture file holds (docs/host.md). That the kernel dropped them is certain. Where several sockets share the port, the finding is likely. Where several clients share the socket, the kernel does not say whose datagrams they were.

Read until the socket is empty in every frame, from a thread that nothing holds up. Or let the buffer hold a longer pause: SO_RCVBUF, up to net.core.rmem_max.`,
	Say: func(_ uint64, worst [3]float64) string {
		text := fmt.Sprintf("%s dropped at the socket", machine.Count(uint64(worst[0]), "datagram was", "datagrams were"))
		if worst[1] > 0 {
			text += fmt.Sprintf("; unread datagrams took %.0f kB then", worst[1]/1000)
		}
		return text
	},
}

var readLate = &machine.Rule{
	ID: "read-late", Severity: machine.Warn, Origin: machine.OriginCode,
	Summary: "the side's program read its socket late: datagrams waited unread",
	Explain: `Datagrams reached the side's socket, and its program did not read them for a while. For its peers that looks like a slow network: their packets are acked late, or not at all.

ackscope reads the memory that unread datagrams take at the socket, each second of a live capture (docs/host.md). From that it takes how many wait at least, and from the usual pace of arrivals how long. The finding is likely from 100 ms on: a loop of ten frames a second reads within that time. Between two samples a program can be late unseen.

Look at what held up the loop that reads: a long frame, loading, a lock. A thread of its own for the socket helps.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("in %s; the longest wait was %.0f ms or more, at %.0f kB of unread datagrams",
			machine.Count(n, "sample", "samples"), worst[0], worst[1]/1000)
	},
}

// hostEvery is how often a flow is compared with the samples.
// Source: definition, the time between two samples
const hostEvery = time.Second

// attended is how far a flow was compared with the samples of the host.
type attended struct {
	due   machine.Instant    // of the next comparison
	until [2]machine.Instant // by side: the sample up to which drops were counted
	drops [2]uint64
}

// noteHost reports what the samples of the capturing host say against a flow up to the frame ref.
func (s *Session) noteHost(f *Flow, now machine.Instant, ref machine.Ref) {
	if f.host != nil && f.Transport == capture.UDP && !f.host.source.Host().Empty() {
		s.noteSamples(f, now, ref)
	}
}

// noteSamples is noteHost for a capture with samples. Few have some, so it stays out of what runs for
// each packet.
//
//go:noinline
func (s *Session) noteSamples(f *Flow, now machine.Instant, ref machine.Ref) {
	if f.has().attended == nil {
		f.gets().attended = &attended{until: [2]machine.Instant{f.First, f.First}}
	}
	f.rare.attended.due = now.Add(hostEvery)
	for _, side := range []machine.Side{machine.A, machine.B} {
		x := f.rare.attended
		told := f.host.source.Host().Endpoint(f.Addr(side), f.Addr(side.Other()), x.until[side]+1, now)
		if !told.Socket || told.Until <= x.until[side] {
			continue // there is no later sample
		}
		x.until[side] = told.Until
		a := machine.Anomaly{Side: side, At: now, Ref: ref}
		if n := told.Drops.N; n > 0 {
			x.drops[side] += n
			a.Rule, a.Certainty = socketDropped, machine.Certain
			a.Figures = [3]float64{float64(x.drops[side]), float64(told.Queue)}
			if told.Shared > 1 {
				a.Certainty = machine.Likely
			}
			s.note(f, &a)
		}
		key := f.origin
		if side == machine.B {
			key = f.answer
		}
		if wait := f.host.waited(key, &told); wait >= lateAfter {
			a.Rule, a.Certainty = readLate, machine.Likely
			a.Figures = [3]float64{machine.Milliseconds(wait), float64(told.Queue)}
			s.note(f, &a)
		}
	}
}
