package connecting

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// edited is a capture of testdata/pcaps that a test changes as it is read. It is an
// analyze.Rewinder.
type edited struct {
	t *testing.T
	*capture.Input
	decoder *capture.Decoder
	edit    change
}

// change changes a frame, or returns false to leave it out.
type change = func(f *capture.Frame, p *capture.Packet) bool

func edit(t *testing.T, name string, change change) *edited {
	t.Helper()
	path := filepath.Join(testenv.Module(t), "testdata", "pcaps", name)
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return &edited{t: t, Input: in, decoder: capture.NewDecoder(capture.DecodeOptions{}), edit: change}
}

func (e *edited) Next(f *capture.Frame) error {
	for {
		if err := e.Input.Next(f); err != nil {
			return err
		}
		var p capture.Packet
		e.decoder.Decode(f, &p)
		if e.edit(f, &p) {
			return nil
		}
	}
}

func (e *edited) Rewind() error {
	e.decoder = capture.NewDecoder(capture.DecodeOptions{})
	return e.Input.Rewind()
}

// findings returns what is found in a capture, without notes that this package is not about:
// flow, rule, side and certainty, with the text.
func (e *edited) findings() (list []string) { return findings(e.t, e) }

func findings(t *testing.T, e analyze.Rewinder) (list []string) {
	t.Helper()
	s, err := analyze.RunTwice(e, analyze.Options{
		Registry: dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol),
	})
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for _, f := range s.Flows() {
		for _, x := range f.Findings() {
			if slices.Contains([]string{
				"netcode-token-expired", "netcode-clock-behind", "netcode-no-answer", "netcode-denied", "nat-idle",
				"reconnect-loop",
			}, x.Rule.ID) {
				list = append(list, fmt.Sprintf("%d %s %v %v: %s", f.ID, x.Rule.ID, x.Side, x.Certainty, x.Message()))
			}
		}
	}
	return list
}

// shifted returns an edit that sets the clock of the capture.
func shifted(by time.Duration) change {
	return func(f *capture.Frame, _ *capture.Packet) bool {
		f.At = f.At.Add(by)
		return true
	}
}

// expiry returns by how much the clock must be set so that the token of the first request had
// expired for a time.
func expiry(t *testing.T, name string, ago time.Duration) (by time.Duration) {
	t.Helper()
	found := false
	e := edit(t, name, func(f *capture.Frame, p *capture.Packet) bool {
		if len(p.Payload) == 1078 && p.Payload[0] == 0 && !found {
			found = true
			expire := int64(0)
			for i := range 8 {
				expire |= int64(p.Payload[22+i]) << (8 * i)
			}
			by = machine.Instant(expire * 1e9).Add(ago).Sub(f.At)
		}
		return true
	})
	var f capture.Frame
	for e.Next(&f) == nil {
	}
	if !found {
		t.Fatalf("%s: no connection request", name)
	}
	return by
}

// TestExpiredTokens shifts the clock of real connections: one that the server took, two that it
// denied, and one that it ignored.
func TestExpiredTokens(t *testing.T) {
	const (
		taken   = "yojimbo-clean.server.pcap.gz"
		denied  = "yojimbo-denied-full.client.pcap.gz"
		ignored = "yojimbo-wrong-key.client.pcap.gz"
		told    = "31 connection requests over 3.9 s, and no answer"
	)
	behind := func(flow int, late string) string {
		return fmt.Sprintf("%d netcode-clock-behind b likely: 1 token, which had expired up to %s before; "+
			"the server's clock is behind by that or more", flow, late)
	}
	full := func(flow, ms int) string {
		return fmt.Sprintf("%d netcode-denied b certain: 1 connection denied, the slowest answer after %d ms", flow, ms)
	}
	expired := func(sure, late string) string {
		return fmt.Sprintf("1 netcode-token-expired a %s: the token expired %s before the first of 31 requests over 3.9 s, "+
			"by the capture's clock; a clock that is %s fast would explain it", sure, late, late)
	}
	for _, c := range []struct {
		name string
		ago  time.Duration // since when the token of the first request had expired
		want []string
	}{
		{taken, -10 * time.Second, nil},
		{taken, -time.Nanosecond, nil},
		{taken, 0, []string{behind(1, "0.0 s")}},
		{taken, 42 * time.Second, []string{behind(1, "42 s")}},
		{denied, -10 * time.Second, []string{full(2, 66), full(3, 67)}},
		{denied, 50 * time.Hour, []string{
			behind(1, "2 days"), full(2, 66), behind(2, "2 days"), full(3, 67), behind(3, "2 days"),
		}},
		{ignored, -2 * time.Hour, []string{"1 netcode-no-answer a certain: " + told}},
		{ignored, -10 * time.Second, []string{
			"1 netcode-no-answer a certain: " + told + "; the token was valid for another 10 s, by the capture's clock",
		}},
		{ignored, 500 * time.Millisecond, []string{
			"1 netcode-no-answer a certain: " + told, expired("possible", "0.5 s"), behind(2, "0.5 s"),
		}},
		{ignored, 42 * time.Second, []string{expired("likely", "42 s"), behind(2, "42 s")}},
	} {
		got := edit(t, c.name, shifted(expiry(t, c.name, c.ago))).findings()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %v after the expiry:\n%s\nexpected\n%s", c.name, c.ago, strings.Join(got, "\n"),
				strings.Join(c.want, "\n"))
		}
	}
}
