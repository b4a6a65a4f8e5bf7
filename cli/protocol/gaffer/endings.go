package gaffer

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/netcode"
	"github.com/ackscope/ackscope/show"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// newEndings returns a collector of the connections of netcode that never came about.
func newEndings() app.Endings { return &attempts{} }

// attempts keeps what clients asked, and whom the servers answered.
type attempts struct {
	flows   map[*analyze.Flow]*attempt
	servers map[netip.AddrPort]*server
}

// serversMost bounds the servers of which answers are kept.
// Source: bound, the servers whose answers to other clients explain a silence
const serversMost = 4096

// attempt is what a flow shows of an attempt to connect.
type attempt struct {
	flow        *analyze.Flow
	client      machine.Side
	requests    int
	first, last word
	denied      word
	answered    bool // the server challenged the client, or sent anything else but a refusal
	whole       bool // a request was captured whole: protocol is known
	protocol    uint64
	valid       float64 // for how many seconds its token was valid at the first request
}

// word is a datagram.
type word struct {
	at  machine.Instant
	ref machine.Ref
}

// server is what a server's answers to its clients show.
type server struct {
	protocols []uint64 // of the requests that it answered, at most protocolsMost
	answers   int
	valid     float64 // the least time for which a token was valid that it took, in seconds
	late      float64 // for how many seconds a token had expired that it took, at most; 0 for none
	near      bool    // the capture was taken at it
}

// protocolsMost is how many protocol ids of a server are kept. A server has one.
// Source: bound, the protocol ids of one server that are kept
const protocolsMost = 4

// Forget drops a flow.
func (m *attempts) Forget(f *analyze.Flow, _ analyze.Reason) { delete(m.flows, f) }

// Take keeps what a record shows of its flow.
func (m *attempts) Take(r *analyze.Record) {
	f := r.Flow
	if f == nil || f.Protocol == nil || f.Protocol.Name != Protocol.Name {
		return
	}
	x := m.flows[f]
	for i := range r.Events {
		e := &r.Events[i]
		switch {
		case e.Kind == gaffer.EventRequest && r.Datagram.Ref == e.Ref:
			q, err := wire.ParseNetcodeRequest(r.Datagram.Bytes)
			if err != nil && len(r.Datagram.Bytes) == r.Datagram.Length {
				continue // of the article's handshake
			}
			if x == nil {
				if m.flows == nil {
					m.flows, m.servers = map[*analyze.Flow]*attempt{}, map[netip.AddrPort]*server{}
				}
				x = &attempt{flow: f, client: e.Side, first: word{e.At, e.Ref}}
				m.flows[f] = x
			}
			if x.last = (word{e.At, e.Ref}); err == nil {
				if !x.whole {
					x.valid = float64(q.Expire) - float64(e.At)/float64(time.Second)
				}
				x.whole, x.protocol = true, q.ProtocolID
			}
			x.requests++
		case x == nil:
		case e.Kind == gaffer.EventDenied:
			x.denied = word{e.At, e.Ref}
			m.answer(x)
		case !x.answered && (e.Side != x.client || e.Kind == gaffer.EventResponse):
			x.answered = true
			m.answer(x)
		}
	}
}

// answer notes that the server answered an attempt.
func (m *attempts) answer(x *attempt) {
	addr := x.flow.Addr(x.client.Other())
	s := m.servers[addr]
	if s == nil {
		if len(m.servers) >= serversMost {
			return
		}
		s = &server{valid: math.Inf(1)}
		m.servers[addr] = s
	}
	s.answers++
	if x.whole {
		s.valid = min(s.valid, x.valid)
	}
	if x.whole && len(s.protocols) < protocolsMost && !slices.Contains(s.protocols, x.protocol) {
		s.protocols = append(s.protocols, x.protocol)
	}
}

// Ended returns the attempts that brought no connection about.
func (m *attempts) Ended(machine.Instant) (list []app.Ending) {
	for _, x := range m.flows {
		m.learn(x)
	}
	for _, x := range m.flows {
		e := app.Ending{Flow: x.flow, Failed: true}
		switch {
		case x.denied.ref != 0 && !x.answered:
			e.How, e.Story = "denied", x.refusal()
		case !x.answered && x.requests > 1:
			e.How, e.Story = "unanswered", m.silence(x)
		default:
			continue
		}
		e.Page = func(paint show.Painter) []byte { return x.page(paint, e.How, e.Story) }
		list = append(list, e)
	}
	slices.SortFunc(list, func(x, y app.Ending) int { return cmp.Compare(x.Flow.ID, y.Flow.ID) })
	return list
}

