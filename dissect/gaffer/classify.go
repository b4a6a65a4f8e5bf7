package gaffer

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// classifier tries every profile on a flow at once. It holds only figures: an undecided
// flow takes a few hundred bytes.
type classifier struct {
	set        *profileSet
	plain      []candidate   // profiles that the first datagram may show
	framed     []candidate   // profiles of the article's frame, once an end check was seen
	netcode    *netcodeTrial // nil until a datagram could be netcode's
	datagrams  uint16
	empty      uint16 // datagrams without a payload
	noNetcode  uint8  // datagrams that cannot be netcode's
	directions uint8  // bit set: that side was seen
	room       *rooms
	family     string // the settled family: only the meaning of ack_bits is open; "" for none
}

// rooms is the memory of the trials that few flows need, and of texts. It serves one flow after the
// other.
type rooms struct {
	framed  []candidate
	netcode *netcodeTrial
	text    []byte
	said    map[string]string // evidence as it was formatted before: short flows say the same
}

// saidMost bounds rooms.said.
const saidMost = 1 << 12

// Reset forgets the flow.
func (c *classifier) Reset() {
	*c = classifier{set: c.set, plain: c.set.candidates(c.plain, c.set.plain), room: c.room}
}

// Feed weighs one more datagram.
func (c *classifier) Feed(d *machine.Datagram) {
	if c.datagrams == mostPackets {
		return
	}
	c.datagrams++
	c.directions |= 1 << d.From
	if d.Length == 0 {
		c.empty++
		return
	}
	if c.plain == nil {
		c.plain = c.set.candidates(nil, c.set.plain)
	}
	for i := range c.plain {
		c.plain[i].feed(d)
	}
	if c.framed == nil && mayBeFramed(d) {
		c.room.framed = c.set.candidates(c.room.framed, c.set.framed)
		c.framed = c.room.framed
	}
	for i := range c.framed {
		c.framed[i].feed(d)
	}
	if c.netcode == nil && c.noNetcode < 8 {
		if mayBeNetcode(d) {
			if c.room.netcode == nil {
				c.room.netcode = new(netcodeTrial)
			}
			c.netcode = c.room.netcode
			*c.netcode = netcodeTrial{profile: c.set.netcode}
		} else {
			c.noNetcode++
		}
	}
	if c.netcode != nil {
		c.netcode.feed(d)
	}
	if c.family == "" && c.set.rivals {
		c.settleFamily()
	}
}

// settleFamily leaves out all other profiles, once those of one family lead as far as a
// single profile must. Scores are limited. While more datagrams are held for the meaning of
// ack_bits, other profiles would catch up.
func (c *classifier) settleFamily() {
	first, second := c.ranking()
	if !first.rivalled || !c.convincing(first) {
		return
	}
	family := first
	family.rivalled = false
	if family.settled(second) {
		c.family = first.entry.family
	}
}

// mayBeFramed reports whether a datagram ends with the end check, or was cut so that
// its end cannot be seen.
func mayBeFramed(d *machine.Datagram) bool {
	n := len(d.Bytes)
	return d.Length > n && n >= 12 || n >= 8 && binary.LittleEndian.Uint32(d.Bytes[n-4:]) == wire.EndCheck
}

// mayBeNetcode reports whether a first byte and a length can be netcode's.
func mayBeNetcode(d *machine.Datagram) bool {
	if len(d.Bytes) == 0 || d.Length < 18 {
		return false
	}
	if b := d.Bytes[0]; b != 0 {
		return b&15 >= 1 && b&15 <= 6 && b>>4 >= 1 && b>>4 <= 8
	}
	return d.Length == 1078
}

// contender is a profile with its evidence, for the verdict.
type contender struct {
	entry    *entry
	c        *candidate // nil for netcode
	bits     int
	rivalled bool // another profile differs from it only in the meaning of ack_bits
}

// bar returns how many bits the profile needs.
func (f contender) bar() int {
	if f.entry.bar > 0 {
		return int(math.Ceil(f.entry.bar))
	}
	return claimBits
}

// lead returns how many bits f is ahead of the next profile.
func (f contender) lead(second contender) int {
	lead := f.bits - max(second.bits, 0)
	if f.rivalled {
		lead = min(lead, f.c.leans(f.c.profile.AckBase))
	}
	return lead
}

