package analyze

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// tripsLeast is the least number of round trips that show a steady one. The mean of 30 is
// within a third of its spread, whatever their distribution.
const tripsLeast = 30

var steadyRTT = &machine.Rule{
	ID: "steady-rtt", Severity: machine.Warn, Origin: machine.OriginNetwork,
	Summary: "round trips take long, all the time",
	Explain: `An action and its answer take this long for the player, however well the rest works. The mean round trip is 150 ms or more, and so is that of half of the packets. Single late answers are another finding of some protocols: "rtt-spike".

The round trip runs from the capture of a packet to that of the first answer that names it. So it includes the time until the peer sends its next packet. In a capture taken at the side the finding is certain. On the way between both sides, ackscope adds the way to each side and back, and the finding is likely. Where the place of capture is unknown, it is possible.

Compare the figure with "ping" between the same hosts. If "ping" is as slow, the distance or a queue is the cause: look for a nearer server, and for uploads that fill the uplink. If "ping" is fast, the peer answers late: its packets are rare, or its frames take long. The finding says how often it sends.

--set rtt=100ms sets another limit (docs/limits-of-findings.md).`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the mean round trip is %.0f ms, and 95%% take at most %.0f ms; the peer sends every %.0f ms",
			worst[0], worst[1], worst[2])
	},
}

var steadyJitter = &machine.Rule{
	ID: "steady-jitter", Severity: machine.Warn, Origin: machine.OriginNetwork,
	Summary: "round trips differ much from one packet to the next",
	Explain: `One answer comes after 40 ms, and the next after 110 ms. The mean difference of successive round trips is 20 ms or more. A game must then buffer longer than the delay itself would demand, or its movements stutter.

An answer also waits for the peer's next packet. Where the peer sends every 50 ms, that wait alone differs by 17 ms on average. So ackscope adds a third of the peer's mean interval to the limit. The finding is certain in a capture taken at the side, and likely or possible elsewhere.

Look for wireless links and for queues that other traffic fills. If only one player is affected, the cause is on the way to that player. If all are, look at the server's frame time.

--set jitter=50ms sets another limit (docs/limits-of-findings.md).`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("successive round trips differ by %.0f ms on average, around a mean of %.0f ms; "+
			"the limit is %.0f ms", worst[0], worst[2], worst[1])
	},
}

var stalled = &machine.Rule{
	ID: "stalled", Severity: machine.Warn, Absence: true, Origin: machine.OriginCode, Toward: machine.TowardSide,
	Summary: "a side that usually sends sent nothing for a while",
	Explain: `The side sent at its usual pace, then nothing for 500 ms or more, and then went on. For its peer, everything that the side moves stands still in that time.

ackscope reports a pause that lasts at least eight usual gaps and is followed by prompt packets. A side that makes such pauses as a habit is left out, and so is one that only sends more rarely from then on. The capture was taken at the side, so the finding is certain. It is likely where the side's numbers show that the capture lacks some of its packets. Where the protocol's numbers tell more, another finding stands instead, such as "stall". In a capture taken elsewhere, see "silence".

Look at what the process did at that time: loading, garbage collection, a busy machine.

--set stall=1s sets another limit (docs/limits-of-findings.md).`,
	Say: func(_ uint64, worst [3]float64) string { return pauseText("the side sent nothing", &worst) },
}

var silenceAtTap = &machine.Rule{
	ID: "silence", Severity: machine.Warn, Absence: true,
	Summary: "nothing of a side that usually sends was captured for a while",
	Explain: `Packets of the side were captured at its usual pace, then none for 500 ms or more, and then they went on. For its peer, everything that the side moves stands still in that time.

ackscope finds such pauses as for "stalled". Here the capture was not taken at the side. That nothing was captured is certain, and the cause is not: the network lost the packets, or the side sent none. Where the protocol's numbers tell which it was, another finding stands instead, such as "stall", "one-way-silence" or "loss-burst".

Look for an outage of the network, and for what the side's process did at that time. A capture at the side itself tells one from the other.

--set stall=1s sets another limit (docs/limits-of-findings.md).`,
	Say: func(_ uint64, worst [3]float64) string {
		return pauseText("nothing of the side was captured", &worst)
	},
}

// pauseText says how often something happened, and the longest time in milliseconds.
func pauseText(what string, worst *[3]float64) string {
	if worst[1] == 1 {
		return fmt.Sprintf("%s for %.0f ms", what, worst[0])
	}
	return fmt.Sprintf("%s for %.0f ms, the longest of %.0f such pauses", what, worst[0], worst[1])
}

var resendShare = &machine.Rule{
	ID: "resend-share", Severity: machine.Warn,
	Summary: "many of the side's messages were sent more than once",
	Explain: `The side sent half of its reliable messages or more at least twice. Each further copy costs bandwidth, and a message that needed one came late.

Loss explains a part. Where the network loses 10 % each way, 19 % of messages need another copy. The rest comes from a resend timer that is shorter than the round trip and the peer's frame together. Such a timer makes some libraries resend a third of all messages on a network without loss.

ackscope counts the messages that it saw twice or more. In a capture taken at the side the finding is certain. Elsewhere it is likely, since the network may have made a copy.

The findings that stand beside this one say why messages were sent again. "ackscope replay --what-if" estimates what another resend timer would do.

--set resends=30% sets another limit (docs/limits-of-findings.md).`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.1f%% of the messages were sent more than once: %.0f of %.0f", worst[0], worst[1], worst[2])
	},
}

