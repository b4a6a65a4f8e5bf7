package gaffer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Samples is the sim.Kit of the article series' programs that do not acknowledge
// packets. The profile says which program it is:
//
//	slices     both sides send blocks, one after the other
//	fragments  both sides send a packet a frame, of three types
//	handshake  clients connect to one server, and leave
type Samples struct {
	Profile    *wire.Profile // one with slices, the article's fragments or its handshake
	Rate       [2]float64    // frames a second, by role
	First      [2]uint32     // number of the first packet or block, by role; both are the same for blocks
	EventClock bool
	Least      int    // bytes of a packet or a block
	Most       int    // largest packet or block
	Count      uint64 // packets, blocks or connections of each endpoint; 0: no end
	// AsSample makes the endpoints do what the series' programs do where they differ from
	// the articles.
	AsSample bool
	Slots    int           // of the server: clients at a time
	Stay     time.Duration // how long a client stays connected; 0: until the end
	Seed     uint64        // of the salts
	Faults   [2]*article.Fault
}

// NewSamples checks the kit and makes it ready for use.
func NewSamples(k Samples) (*Samples, error) {
	p := k.Profile
	if p == nil || !gaffer.IsSample(p) {
		return nil, errors.New("gaffer: expected a profile of slices, of the article's fragments or of its handshake")
	}
	for _, rate := range k.Rate {
		if !(rate > 0) {
			return nil, fmt.Errorf("gaffer: rate %g: expected frames a second", rate)
		}
	}
	most := math.MaxInt
	if p.Slices > 0 {
		most = p.Slices * p.SliceSize
	} else if gaffer.IsPieces(p) {
		most = largestPacket
	}
	if !p.Handshake && (k.Least < 1 || k.Most < k.Least || k.Most > most) {
		return nil, fmt.Errorf("gaffer: %d to %d bytes: expected a range within 1 to %d", k.Least, k.Most, most)
	}
	if p.Handshake && (k.Slots < 1 || k.Stay < 0) {
		return nil, fmt.Errorf("gaffer: %d slots, a stay of %v: expected at least one slot, and no negative time", k.Slots,
			k.Stay)
	}
	for _, f := range k.Faults {
		if f != nil && !f.Fits(p) {
			return nil, fmt.Errorf("gaffer: fault %s: not one of this profile's endpoints", f.Name)
		}
	}
	return &k, nil
}

// largestPacket is the most bytes of a packet's items, as the sample has it.
const largestPacket = 16384

// Rhythm implements sim.Kit. One server takes all clients of the handshake. The other
// programs have an endpoint for each peer.
func (k *Samples) Rhythm(role sim.Role) sim.Rhythm {
	r := sim.Rhythm{Frame: time.Duration(float64(time.Second) / k.Rate[role]), EventDriven: k.EventClock}
	if r.Shared = k.Profile.Handshake && role == sim.Server; !r.Shared {
		r.Idle = 10 * time.Second
	}
	return r
}

// End implements sim.Kit.
func (k *Samples) End(role sim.Role, n int, _ netip.AddrPort) (*sim.End, error) {
	if role == sim.Proxy {
		return nil, errors.New("gaffer: expected a client or a server, found a proxy")
	}
	end := &sim.End{Log: &samplesLog{kit: k, role: role, n: n}}
	var err error
	switch p := k.Profile; {
	case p.Slices > 0:
		var e *article.Blocks
		e, err = article.NewBlocks(article.BlockOptions{
			Profile: p, Side: machine.Side(role), First: uint16(k.First[sim.Client]), AsSample: k.AsSample,
			Fault: k.Faults[role],
		})
		end.Endpoint, end.App = e, k.sendBlocks(e)
	case p.Handshake:
		o := article.ConnectOptions{
			Profile: p, Side: machine.Side(role), Server: role == sim.Server, Slots: k.Slots,
			Seed: sim.Rand(k.Seed, fmt.Sprintf("salts %v %d", role, n)).Uint64(), Fault: k.Faults[role],
		}
		if k.AsSample {
			o.Farewells = 1
		}
		var e *article.Connection
		e, err = article.NewConnection(o)
		end.Endpoint, end.App = e, k.stayConnected(e)
		end.Farewell = []machine.Input{machine.Command{Kind: machine.Disconnect}}
		if role == sim.Server {
			end.App, end.Farewell = nil, []machine.Input{machine.Command{Kind: machine.Stop}}
		}
	default:
		end.Endpoint, err = article.NewFragments(article.FragmentOptions{
			Profile: p, Side: machine.Side(role), First: k.First[role], Fault: k.Faults[role],
		})
		end.App = k.sendPackets
	}
	if err != nil {
		return nil, err
	}
	end.Log.(*samplesLog).endpoint = end.Endpoint
	return end, nil
}