// settled reports whether further datagrams would hardly change the ranking.
func (f contender) settled(second contender) bool {
	return f.bits >= max(settleBits, f.bar()) && f.lead(second) >= settleLead
}

// Sure reports whether the dialect is found and settled.
func (c *classifier) Sure() bool {
	first, second := c.ranking()
	return first.entry != nil && first.settled(second) && c.convincing(first)
}

// Verdict returns the dialect of the flow, as far as it is known now.
func (c *classifier) Verdict() dissect.Verdict {
	first, second := c.ranking()
	full := c.datagrams == mostPackets
	switch {
	case c.datagrams == 0 || c.datagrams == c.empty:
		return dissect.Verdict{Reason: "gaffer: no datagram carries a payload", Settled: full}
	case first.entry == nil:
		return dissect.Verdict{Reason: "gaffer: no dialect can read the datagrams", Settled: full}
	}
	lead, bar := first.lead(second), first.bar()
	v := dissect.Verdict{Bits: float64(first.bits), Settled: full || first.settled(second)}
	if first.bits < bar || !c.convincing(first) {
		v.Bits = 0
		v.Settled = full
		v.Reason = "gaffer: no dialect explains it; the nearest, " + first.entry.name + ": " + c.say(first)
		return v
	}
	v.Confidence = 1 - math.Exp2(-float64(min(first.bits, max(lead, 4)))/6)
	v.Reason = c.say(first)
	v.Config = first.entry.config
	if first.c != nil && first.c.profile.HasCRC() && first.c.profile.ProtocolID == nil && first.c.matches > 0 {
		v.Config = &dissect.Config{Dialect: first.entry.config.Dialect, Profile: first.c.profile.WithProtocolID(first.c.id)}
	}
	if first.rivalled && first.c.leans(first.c.profile.AckBase) < settleLead {
		config := *v.Config
		config.Facts.Doubtful = true
		v.Config = &config
	}
	return v
}

// ranking returns the best profile, and the best of those that read datagrams
// differently. Among profiles that read them alike, a user's precedes a built-in one.
//
// Profiles that differ only in the meaning of ack_bits compete by the evidence for that
// meaning alone. All other evidence is for both. Where there is none, the last profile
// precedes, which is a user's.
func (c *classifier) ranking() (first, second contender) {
	place := func(f contender) {
		if first.entry == nil || f.bits > first.bits || f.bits == first.bits && f.entry.shape == first.entry.shape {
			first = f
		}
	}
	c.each(place)
	if first.c != nil && first.c.profile.HasAcks() {
		first = c.ofBase(first)
	}
	c.each(func(f contender) {
		if f.entry.family != first.entry.family && (second.entry == nil || f.bits > second.bits) {
			second = f
		}
	})
	return first, second
}

// ofBase returns the profile of best's family whose meaning of ack_bits the headers show.
// It has the family's evidence.
func (c *classifier) ofBase(best contender) contender {
	var last [2]contender // by meaning
	newest := best
	c.each(func(f contender) {
		if f.entry.family != best.entry.family {
			return
		}
		newest = f
		if k := &last[f.c.profile.AckBase]; k.entry == nil || f.bits >= k.bits {
			*k = f
		}
	})
	if last[0].entry == nil || last[1].entry == nil {
		return best
	}
	base := newest.c.profile.AckBase
	if best.c.leans(base) < 0 {
		base = 1 - base
	}
	chosen := last[base]
	chosen.bits, chosen.rivalled = best.bits, true
	return chosen
}

// each calls do for every profile that could read a datagram.
func (c *classifier) each(every func(f contender)) {
	do := func(f contender) {
		if c.family == "" || f.entry.family == c.family {
			every(f)
		}
	}
	for i := range c.plain {
		if k := &c.plain[i]; k.read > 0 {
			do(contender{entry: c.set.plain[i], c: k, bits: k.total()})
		}
	}
	for i := range c.framed {
		if k := &c.framed[i]; k.read > 0 {
			do(contender{entry: c.set.framed[i], c: k, bits: k.total()})
		}
	}
	if n := c.netcode; n != nil && n.types != 0 {
		do(contender{entry: c.set.netcodeEntry, bits: n.total()})
	}
}

