package stream

import (
	"math"
	mathbits "math/bits"
)

// Evidence that a search in the middle of a stream requires, in bits against
// chance. The search measures chance on the bytes themselves: in bodies full of
// zeros, many places look like a prefix.
const (
	searchBits = 44 // any byte may begin a message, in any format (16 Ki places cost 14)
	knownBits  = 24 // the format is known, from before a gap or from the other direction
	finalBits  = 20 // no more bytes will come
	finalKnown = 10 // both
	headBits   = 4  // for the first message, which nothing leads to

	// nested is how many bytes of messages prove that they are not part of one
	// larger message. It exceeds the longest message of the libraries' defaults.
	nested = 1500
	// wholeSegments is how many segments in a row must begin with a message to
	// prove the same. No library aligns the inside of a message with segments.
	wholeSegments = 4
	// trustedMessages and trustedBytes are how much a framing that was found in
	// the middle must cut before it is no longer released when it fails.
	trustedMessages, trustedBytes = 64, 4096
)

// candidate is a chain of messages from a place in the bytes to their end.
type candidate struct {
	format   int
	at       int     // where it begins
	bits     float64 // evidence for it
	head     float64 // evidence for its first message alone
	messages int     // complete ones
	span     int     // bytes of the complete messages
	aligned  bool    // a segment begins with its first message
	segments int     // segments that begin with one of its messages
	astray   int     // segments within it that do not
	tail     int     // where its last message begins, or the end of the bytes
}

// find searches for the framing in b, the bytes that are not cut yet. It skips
// the bytes before it, and those that cannot belong to it.
func (h *half) find(b []byte, formats []Format, lim *Limits, final bool) bool {
	f := &h.framer
	if h.fresh && !f.proven {
		return f.choose(b, formats, lim, h.missing(), final)
	}
	if !final && len(b) > everyByte && len(b) < f.searched*5/4 {
		return false
	}
	best, lead, viable := h.search(b, formats, int(f.format))
	if best.messages > 0 && f.enough(&best, lead, final) {
		h.lock(b, formats, &best)
		return true
	}
	if over := len(b) - lim.Search; over > viable {
		viable = over
		f.foreign = !f.proven
	}
	h.unframed(viable)
	f.searched = len(b) - viable
	if !f.proven && h.counts.Unframed > uint64(lim.Search) {
		f.foreign = true
	}
	return false
}

// agree finds the format at the end of two directions that are both too short
// to decide alone.
func (c *Conn) agree() {
	best, bestBits, second := -1, 0.0, 0.0
	for i := range c.formats {
		sum := 0.0
		for side := range c.halves {
			h := &c.halves[side]
			if h.framer.proven || h.framer.foreign || h.framer.format >= 0 {
				return
			}
			end := len(h.buf)
			if len(h.breaks) > 0 {
				end = int(h.breaks[0].pos - h.base)
			}
			found, _, _ := h.search(h.buf[h.done:end], c.formats, i)
			sum += found.bits
		}
		if sum > bestBits {
			best, bestBits, second = i, sum, bestBits
		} else {
			second = max(second, sum)
		}
	}
	if bestBits >= finalBits && bestBits-second >= leadBits {
		for side := range c.halves {
			c.halves[side].framer.format = int8(best)
		}
	}
}

// missing returns the size of the first gap in buf, 0 if there is none or its
// size is not known.
func (h *half) missing() uint64 {
	if len(h.breaks) == 0 {
		return 0
	}
	return h.breaks[0].missing
}

// enough reports whether the evidence for a candidate decides. lead is how much
// more it has than any chain that leads elsewhere.
func (f *framer) enough(c *candidate, lead float64, final bool) bool {
	need := float64(searchBits)
	switch {
	case final && f.format >= 0:
		need = finalKnown
	case final:
		need = finalBits
	case f.format >= 0:
		need = knownBits
	}
	if c.bits < need || lead < leadBits {
		return false
	}
	// The chain may lie within a message whose prefix was not seen.
	return final || c.span > nested || c.segments >= wholeSegments && c.astray == 0
}

