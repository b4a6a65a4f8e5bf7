package stream

import (
	"bytes"
	"math/rand"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// TestWholeStreams reads streams from their start, in each format. Segments
// have any size, are reordered, and are retransmitted with other boundaries.
func TestWholeStreams(t *testing.T) {
	for i := range toyFormats {
		for seed := range int64(30) {
			f := &toyFormats[i]
			s := newSource(seed, 300, []int{20, 200, 1231}[seed%3], f)
			packets := s.segments(0, []int{4, 100, 4000}[seed/3%3])
			if seed%2 == 1 {
				packets = s.impair(packets, 0.1)
			}
			c := New(toyFormats, Limits{})
			all := s.run(t, c, append([]*capture.Packet{s.syn()}, packets...))
			compare(t, s.messages, all)
			if c.Format() != f || c.Counts(machine.A).Unframed != 0 || c.Counts(machine.A).Gaps != 0 || !c.Whole(machine.A) {
				t.Fatalf("format %v, %+v", c.Format(), c.Counts(machine.A))
			}
		}
	}
}

// TestTimeIsThatOfTheLastByte compares with a naive model: a message can be
// read when all bytes up to its last have passed the tap.
func TestTimeIsThatOfTheLastByte(t *testing.T) {
	for seed := range int64(20) {
		s := newSource(seed, 200, 300, &toyFormats[0])
		packets := s.impair(s.segments(0, 200), 0.2)
		all := s.run(t, New(toyFormats, Limits{}), append([]*capture.Packet{s.syn()}, packets...))
		have, whole, next := make([]bool, len(s.stream)), 0, 0
		for _, p := range packets {
			at := int(p.TCPSeq - s.isn - 1)
			for i := range p.Payload {
				have[at+i] = true
			}
			for whole < len(have) && have[whole] {
				whole++
			}
			index := 0
			for next < len(s.ends) && s.ends[next] <= whole {
				if all[next].Ref != p.Ref || all[next].At != p.At || all[next].Index != index {
					t.Fatalf("seed %d message %d: frame %d index %d, want frame %d index %d", seed, next, all[next].Ref.Frame(),
						all[next].Index, p.Ref.Frame(), index)
				}
				next++
				index++
			}
		}
	}
}

// TestJoined starts in the middle of a message.
func TestJoined(t *testing.T) {
	for i := range toyFormats {
		for seed := range int64(40) {
			s := newSource(seed, 200, []int{20, 300}[seed%2], &toyFormats[i])
			from := s.rng.Intn(len(s.stream) / 2)
			all := s.run(t, New(toyFormats, Limits{}), s.segments(from, 150))
			// The first message whose prefix is in the capture.
			first := 0
			for first < len(s.messages) && s.ends[first]-len(s.messages[first])-toyFormats[i].Prefix < from {
				first++
			}
			if extra := len(all) - (len(s.messages) - first); extra == 1 && all[0].Grade != machine.Certain {
				all = all[1:] // bytes in front that looked like a message: graded likely at most
			} else if len(all) > 0 && all[0].Grade != machine.Likely {
				t.Fatalf("the first message after a search is %s", all[0].Grade)
			} else {
				all[0].Grade = machine.Certain
			}
			compare(t, s.messages[first:], all)
		}
	}
}

// TestForeign feeds streams of other protocols. No message may come out.
func TestForeign(t *testing.T) {
	http := bytes.Repeat([]byte("GET /index.html HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n"), 2000)
	tls := []byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}
	noise := make([]byte, 200_000)
	rand.New(rand.NewSource(1)).Read(noise)
	tls = append(tls, noise...)
	for name, stream := range map[string][]byte{"http": http, "tls": tls, "noise": noise, "zero": make([]byte, 100_000)} {
		for _, joined := range []bool{false, true} {
			s := newSource(1, 0, 1, &toyFormats[0])
			s.stream = stream
			c := New(toyFormats, Limits{})
			packets := s.segments(0, 1400)
			if !joined {
				packets = append([]*capture.Packet{s.syn()}, packets...)
			}
			if all := s.run(t, c, packets); len(all) > 0 {
				t.Errorf("%s, joined %v: %d messages", name, joined, len(all))
			}
			if size := c.Size(); size > 64<<10 {
				t.Errorf("%s, joined %v: holds %d bytes", name, joined, size)
			}
		}
	}
}

