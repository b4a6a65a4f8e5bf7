package connecting

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
)

// repeated is a capture in which some packets of a real one come again and again.
type repeated struct {
	frames []capture.Frame
	next   int
}

func (r *repeated) Next(f *capture.Frame) error {
	if r.next == len(r.frames) {
		return io.EOF
	}
	*f = r.frames[r.next]
	r.next++
	return nil
}

func (r *repeated) Close() error  { return nil }
func (r *repeated) Rewind() error { r.next = 0; return nil }

// again repeats the packets of a client's port, each time later and from another port.
func again(t *testing.T, name string, port uint16, times int, every time.Duration) *repeated {
	t.Helper()
	r := &repeated{}
	e := edit(t, name, func(_ *capture.Frame, p *capture.Packet) bool {
		return p.Transport == capture.UDP && (p.Src.Port() == port || p.Dst.Port() == port)
	})
	var one []capture.Frame
	for f := (capture.Frame{}); e.Next(&f) == nil; {
		f.Data = bytes.Clone(f.Data)
		one = append(one, f)
	}
	for i := range times {
		for _, f := range one {
			f.At = f.At.Add(time.Duration(i) * every)
			f.Data = bytes.Clone(f.Data)
			udp := 14 + 20
			if f.Data[12] == 0x86 { // IPv6
				udp = 14 + 40
			}
			for _, at := range []int{udp, udp + 2} {
				if binary.BigEndian.Uint16(f.Data[at:]) == port {
					binary.BigEndian.PutUint16(f.Data[at:], uint16(50000+i))
				}
			}
			r.frames = append(r.frames, f)
		}
	}
	return r
}

// TestReconnectLoops repeats real connections that ended soon: one finding tells of all.
func TestReconnectLoops(t *testing.T) {
	for _, c := range []struct {
		name  string
		port  uint16
		times int
		every time.Duration
		want  string
	}{
		{"yojimbo-denied-full.client.pcap.gz", 30001, 5, 10 * time.Second, "3 reconnect-loop a likely: 5 connections " +
			"within 40.0 s, none longer than 30 s; most of them ended with: denied"},
		{"yojimbo-wrong-key.client.pcap.gz", 30000, 4, 10 * time.Second, "3 reconnect-loop a likely: 4 connections " +
			"within 33.9 s, none longer than 30 s; most of them ended with: no answer"},
		{"yojimbo-server-kick.client.pcap.gz", 30000, 3, 40 * time.Second, "3 reconnect-loop a likely: 3 connections " +
			"within 85.8 s, none longer than 30 s; most of them ended with: disconnect"},
		{"u210_noserver.client.pcap.gz", 59027, 3, 10 * time.Second, "3 reconnect-loop a likely: 3 connections " +
			"within 24.0 s, none longer than 30 s; most of them ended with: no answer"},
		{"u21n_kick.client.pcap.gz", 59731, 3, 40 * time.Second, "3 reconnect-loop a likely: 3 connections " +
			"within 84.2 s, none longer than 30 s; most of them ended with: disconnect"},
		{"u21n_reject.client.pcap.gz", 48569, 3, 40 * time.Second, "3 reconnect-loop a likely: 3 connections " +
			"within 80.0 s, none longer than 30 s; most of them ended with: denied"},
		{"u210_noserver.client.pcap.gz", 59027, 3, 70 * time.Second, ""},
		{"u210_noserver.client.pcap.gz", 59027, 2, 10 * time.Second, ""},
		{"article-connect.client.pcap.gz", 60000, 3, 40 * time.Second, "3 reconnect-loop a likely: 3 connections " +
			"within 89.0 s, none longer than 30 s; most of them ended with: disconnect"},
	} {
		got := findings(t, again(t, c.name, c.port, c.times, c.every))
		got = slices.DeleteFunc(got, func(s string) bool { return !strings.Contains(s, "reconnect-loop") })
		if len(got) > 1 || strings.Join(got, "") != c.want {
			t.Errorf("%s, %d times: %q, expected %q", c.name, c.times, got, c.want)
		}
	}
}
