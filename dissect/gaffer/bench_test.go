package gaffer

import (
	"encoding/hex"
	"testing"
	"unsafe"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

func builtinConfig(t testing.TB, name string) *dissect.Config {
	t.Helper()
	for _, p := range Protocol.Profiles {
		if p.Name == name {
			return p.Config
		}
	}
	t.Fatalf("no profile %s", name)
	return nil
}

func datagram(t testing.TB, text string) *machine.Datagram {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return &machine.Datagram{Bytes: b, Length: len(b)}
}

// TestNoAllocations: nothing on a packet's path allocates.
func TestNoAllocations(t *testing.T) {
	for name, text := range map[string]string{
		wire.Reliable: "3e64000135fa276e00010203",
		wire.Article:  "2c0128018ffdfbcf00010203", wire.Reliable2017: "002c012601ffffefdd0001",
	} {
		ctx, dg := dissect.Context{Config: builtinConfig(t, name)}, datagram(t, text)
		var d dissect.Dissection
		line := make([]byte, 0, 200)
		if n := testing.AllocsPerRun(100, func() {
			d.Reset()
			Dissect(ctx, dg, &d)
			line = Info(ctx, dg, line[:0])
		}); n != 0 {
			t.Errorf("%s: %v allocations to dissect a packet", name, n)
		}
		c := Protocol.Classify()
		c.Feed(dg)
		c.Feed(dg)
		if n := testing.AllocsPerRun(30, func() { c.Feed(dg); c.Sure() }); n != 0 {
			t.Errorf("%s: %v allocations to weigh a packet", name, n)
		}
	}
}

// TestClassifierSize: a hundred thousand flows may be undecided at once.
func TestClassifierSize(t *testing.T) {
	n := int(unsafe.Sizeof(classifier{})) + len(newProfileSet(nil, nil).plain)*int(unsafe.Sizeof(candidate{}))
	if n > 700 {
		t.Errorf("an undecided flow takes %d bytes", n)
	}
}

func BenchmarkDissect(b *testing.B) {
	for name, text := range map[string]string{
		wire.Reliable: "3e64000135fa276e00010203",
		wire.Article:  "2c0128018ffdfbcf00010203",
	} {
		b.Run(name, func(b *testing.B) {
			ctx, dg := dissect.Context{Config: builtinConfig(b, name)}, datagram(b, text)
			var d dissect.Dissection
			b.ReportAllocs()
			for b.Loop() {
				d.Reset()
				Dissect(ctx, dg, &d)
			}
		})
	}
}

func BenchmarkInfo(b *testing.B) {
	ctx, dg := dissect.Context{Config: builtinConfig(b, wire.Reliable)}, datagram(b, "3e64000135fa276e00010203")
	line := make([]byte, 0, 200)
	b.ReportAllocs()
	for b.Loop() {
		line = Info(ctx, dg, line[:0])
	}
}

// BenchmarkFeed weighs the first 64 datagrams of real flows. One op is one datagram.
func BenchmarkFeed(b *testing.B) {
	for _, run := range []string{"reliable-clean.client", "plain-le-clean.client", "crc32-clean.client"} {
		b.Run(run, func(b *testing.B) {
			tap := readTap(b, runs(b, run)[0])[:64]
			b.ReportAllocs()
			for b.Loop() {
				c := Protocol.Classify()
				for k := range tap {
					c.Feed(&tap[k].Datagram)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(tap)), "ns/datagram")
		})
	}
}
