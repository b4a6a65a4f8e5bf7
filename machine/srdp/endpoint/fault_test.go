package endpoint

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// A faulty endpoint sends other bytes than a correct one with the same inputs.
// It sends the same bytes when the fault is documented as unobservable.
func TestFaultsShow(t *testing.T) {
	if len(Faults) < 12 {
		t.Errorf("%d faults, expected at least 12", len(Faults))
	}
	var names []string
	for i, f := range Faults {
		if slices.Contains(names, f.Name) || LookupFault(f.Name) != f || f.Doc == "" {
			t.Errorf("%+v is not a fault of its own name", f)
		}
		names = append(names, f.Name)
		for _, form := range []wire.Form{wire.Direct, wire.Proxied} {
			p := profile(form)
			p.LittleEndian = i%2 == 0
			selves := [2]wire.Address{address("10.0.0.1:1"), address("10.0.0.2:2")}
			fresh := func(side int, fault *Fault) *Endpoint {
				e, err := New(Options{Profile: p, Side: machine.Side(side), First: 32700, Self: selves[side], Fault: fault})
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			w := sim.New(7)
			journal := w.Record()
			journal.Digests = false // the endpoints that replay it differ from those that recorded it
			app := func(side int) sim.App {
				return func(fr *sim.Frame) {
					if fr.Number == 0 {
						fr.Do(Introduce(0, selves[1-side]))
					}
					if fr.Now < machine.Instant(4*time.Second) {
						timeout := 150 * time.Millisecond
						if f.samples {
							timeout = 0 // the library chooses
						}
						fr.Do(srdp.Request{Bytes: noise(fr.Rand), Repeats: 3, Timeout: timeout, Flags: uint8(fr.Rand.IntN(4))}.Submit())
					}
				}
			}
			path := sim.Path{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.2, Duplicate: 0.15}
			a := w.AddHost("a", fresh(0, f), sim.HostOptions{Frame: 25 * time.Millisecond, App: app(0)})
			b := w.AddHost("b", fresh(1, nil), sim.HostOptions{Frame: 25 * time.Millisecond, App: app(1)})
			w.Connect(a, b, path, path)
			if err := w.Run(machine.Instant(5 * time.Second)); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			sent := func(fault *Fault) (all [][]byte) {
				err := journal.Play([]machine.Endpoint{fresh(0, fault), fresh(1, nil)}, func(e *sim.Entry, out *machine.Effects) {
					for _, x := range out.Transmit {
						if e.Host == 0 {
							all = append(all, bytes.Clone(x.Bytes))
						}
					}
				})
				if err != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
				return all
			}
			same := slices.EqualFunc(sent(f), sent(nil), bytes.Equal)
			if same != (f.Unobservable != "") {
				t.Errorf("%s, %v form: sends the same as a right endpoint: %v; said to be unobservable: %q", f.Name, form, same,
					f.Unobservable)
			}
		}
	}
	if LookupFault("none") != nil {
		t.Error("an unknown fault was found")
	}
}

func noise(rng *rand.Rand) []byte {
	b := make([]byte, 1+rng.IntN(60))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// What each fault does, step by step.
func TestFaults(t *testing.T) {
	rigOf := func(name string, o Options) *rig {
		o.Fault = LookupFault(name)
		r, _ := newRig(t, o)
		return r
	}
	tenth := func(r *rig, want string) {
		t.Helper()
		for i := range 9 {
			r.at(i, arrive(0, "53 0001 00"))
		}
		r.is(9, arrive(0, "53 0005 00 61"), want+"0<5(a) | received 5")
	}
	tenth(rigOf("ack-missing", Options{}), "")
	tenth(rigOf("ack-twice", Options{}), "0:418005 | 0:418005 | ")
	tenth(rigOf("ack-id-off-by-one", Options{}), "0:418004 | ")
	tenth(rigOf("ack-mark-missing", Options{}), "0:410005 | ")
	tenth(rigOf("ack-byte-order", Options{}), "0:410580 | ")

	r := rigOf("duplicate-unanswered", Options{})
	r.is(0, arrive(0, "53 0005 01 61"), "0:418005 | 0<5(a) | received 5")
	r.is(1, arrive(0, "53 0005 01 61"), "duplicate 5")

	r = rigOf("duplicate-delivered", Options{})
	r.is(0, arrive(0, "53 0005 01 61"), "0:418005 | 0<5(a) | received 5")
	r.is(1, arrive(0, "53 0005 01 61"), "0:418005 | 0<5(a) | received 5")

	second := func(name string, ms int, want string) {
		t.Helper()
		r := rigOf(name, Options{})
		r.at(0, send(0, "ab", 3, 100*time.Millisecond, 1))
		r.deadline(100)
		r.is(100, machine.Wake{}, want)
		r.deadline(100 + ms)
	}
	second("resend-early", 50, "0:530000016162 | resent 0")
	second("resend-late", 400, "0:530000016162 | resent 0")
	second("resend-renumbered", 100, "0:530001016162 | resent 0")
	second("resend-changed", 100, "0:530000016362 | resent 0")
	second("resend-without-flags", 100, "0:530000006162 | resent 0")

	r = rigOf("resend-renumbered", Options{})
	r.at(0, send(0, "a", 3, 100*time.Millisecond, 0))
	r.at(100, machine.Wake{})
	r.is(110, send(0, "b", 3, 100*time.Millisecond, 0), "0:5300010062 | sent 1")

	r = rigOf("resend-without-end", Options{})
	r.at(0, send(0, "a", 0, 100*time.Millisecond, 0))
	r.is(50, arrive(0, "41 8000"), "acked_again 0")
	r.is(100, machine.Wake{}, "0:5300000061 | resent 0")

	r = rigOf("repeats-ignored", Options{})
	r.at(0, send(0, "a", 1, 100*time.Millisecond, 2))
	r.at(0, send(0, "b", 1, 100*time.Millisecond, 2))
	r.is(100, machine.Wake{}, "0:5300010262 | 0:5300000261 | sent 1 | resent 0")

	r = rigOf("id-skipped", Options{First: 9})
	r.is(0, send(0, "a", 1, 0, 0), "0:5300090061 | sent 9")
	r.is(0, send(0, "a", 1, 0, 0), "0:53000b0061 | sent 11")

	r = rigOf("id-repeated", Options{First: 8})
	r.is(0, send(0, "a", 1, 0, 0), "0:5300080061 | sent 8")
	r.is(0, send(0, "b", 1, 0, 0), "0:5300080062 | sent 9")

	r = rigOf("wrap-at-16-bits", Options{First: 32767})
	r.is(0, send(0, "a", 1, 0, 0), "0:537fff0061 | sent 32767")
	r.is(0, send(0, "b", 1, 0, 0), "0:5380000062 | sent 0")

	r = rigOf("order-ignored", Options{})
	r.is(0, send(0, "a", 1, 0, 2), "0:5300000261 | sent 0")
	r.is(0, send(0, "b", 1, 0, 2), "0:5300010262 | sent 1")

	r = rigOf("rtt-from-resent", Options{})
	r.at(0, send(0, "a", 0, 0, 0))
	r.at(500, machine.Wake{})
	r.at(800, arrive(0, "41 8000"))
	if got := r.e.(*Endpoint).Timeout(0); got != 1200*time.Millisecond {
		t.Errorf("a delay of 800 ms measured by two copies makes a timeout of %v", got)
	}
}