// lock accepts a candidate. The first message is left out if a place in a body
// could lead to the second by chance.
func (h *half) lock(b []byte, formats []Format, c *candidate) {
	f := &h.framer
	at := c.at
	if c.head < headBits && c.messages > 1 {
		n, _ := formats[c.format].length(b[at:])
		at += formats[c.format].Prefix + n
	}
	f.format, f.synced, f.proven, f.first = int8(c.format), true, true, true
	f.probation = trustedMessages
	f.lockedAt = h.base + uint64(h.done+at)
	h.unframed(at)
}

// lose is called where no message can follow. If the framing was found in the
// middle a short while ago, it was wrong, and the search begins anew.
func (h *half) lose() {
	f := &h.framer
	if f.probation > 0 && h.base+uint64(h.done)-f.lockedAt < trustedBytes {
		f.format, f.proven = -1, false
	}
	f.synced, f.unreadable, f.searched, f.probation = false, 0, 0, 0
}

// search returns the best candidate in b. Its lead is how many bits more it has
// than the best that ends elsewhere. The parameter only is the index of the
// format, or negative if it is not known. The result viable is the first place
// from which a chain may begin.
func (h *half) search(b []byte, formats []Format, only int) (best candidate, lead float64, viable int) {
	s := searcher{b: b, missing: h.missing(), starts: h.starts(len(b)), viable: len(b)}
	second := 0.0
	for i := range formats {
		if only >= 0 && i != only {
			continue
		}
		for _, c := range s.weigh(&formats[i]) {
			c.format = i
			switch {
			case c.messages == 0:
			case c.bits > best.bits:
				best, second = c, best.bits
			case c.bits > second:
				second = c.bits
			}
		}
	}
	return best, best.bits - second, s.viable
}

// starts returns for each of the first n bytes that are not cut whether a
// segment begins with it.
func (h *half) starts(n int) []bool {
	starts := make([]bool, n)
	for _, m := range h.marks {
		if at := int64(m.pos) - int64(h.base) - int64(h.done); at >= 0 && at < int64(n) {
			starts[at] = true
		}
	}
	return starts
}

// searcher finds the chains in the bytes b.
type searcher struct {
	b       []byte
	missing uint64 // size of the gap after b; 0 if there is none
	starts  []bool // by byte: a segment begins with it
	viable  int    // first place from which some chain reaches the end

	links []link // by byte of b; kept for the next format
}

// link is the message that would begin at a byte.
type link struct {
	next  int32 // where the next message begins; dead, open or after b
	tail  int32 // of the chain: where its last message begins, or the length of b
	worth float32
	score float32 // of the chain
}

// Values of link.next that are no place.
const (
	dead = -1 // no message can begin here, or the chain fails later
	open = -2 // the message is longer than b
)

// weigh returns the best chain of a format, and the best that ends elsewhere.
func (s *searcher) weigh(f *Format) [2]candidate {
	if s.links == nil {
		s.links = make([]link, len(s.b))
	}
	longest := f.Usual
	if f.Prefix == 4 {
		longest = f.Max // a longer message than usual may stand among them
	}
	plausible, segments := 0, 0
	for at := range s.b {
		l := &s.links[at]
		*l = s.link(f, at, longest)
		if l.next != dead {
			plausible++
		}
		if s.starts[at] {
			segments++
		}
	}
	size := float64(len(s.b) + 1)
	aligned := float32(math.Log2(size / float64(segments+1)))
	chance := float32(math.Log2(size / float64(plausible+1)))
	for at := len(s.b) - 1; at >= 0; at-- {
		s.join(at, chance, aligned)
	}
	var best [2]int
	for i := range best {
		best[i] = -1
		for at := range s.b {
			l := &s.links[at]
			if l.next == dead || i == 1 && l.tail == s.links[best[0]].tail {
				continue
			}
			s.viable = min(s.viable, at)
			if best[i] < 0 || l.score > s.links[best[i]].score {
				best[i] = at
			}
		}
		if best[i] < 0 {
			break
		}
	}
	var out [2]candidate
	for i, at := range best {
		if at >= 0 {
			out[i] = s.follow(at, plausible, float64(aligned))
		}
		if best[0] < 0 {
			break
		}
	}
	return out
}