// learn notes what an attempt shows of its server, once the capture has ended.
func (m *attempts) learn(x *attempt) {
	s := m.servers[x.flow.Addr(x.client.Other())]
	if s == nil {
		return
	}
	s.near = s.near || x.flow.Facts().Vantage.Near(x.client.Other())
	for _, f := range x.flow.Findings() {
		if f.Rule == netcode.ClockBehind {
			s.late = max(s.late, f.Figures[0])
		}
	}
}

// name names a side with its address.
func (x *attempt) name(s machine.Side) string {
	return fmt.Sprintf("%s (%v)", strings.ToUpper(s.String()), x.flow.Addr(s))
}

func (x *attempt) refusal() []string {
	return []string{
		fmt.Sprintf("%s denied it in frame %d, %v after the first request: it had no free slot.", x.name(x.client.Other()),
			x.denied.ref.Frame(), machine.Rounded(x.denied.at.Sub(x.first.at))),
	}
}

// silence names the cause of a silence, as far as the capture shows one, and what else may be.
func (m *attempts) silence(x *attempt) []string {
	text := fmt.Sprintf("%s asked %d times in %v and never had an answer", x.name(x.client), x.requests,
		machine.Rounded(x.last.at.Sub(x.first.at)))
	s := m.servers[x.flow.Addr(x.client.Other())]
	other := s != nil && x.whole && len(s.protocols) > 0 && !slices.Contains(s.protocols, x.protocol)
	expired := x.expired(s)
	switch why := app.Undelivered(x.flow, x.client); {
	case why != "":
		return []string{text + ": " + why + "."}
	case other:
		return []string{text + fmt.Sprintf(": it asked for protocol id %#x, and the server answers %#x (%s).", x.protocol,
			s.protocols[0], machine.Likely)}
	case expired != "":
		text += ": " + expired
	default:
		text += ", and the capture does not show why"
	}
	return append([]string{text + "."}, x.left(s))
}

// expired says that the client's token had expired. It returns "" if it had not, or if the server
// took another token that had expired as long before.
func (x *attempt) expired(s *server) string {
	for _, f := range x.flow.Findings() {
		if f.Rule == netcode.TokenExpired && (s == nil || s.late < f.Figures[0]-1) {
			return fmt.Sprintf("%s (%s)", f.Message(), f.Certainty)
		}
	}
	return ""
}

// left says which other explanations are left.
func (x *attempt) left(s *server) string {
	left := []string{"the token was made with another private key, or names another address of the server"}
	for _, f := range x.flow.Findings() {
		if ahead := f.Figures[2]; f.Rule == netcode.NoAnswer && ahead > 0 && (s == nil || s.valid > ahead+1) {
			left = append(left, fmt.Sprintf("the server's clock is %.0f s ahead, so that the token had expired for it", ahead))
		}
	}
	if s == nil {
		left = append(left, "the server is down, or has another protocol id")
	}
	if near := x.flow.Facts().Vantage.Near(x.client.Other()); !near && (s == nil || !s.near) {
		left = append(left, "requests of 1,078 bytes do not reach it")
	}
	known := ""
	if s != nil {
		known = fmt.Sprintf(" The server answered %s.", show.Plural(s.answers, "other request"))
	}
	return "Left are: " + strings.Join(left, "; ") + "." + known
}

func (x *attempt) page(paint show.Painter, how string, story []string) (b []byte) {
	f := x.flow
	b = paint.Text(b, show.Bold, fmt.Sprintf("flow %d  %s  %v ↔ %v: %s", f.ID, show.FlowName(f), f.A, f.B, how))
	b = append(b, '\n')
	for _, sentence := range story {
		b = fmt.Appendf(b, "  %s\n", sentence)
	}
	b = fmt.Appendf(b, "\n  %v  first request  %s  frame %d\n", x.client, x.first.at.Time().Format("15:04:05.000"),
		x.first.ref.Frame())
	b = fmt.Appendf(b, "     last request   %s  frame %d\n", x.last.at.Time().Format("15:04:05.000"), x.last.ref.Frame())
	return app.AppendFindings(b, f)
}
