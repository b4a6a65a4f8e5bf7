package analyze

import (
	"fmt"

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
			text += fmt.Sprintf("; its unread datagrams took up to %.0f kB", worst[1]/1000)
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
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("unread datagrams took up to %.0f kB: %.0f ms or more of what arrives", worst[0]/1000, worst[1])
	},
}

// noteHost reports what the samples of the capturing host say against a flow that ends.
func (s *Session) noteHost(f *Flow) {
	if f.host == nil {
		return
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		told, ok := f.Host(side)
		if !ok || !told.Socket {
			continue
		}
		key := f.origin
		if side == machine.B {
			key = f.answer
		}
		a := machine.Anomaly{Side: side, At: f.Last, Ref: f.LastRef}
		if n := told.Drops.N; n > 0 {
			a.Rule, a.Figures, a.Certainty = socketDropped, [3]float64{float64(n), float64(told.Queue)}, machine.Certain
			if told.Shared > 1 {
				a.Certainty = machine.Likely
			}
			s.note(f, &a)
		}
		if wait := f.host.waited(key, &told); wait >= lateAfter {
			a.Rule, a.Certainty = readLate, machine.Likely
			a.Figures = [3]float64{float64(told.Queue), machine.Milliseconds(wait)}
			s.note(f, &a)
		}
	}
}