// link returns the message that would begin at a byte.
func (s *searcher) link(f *Format, at, longest int) link {
	l := link{next: dead}
	n, whole := f.length(s.b[at:])
	if !whole {
		l.next = open
		return l
	}
	if n == 0 || n > longest {
		return l
	}
	body := s.b[at+f.Prefix:]
	if len(body) > n {
		body = body[:n]
	}
	l.next = open
	if len(body) > 0 {
		worth := f.Weigh(body, n)
		if worth < 0 {
			l.next = dead
			return l
		}
		l.worth = float32(worth) + float32(8*f.Prefix-mathbits.Len(uint(max(n, f.Usual))))
	}
	if len(body) == n || s.missing > 0 && uint64(n-len(body)) == s.missing {
		l.next = int32(at + f.Prefix + len(body))
	}
	return l
}

// join completes the link at a byte by the links after it.
func (s *searcher) join(at int, chance, aligned float32) {
	l := &s.links[at]
	switch {
	case l.next == dead:
		return
	case l.next == open:
		l.tail, l.score = int32(at), 0
		return
	case int(l.next) == len(s.b):
		l.tail, l.score = l.next, aligned
	default:
		next := &s.links[l.next]
		if next.next == dead {
			l.next = dead
			return
		}
		l.tail, l.score = next.tail, next.score
	}
	l.score += min(l.worth, chance)
	if s.starts[at] {
		l.score += aligned
	}
}

// follow measures the chain from a byte. plausible is the number of places that
// look like a prefix, those of the chain included. The others measure chance.
func (s *searcher) follow(at, plausible int, aligned float64) candidate {
	c := candidate{at: at, tail: int(s.links[at].tail)}
	end := at
	for p := at; p < len(s.b); {
		l := &s.links[p]
		if l.next < 0 {
			break
		}
		for q := p; q < int(l.next); q++ {
			switch {
			case s.starts[q] && q == p:
				c.segments++
			case s.starts[q]:
				c.astray++
			}
		}
		c.messages++
		p = int(l.next)
		end = p
	}
	c.span = end - at
	size := float64(len(s.b) + 1)
	chance := math.Log2(size / float64(max(plausible-c.messages, 0)+1))
	for p := at; p < end; p = int(s.links[p].next) {
		c.bits += min(float64(s.links[p].worth), chance)
	}
	c.bits += aligned * float64(c.segments)
	if end == len(s.b) {
		c.bits += aligned
	}
	c.aligned = s.starts[at]
	if c.messages > 0 {
		c.head = s.head(&c, chance)
	}
	return c
}

// head returns the evidence that a chain's first message is one. Otherwise it is
// a place before the chain from which chance leads to one of its messages.
func (s *searcher) head(c *candidate, chance float64) float64 {
	places, elsewhere := 1, 1 // places for it; messages that begin within a segment
	for _, start := range s.starts[:c.at] {
		if start || !c.aligned {
			places++
		}
	}
	if c.aligned {
		elsewhere = c.messages
	} else {
		elsewhere += c.messages - 1 - c.segments
	}
	// The share of places to which it could lead, and of messages that begin as it does.
	lead := float64(c.messages) / float64(max(c.span, 1))
	share := float64(max(elsewhere, 1)) / float64(c.messages)
	return chance - math.Log2(float64(places)*lead) + math.Log2(share)
}