// convincing reports whether a profile has more than one kind of evidence: a counter
// alone makes no protocol.
func (c *classifier) convincing(f contender) bool {
	switch {
	case f.c == nil:
		n := c.netcode
		return n.types&1 != 0 || n.form+n.chance >= 8 || n.score[0] > 0 && n.score[1] > 0
	case int(f.c.bad) > int(f.c.read):
		return false
	case f.c.profile.HasCRC() && f.c.matches > 0:
		return true
	case f.c.profile.HasAcks():
		return f.c.ack >= 8 && f.c.step > 0 && !f.c.unnamed() && (f.c.clean() || !c.hides())
	}
	return false
}

// hides reports whether the snap length cut off the header of some profile in every datagram
// that it fits. For example, article-be has 12 bytes, and the capture has 10 of each datagram.
// Then part of these bytes can read as a shorter header of another profile.
func (c *classifier) hides() bool {
	for i := range c.plain {
		if k := &c.plain[i]; k.cut && k.read == 0 && k.bad == 0 && !k.dead {
			return true
		}
	}
	return false
}

// clean reports whether the headers that a candidate reads have its library's form. One in
// eight of their acks may name a packet that did not pass.
func (c *candidate) clean() bool {
	acks, named := 0, 0
	for i := range c.sides {
		acks, named = acks+int(c.sides[i].acks), named+int(c.sides[i].named)
	}
	return c.form >= 0 && 8*(acks-named) <= acks
}

// say formats a profile's evidence.
func (c *classifier) say(f contender) string {
	if f.c == nil {
		return c.netcode.say()
	}
	k := f.c
	text := c.room.text[:0]
	separate := func() {
		if len(text) > 0 {
			text = append(text, "; "...)
		}
	}
	add := func(format string, args ...any) {
		separate()
		text = fmt.Appendf(text, format, args...)
	}
	// of adds a part such as "3 of 4 acks of a name a packet that passed". Nearly every flow has such
	// parts, so fmt would cost much where there are very many flows.
	of := func(before string, n, all uint8, after string, s machine.Side, end string) {
		separate()
		text = strconv.AppendUint(append(text, before...), uint64(n), 10)
		text = strconv.AppendUint(append(text, " of "...), uint64(all), 10)
		text = append(append(append(text, after...), s.String()...), end...)
	}
	if k.profile.HasCRC() && k.matches > 0 {
		add("the checksums of %d datagrams agree on protocol id %#08x", int(k.matches)+1, k.id)
	}
	for side := range k.sides {
		s, who := &k.sides[side], machine.Side(side)
		if s.packets > 1 && k.profile.SequenceBits() != 0 {
			of("sequence steps by one in ", s.steps, s.packets-1, " packets of ", who, "")
		}
		if s.acks > 0 && k.sides[side^1].packets > 0 {
			of("", s.named, s.acks, " acks of ", who, " name a packet that passed")
		}
	}
	if k.profile.HasAcks() && k.sides[0].packets == 0 != (k.sides[1].packets == 0) {
		add("only one direction was captured")
	}
	if base := f.sayBase(); base != "" {
		add("%s", base)
	}
	if k.bad > 0 {
		add("%d of %d datagrams could not be read so", k.bad, int(k.bad)+int(k.read))
	}
	if len(text) == 0 {
		add("%d datagrams are too few to tell", c.datagrams)
	}
	c.room.text = text
	return c.room.intern(text)
}

// intern returns a text as a string, and one copy of equal ones.
func (r *rooms) intern(text []byte) string {
	if known, ok := r.said[string(text)]; ok {
		return known
	}
	said := string(text)
	if r.said == nil || len(r.said) >= saidMost {
		r.said = map[string]string{}
	}
	r.said[said] = said
	return said
}

func (n *netcodeTrial) say() string {
	var parts []string
	if n.types&1 != 0 {
		parts = append(parts, "a netcode 1.02 connection request was seen")
	}
	for side, packets := range n.packets {
		if packets > 1 {
			parts = append(parts, fmt.Sprintf("netcode's counter steps by one in %d of %d datagrams of %s", n.steps[side],
				packets-1, machine.Side(side)))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "the first bytes could be netcode's, but no counter shows")
	}
	return strings.Join(parts, "; ") + "; what they carry is encrypted"
}
