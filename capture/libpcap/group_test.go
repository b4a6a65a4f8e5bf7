//go:build libpcap && cgo

package libpcap

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/internal/testnet"
)

// TestLoopback reads what a socket of ours sends, with a filter and with idle
// moments, and ends with Stop.
func TestLoopback(t *testing.T) {
	if !testnet.Namespaced(t) {
		return
	}
	idle := 0
	g, err := OpenGroup([]afpacket.Options{
		{Interface: "lo", Filter: "udp port 7777", Idle: func() { idle++ }},
		{Interface: "veth0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const n = 20
	for port, text := range map[int]string{7778: "of no interest", 7777: "game"} {
		address := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
		from, err := net.ListenUDP("udp", address) // to itself
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = from.Close() }()
		for range n {
			if _, err := from.WriteToUDP([]byte(text), address); err != nil {
				t.Fatal(err)
			}
		}
	}
	guard := time.AfterFunc(20*time.Second, g.Stop)
	defer guard.Stop()
	d := capture.NewDecoder(capture.DecodeOptions{})
	var f capture.Frame
	var p capture.Packet
	for seen := 0; seen < n; {
		if err := g.Next(&f); err != nil {
			t.Fatalf("%v, with %d datagrams still to come", err, n-seen)
		}
		if d.Decode(&f, &p); p.Transport != capture.UDP || p.Dst.Port() != 7777 || !bytes.Equal(p.Payload, []byte("game")) ||
			f.Interface != 0 {
			t.Errorf("frame %d of interface %d: %v to %v, %q", f.Ref.Frame(), f.Interface, p.Src, p.Dst, p.Payload)
		}
		seen++
	}
	g.Stop()
	if err := g.Next(&f); !errors.Is(err, io.EOF) {
		t.Errorf("after Stop: %v, expected io.EOF", err)
	}
	st, err := g.Statistics()
	if err != nil || len(st) != 2 || st[0].FilterAccepted < n || st[0].OSDropped != 0 {
		t.Errorf("statistics %+v, %v; expected %d packets at least", st, err, n)
	}
	if in := g.Interfaces(); in[0].Name != "lo" || in[0].LinkType != capture.LinkEthernet {
		t.Errorf("interfaces %+v", in)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Next(&f); !errors.Is(err, io.EOF) {
		t.Errorf("after Close: %v, expected io.EOF", err)
	}
}

func TestAllOrNone(t *testing.T) {
	if _, err := OpenGroup([]afpacket.Options{{Interface: "nosuch0"}}); err == nil {
		t.Error("an interface that is not there was opened")
	}
}