// TestReopened uses a pair of addresses twice.
func TestReopened(t *testing.T) {
	one, two := newSource(1, 50, 50, &toyFormats[0]), newSource(2, 50, 50, &toyFormats[1])
	two.frame, two.frames = 1000, one.frames
	packets := append([]*capture.Packet{one.syn()}, one.segments(0, 60)...)
	packets = append(packets, one.syn()) // a repeated SYN opens nothing
	packets = append(append(packets, two.syn()), two.segments(0, 60)...)
	all := one.run(t, New(toyFormats, Limits{}), packets)
	compare(t, append(one.messages, two.messages...), all)
}

// TestBothSidesInOrder joins both directions in the middle. The side whose
// framing is proven first waits for the other's older bytes.
func TestBothSidesInOrder(t *testing.T) {
	a, b := newSource(5, 100, 30, &toyFormats[0]), newSource(7, 100, 30, &toyFormats[0])
	pa, pb := a.segments(11, 40), b.segments(13, 40)
	c := New(toyFormats, Limits{})
	var out Output
	last, n := machine.Instant(0), 0
	check := func() {
		for _, m := range out.Messages {
			if m.At < last {
				t.Fatalf("a message of %d after one of %d", m.At, last)
			}
			last = m.At
			n++
		}
	}
	frame := uint64(0)
	feed := func(side machine.Side, p *capture.Packet) {
		frame++
		p.Ref, p.At = machine.MakeRef(0, frame), machine.Instant(frame)
		c.Feed(side, p, &out)
		check()
	}
	for len(pa)+len(pb) > 0 {
		if len(pa) > 0 {
			feed(machine.A, pa[0])
			pa = pa[1:]
		}
		if len(pb) > 0 && frame > 3 {
			feed(machine.B, pb[0])
			pb = pb[1:]
		}
	}
	c.Finish(&out)
	check()
	if n < 190 {
		t.Errorf("%d messages of 200", n)
	}
}

// TestReleased begins with segments that look like messages of another format,
// as a body with messages of its own does. The framing is given up where they
// end, and the true one is found.
func TestReleased(t *testing.T) {
	inner, outer := newSource(1, 6, 40, &toyFormats[0]), newSource(2, 200, 40, &toyFormats[1])
	s := newSource(3, 0, 1, &toyFormats[0])
	s.stream = slices.Concat(inner.stream, []byte{255, 255, 255, 255, 255}, outer.stream)
	var packets []*capture.Packet
	from := 0
	for _, to := range append(slices.Clone(inner.ends), len(inner.stream)+5) {
		packets = append(packets, s.packet(from, to, 0))
		from = to
	}
	for _, end := range outer.ends {
		packets = append(packets, s.packet(from, len(inner.stream)+5+end, 0))
		from = len(inner.stream) + 5 + end
	}
	c := New(toyFormats, Limits{})
	all := s.run(t, c, packets)
	if c.Format() != &toyFormats[1] {
		t.Fatalf("the framing is %+v, expected that of 2 bytes", c.Format())
	}
	if len(all) < len(outer.messages) {
		t.Fatalf("%d messages, expected those of the true framing: %d", len(all), len(outer.messages))
	}
	all = all[len(all)-len(outer.messages)+1:]
	compare(t, outer.messages[1:], all)
}

// TestClone feeds the rest of a stream to a copy and to the original.
func TestClone(t *testing.T) {
	s := newSource(9, 300, 300, &toyFormats[0])
	packets := append([]*capture.Packet{s.syn()}, s.impair(s.segments(0, 300), 0.2)...)
	for cut := 1; cut < len(packets); cut += 7 {
		c := New(toyFormats, Limits{})
		var out Output
		for _, p := range packets[:cut] {
			c.Feed(machine.A, p, &out)
		}
		d := c.Clone()
		rest := s.run(t, c, packets[cut:])
		again := s.run(t, d, packets[cut:])
		if len(rest) != len(again) {
			t.Fatalf("cut at %d: %d messages, the copy gives %d", cut, len(rest), len(again))
		}
		for i := range rest {
			if !bytes.Equal(rest[i].bytes, again[i].bytes) || rest[i].Ref != again[i].Ref {
				t.Fatalf("cut at %d: message %d differs", cut, i)
			}
		}
	}
}