// sendBlocks submits a block whenever the one before is acked.
func (k *Samples) sendBlocks(e *article.Blocks) sim.App {
	sent := uint64(0)
	return func(f *sim.Frame) {
		switch over := k.Count > 0 && sent >= k.Count; {
		case !e.Idle():
		case over:
			f.Done()
		default:
			f.Do(machine.Submit{Channel: article.ChannelBlock, Payload: sim.Noise(f.Rand, k.size(f.Rand))})
			sent++
		}
	}
}

func (k *Samples) size(rng *rand.Rand) int { return k.Least + rng.IntN(k.Most-k.Least+1) }

// sendPackets submits a packet a frame.
func (k *Samples) sendPackets(f *sim.Frame) {
	if k.Count > 0 && uint64(f.Number) >= k.Count {
		f.Done()
		return
	}
	kind, body := k.packet(f.Rand)
	f.Do(machine.Submit{Channel: article.ChannelFragments, Type: kind, Payload: body})
}

// packet draws a packet of one of the sample's types: three integers, a run of bytes, or
// a body in motion. A profile with other types gets random bytes.
func (k *Samples) packet(rng *rand.Rand) (kind uint32, body []byte) {
	types := k.Profile.PacketTypes
	if types != 4 {
		return 1 + uint32(rng.IntN(types-1)), sim.Noise(rng, k.size(rng))
	}
	w := bits.NewWriter(nil)
	w.Bits(0, 2) // the packet type is there
	switch kind = []uint32{1, 2, 2, 3}[rng.IntN(4)]; kind {
	case 1:
		for i := range uint64(3) {
			most := 20 * (i + 1) // from -10, -20 and -30 on
			w.Bits(rng.Uint64N(most+1), bits.Required(0, most))
		}
	case 2:
		n := k.size(rng)
		w.Bits(uint64(n), bits.Required(0, largestPacket))
		for range n {
			w.Bits(uint64(rng.Uint32()&0xff), 8)
		}
	case 3:
		vector := func() {
			for range 3 {
				w.Bits(uint64(math.Float32bits(float32(rng.IntN(2000)-1000)/8)), 32)
			}
		}
		vector()
		rest := uint64(rng.IntN(2))
		if w.Bits(rest, 1); rest == 0 {
			vector()
		}
	}
	return kind, w.Data()
}

// stayConnected connects, stays for as long as it is told, leaves, and connects again.
// A client that is refused, or whose connection ends otherwise, waits for a second first.
func (k *Samples) stayConnected(e *article.Connection) sim.App {
	const again = time.Second
	var asked, since machine.Instant
	made := uint64(0)
	connected := false
	return func(f *sim.Frame) {
		switch {
		case e.Connected(0):
			if !connected {
				connected, since = true, f.Now
			}
			if k.Stay > 0 && f.Now.Sub(since) >= k.Stay {
				f.Do(machine.Command{Kind: machine.Disconnect})
				connected, asked = false, f.Now
			} else if k.Stay == 0 && k.Count > 0 && made >= k.Count {
				f.Done() // it stays until the others have ended
			}
		case connected:
			connected, asked = false, f.Now
		case e.Waiting(0):
			asked = f.Now
		case k.Count > 0 && made >= k.Count:
			f.Done()
		case made == 0 || f.Now.Sub(asked) >= again:
			f.Do(machine.Command{Kind: machine.Connect})
			made++
		}
	}
}

// Greets implements sim.Kit. Any packet of the profile may begin a conversation.
func (k *Samples) Greets(b []byte) bool {
	var p wire.Packet
	return k.Profile.Parse(b, len(b), &p) == nil && (!k.Profile.Handshake || p.Handshake == wire.ConnectRequest)
}

// Name implements sim.Kit. The first client has no number.
func (k *Samples) Name(role sim.Role, n int) string {
	if role == sim.Client && n > 0 {
		return fmt.Sprintf("client%d", n+1)
	}
	return role.String()
}
