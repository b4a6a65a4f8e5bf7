package replay_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

// change is one header of a datagram with one field changed.
type change struct {
	field string
	bytes []byte
	// sure: no correct endpoint sends that here, as a model outside of the judges
	// says, or what the protocol says of the field. Of the others it is open.
	sure bool
}

// subject is one flow of a capture in which lies are planted.
type subject struct {
	path string
	flow *analyze.Flow
	list []machine.Datagram
	side machine.Side // the liar, at the tap
}

// fate is what replay makes of a lie.
type fate int

const (
	fateExact fate = iota
	fateEarlier
	fateLater
	fateMissed
	fateUnread
	fates
)

var fateWords = [fates]string{"exact", "earlier", "later", "missed", "not judged"}

// subjectsOf returns the flows of a capture, once for each side that stands at the
// tap, and the frames to plant in.
func subjectsOf(t *testing.T, path string, frames []capture.Frame) (list []*subject) {
	t.Helper()
	byFlow := map[int]*subject{}
	if _, err := analyze.RunTwice(&altered{frames: frames},
		analyze.Options{Registry: everyProtocol(), Vantage: standsAt(path), Sink: func(r *analyze.Record) {
			read := r.Packet == nil && len(r.Datagram.Bytes) > 0
			if p := r.Packet; p != nil {
				read = !p.Duplicate && (p.Transport != capture.TCP || r.Message)
			}
			if !read || r.Flow == nil || r.Flow.Protocol == nil || r.Flow.Protocol.NewJudge == nil {
				return
			}
			s := byFlow[r.Flow.ID]
			if s == nil {
				s = &subject{path: path, flow: r.Flow}
				byFlow[r.Flow.ID] = s
			}
			d := r.Datagram
			d.Bytes = bytes.Clone(d.Bytes)
			s.list = append(s.list, d)
		}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Sorted(maps.Keys(byFlow)) {
		for _, side := range []machine.Side{machine.A, machine.B} {
			if s := *byFlow[id]; s.flow.Facts().Vantage.Near(side) {
				s.side = side
				list = append(list, &s)
			}
		}
	}
	return list
}

func everyProtocol() *dissect.Registry {
	return dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)
}

// splice returns a frame with another datagram in it: its lengths and the checksum
// of its IP header are mended. It gives false where the datagram does not stand
// whole in the frame, or its length in a stream would change.
func splice(f capture.Frame, was, now []byte) (capture.Frame, bool) {
	at := bytes.LastIndex(f.Data, was)
	if at < 0 || len(was) == 0 {
		return f, false
	}
	data := slices.Concat(f.Data[:at], now, f.Data[at+len(was):])
	grown := len(now) - len(was)
	if grown != 0 {
		udp := at - 8
		if udp < 20 || int(binary.BigEndian.Uint16(data[udp+4:])) != len(was)+8 {
			return f, false
		}
		binary.BigEndian.PutUint16(data[udp+4:], uint16(len(now)+8))
		switch ip4, ip6 := udp-20, udp-40; {
		case data[ip4] == 0x45 && data[ip4+9] == 17:
			length := data[ip4+2:]
			binary.BigEndian.PutUint16(length, binary.BigEndian.Uint16(length)+uint16(grown))
			binary.BigEndian.PutUint16(data[ip4+10:], 0)
			binary.BigEndian.PutUint16(data[ip4+10:], checksum(data[ip4:udp]))
		case ip6 >= 0 && data[ip6]>>4 == 6 && data[ip6+6] == 17:
			length := data[ip6+4:]
			binary.BigEndian.PutUint16(length, binary.BigEndian.Uint16(length)+uint16(grown))
		default:
			return f, false
		}
	}
	f.Data = data
	f.Length += grown
	return f, true
}

// checksum is the Internet's.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// plant has replay judge the capture with one datagram changed. It gives what is
// found of the liar, and of an honest side.
func (s *subject) plant(t *testing.T, frames []capture.Frame, at int, c *change) (of fate, found,
	wronged *machine.Divergence,
) {
	t.Helper()
	d := &s.list[at]
	n := int(d.Ref.Frame()) - 1
	f, ok := splice(frames[n], d.Bytes, c.bytes)
	if !ok {
		return fateUnread, nil, nil
	}
	changed := slices.Clone(frames)
	changed[n] = f
	file, err := replay.Run(s.path, &altered{frames: changed},
		replay.Options{Analysis: analyze.Options{Registry: everyProtocol(), Vantage: standsAt(s.path)}})
	if err != nil {
		t.Fatal(err)
	}
	judged := false
	for i := range file.Results {
		r := &file.Results[i]
		switch {
		case r.Flow.Addr(r.Side) == s.flow.Addr(s.side) && r.Flow.Addr(r.Side.Other()) == s.flow.Addr(s.side.Other()):
			found, judged = r.Divergence, true
		case r.Divergence != nil:
			wronged = r.Divergence
		}
	}
	switch {
	case !judged:
		of = fateUnread
	case found == nil:
		of = fateMissed
	case found.Ref.Frame() < d.Ref.Frame():
		of = fateEarlier
	case found.Ref.Frame() > d.Ref.Frame():
		of = fateLater
	}
	return of, found, wronged
}

// tally counts what became of lies, by protocol and field.
type tally struct {
	counts map[string]*[2][fates + 1]int // of those that are open, and that are sure; last: an honest side diverges
}

func (y *tally) add(name string, sure bool, f fate, wronged bool) {
	if y.counts == nil {
		y.counts = map[string]*[2][fates + 1]int{}
	}
	if y.counts[name] == nil {
		y.counts[name] = &[2][fates + 1]int{}
	}
	k := 0
	if sure {
		k = 1
	}
	y.counts[name][k][f]++
	if wronged {
		y.counts[name][k][fates]++
	}
}

func (y *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-32s %-5s", "field", "")
	for _, w := range fateWords {
		fmt.Fprintf(&b, " %10s", w)
	}
	fmt.Fprintf(&b, " %14s", "honest wronged")
	for _, name := range slices.Sorted(maps.Keys(y.counts)) {
		for k, word := range [2]string{"open", "sure"} {
			n := y.counts[name][k]
			if n == [fates + 1]int{} {
				continue
			}
			fmt.Fprintf(&b, "\n%-32s %-5s", name, word)
			for _, c := range n {
				fmt.Fprintf(&b, " %10d", c)
			}
		}
	}
	return b.String()
}

// TestPlantedEverywhere plants lies into captures, one at a time. A lie is one field of a header
// of the side at the tap, changed at a frame that is drawn. The whole of replay judges the
// capture, as for any user.
//
// A lie that no correct endpoint tells must be found at its very frame. Whatever was changed,
// the honest side never diverges, and nothing before the lie does.
//
//	ACKSCOPE_LIES=N        plants N of each field in each flow of every capture (make soak has 2)
//	ACKSCOPE_LIES_SEED     draws other lies
//	ACKSCOPE_LIES_IN=PART  takes only the captures whose names have PART in them
//	ACKSCOPE_LIES_DIR=DIR  takes the captures of another folder
func TestPlantedEverywhere(t *testing.T) {
	testenv.Long(t, "it plants lies in every capture")
	each, _ := strconv.Atoi(os.Getenv("ACKSCOPE_LIES"))
	seed, _ := strconv.ParseUint(os.Getenv("ACKSCOPE_LIES_SEED"), 10, 64)
	dir := cmp.Or(os.Getenv("ACKSCOPE_LIES_DIR"), pcaps)
	paths, err := filepath.Glob(filepath.Join(dir, "*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	var y tally
	all := func(t *testing.T, name string, frames []capture.Frame) {
		t.Helper()
		for _, s := range subjectsOf(t, name, frames) {
			rng := rand.New(rand.NewPCG(seed, uint64(len(name))<<8|uint64(s.flow.ID)<<1|uint64(s.side)))
			n := max(1, each)
			if each == 0 && sampled(name) {
				n = 4
			}
			s.lie(t, rng, frames, n, &y)
		}
	}
	t.Run("captures", func(t *testing.T) {
		for k := range uint64(max(2, each)) {
			name := fmt.Sprintf("srdp-%d", k)
			if dir != pcaps || !strings.Contains(name, os.Getenv("ACKSCOPE_LIES_IN")) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				all(t, name, srdpCapture(t, seed<<8|k))
			})
		}
		for n, path := range paths {
			name := filepath.Base(path)
			info, err := os.Stat(path)
			switch {
			case err != nil, strings.HasSuffix(path, ".md"), strings.HasSuffix(path, ".replay"),
				strings.Contains(name, "stalebug"):
				continue
			case !strings.Contains(name, os.Getenv("ACKSCOPE_LIES_IN")):
				continue
			case each == 0 && (n%24 != 0 || info.Size() > 100<<10) && !sampled(name):
				continue
			}
			t.Run(name, func(t *testing.T) {
				all(t, name, framesOf(t, path))
			})
		}
	})
	t.Logf("\n%s", y.String())
}

// sampled reports whether a capture is of the series' programs: those are small,
// and lied in by every run.
func sampled(name string) bool {
	return strings.HasPrefix(name, "article-")
}

// lie plants each of every field of the flow.
func (s *subject) lie(t *testing.T, rng *rand.Rand, frames []capture.Frame, each int, y *tally) {
	t.Helper()
	teller := s.teller(t)
	if teller == nil {
		return
	}
	var own []int
	for i := range s.list {
		if s.list[i].From == s.side {
			own = append(own, i)
		}
	}
	if len(own) == 0 {
		return
	}
	done := map[string]int{}
	for range 60 * each {
		at := own[rng.IntN(len(own))]
		if s.list[at].Length > len(s.list[at].Bytes) {
			continue // cut by a snap length: nothing can be written behind it
		}
		changes := teller(rng, at)
		if len(changes) == 0 {
			continue
		}
		c := changes[rng.IntN(len(changes))]
		if done[c.field] >= each || bytes.Equal(c.bytes, s.list[at].Bytes) {
			continue
		}
		f, d, wronged := s.plant(t, frames, at, &c)
		if f == fateUnread {
			continue
		}
		done[c.field]++
		y.add(s.flow.Protocol.Name+" "+c.field, c.sure, f, wronged != nil)
		what := fmt.Sprintf("%s flow %d %s: %s in frame %d (%x, was %x)", filepath.Base(s.path), s.flow.ID, s.side, c.field,
			s.list[at].Ref.Frame(), head(c.bytes), head(s.list[at].Bytes))
		if wronged != nil {
			t.Errorf("%s: HONEST %s; the liar: %s", what, worded(wronged), fateWords[f])
		}
		if os.Getenv("ACKSCOPE_LIES_ALL") != "" || f == fateEarlier || f != fateExact && c.sure {
			t.Errorf("%s: %s %s", what, fateWords[f], worded(d))
		}
	}
}

func worded(d *machine.Divergence) string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf("frame %d: %s: %s expected %s, got %s: %s", d.Ref.Frame(), d.Rule, d.Field, d.Expected,
		d.Got, d.Because)
}

func head(b []byte) []byte { return b[:min(len(b), 16)] }