var bandwidth = &machine.Rule{
	ID: "bandwidth", Severity: machine.Warn,
	Summary: "a side sends more than a slow link carries",
	Explain: `In its busiest second, the side sent 125 kB or more in this flow: 1 Mbit/s. The slowest links that count as broadband carry that much upstream. Beyond it their queues fill, round trips grow and packets are lost.

ackscope counts the payloads in the capture, without the headers of UDP and IP, by whole seconds of the capture's clock. At least that much was sent, so the finding is certain.

"ackscope ledger" shows what the bytes were spent on. Send large data in more pieces over more time, or send fewer and smaller updates. A server may have a faster link: raise the limit then.

--set bandwidth=250kB/s sets another limit (docs/limits-of-findings.md).`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f kB in the busiest second, %.1f kB/s on average; the limit is %.0f kB/s",
			worst[0]/1000, worst[1]/1000, worst[2]/1000)
	},
}

// noteSteady reports the steady trouble of a flow that ends, beside loss.
func (s *Session) noteSteady(f *Flow) {
	if s.options.Untracked {
		return
	}
	sides, vantage, _ := f.results()
	s.noteTrips(f, sides, vantage)
	for _, side := range []machine.Side{machine.A, machine.B} {
		sum, peak := &sides[side], float64(f.pace[side].peak)
		a := machine.Anomaly{Side: side, At: f.Last, Ref: f.LastRef}
		near := vantage.Near(side)
		s.noteStall(f, a, near)
		if reaches(sum.Repeated, sum.Messages, s.thresholds.Resends) {
			a.Rule, a.Certainty = resendShare, machine.Likely
			if near {
				a.Certainty = machine.Certain
			}
			repeated, sent := float64(sum.Repeated), float64(sum.Messages)
			a.Figures = [3]float64{100 * repeated / sent, repeated, sent}
			s.note(f, &a)
		}
		if peak > 0 && peak >= s.thresholds.Bandwidth {
			a.Rule, a.Certainty, a.Ref = bandwidth, machine.Certain, f.pace[side].peakRef
			a.Figures = [3]float64{peak, f.mean(side), s.thresholds.Bandwidth}
			s.note(f, &a)
		}
	}
}

// noteTrips reports long and uneven round trips of a flow.
func (s *Session) noteTrips(f *Flow, sides *[2]machine.Summary, v machine.Vantage) {
	if max(sides[machine.A].Trips.Count, sides[machine.B].Trips.Count) < tripsLeast {
		return // as of very many short flows
	}
	trip := roundTrip(sides, v)
	if trip.Count < tripsLeast {
		return
	}
	a := machine.Anomaly{Side: trip.Side, Certainty: trip.Certainty, At: f.Last, Ref: f.LastRef}
	if limit := s.thresholds.RTT; min(trip.Mean, trip.Median) >= limit {
		a.Rule = steadyRTT
		a.Figures = [3]float64{
			machine.Milliseconds(trip.Mean), machine.Milliseconds(trip.P95),
			machine.Milliseconds(f.interval(trip.Side.Other())),
		}
		s.note(f, &a)
	}
	// Answers wait for the peer's next packet. The waits are spread evenly over its interval,
	// and two of them differ by a third of it on average.
	wait := f.interval(trip.Side.Other()) / 3
	if limit := s.thresholds.Jitter; trip.Jitter-wait >= limit {
		a.Rule = steadyJitter
		a.Figures = [3]float64{
			machine.Milliseconds(trip.Jitter), machine.Milliseconds(limit), machine.Milliseconds(trip.Mean),
		}
		s.note(f, &a)
	}
}

// interval returns the mean time between two packets of a side, or 0 if it sent fewer.
func (f *Flow) interval(s machine.Side) time.Duration {
	if f.Packets[s] < 2 {
		return 0
	}
	return f.Last.Sub(f.First) / time.Duration(f.Packets[s]-1)
}

// noteStall reports the longest pause of a side, unless a rule of the protocol says more.
func (s *Session) noteStall(f *Flow, a machine.Anomaly, near bool) {
	p := &f.pace[a.Side]
	took, ref := p.stall()
	if took < s.thresholds.Stall || took <= 0 || f.findings.tellPause(a.Side) {
		return
	}
	if a.Rule = silenceAtTap; near {
		a.Rule = stalled
	}
	a.Certainty, a.At, a.Ref = machine.Certain, p.long.longest.at, ref
	if x, ok := f.tracker.(machine.Lacker); ok && near && x.Lacks(a.Side) {
		a.Certainty = machine.Likely // in that time too, the capture may lack packets
	}
	a.Figures = [3]float64{machine.Milliseconds(took), float64(p.long.pauses)}
	s.note(f, &a)
}

// tellPause reports whether a finding says why a side paused.
func (g *findingList) tellPause(side machine.Side) bool {
	for _, x := range g.all() {
		if x.Side == side && x.Rule.ToldPause {
			return true
		}
	}
	return false
}
