package analyze

import (
	"errors"
	"math/rand"
	"net/netip"
	"reflect"
	"testing"
	"testing/quick"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// TestShareBytes: all that a run learned of a flow reaches the other process, and so does each fact that
// later code adds.
func TestShareBytes(t *testing.T) {
	registry := dissect.NewRegistry(&dissect.Protocol{Name: "test", Portable: &dissect.Portable{
		Write: func(c *dissect.Config) ([]byte, error) {
			return []byte(c.Profile.(string) + c.Facts.Settings.(string)), nil
		},
		Read: func(c *dissect.Config, from []byte) error {
			if len(from) != 2 {
				return errors.New("expected two bytes")
			}
			c.Profile, c.Facts.Settings = string(from[:1]), string(from[1:])
			return nil
		},
	}})
	a, b := netip.MustParseAddrPort("10.0.0.1:7777"), netip.MustParseAddrPort("[2001:db8::1]:40000")
	random := rand.New(rand.NewSource(1))
	for range 100 {
		c := &dissect.Config{
			Dialect: "t", Profile: "p", Stream: true, OneHost: true, Ends: [2]netip.AddrPort{a, b}, Ports: []uint16{7777},
		}
		facts := reflect.ValueOf(&c.Facts).Elem()
		for i := range facts.NumField() {
			if f := facts.Field(i); f.Kind() != reflect.Interface {
				v, _ := quick.Value(f.Type(), random)
				f.Set(v)
			}
		}
		c.Facts.VantageReason, c.Facts.Settings = "why", "s" // JSON has no text that is not UTF-8
		want := &share{capture: "match", late: true, frames: 9, dropped: 2, born: []uint64{7, 8}, flows: []surveyed{
			{
				a: a, b: b, transport: capture.UDP, protocol: registry.Protocols()[0], first: machine.Ref(3), stream: 1,
				session: 2, moveKnown: true, captureLoss: 3,
				verdict: dissect.Verdict{Config: c, Bits: 0.1, Confidence: 0.9, Reason: "marks", Settled: true},
			},
			{a: b, b: a, transport: capture.TCP, verdict: dissect.Verdict{Reason: "no marks"}},
		}}
		told, err := want.write()
		if err != nil {
			t.Fatal(err)
		}
		got, err := readShare(registry, told)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v, %v, expected %+v", got, err, want)
		}
	}
}
