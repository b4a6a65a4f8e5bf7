package machine

import (
	"bytes"
	"testing"
)

// What Send and Hand keep must stay unchanged until Reset, even when the caller
// overwrites its own buffer or sends more.
func TestEffectsHold(t *testing.T) {
	var e Effects
	buf := make([]byte, 700)
	for range 3 {
		for i := range 10 {
			for j := range buf {
				buf[j] = byte(i)
			}
			e.Send(Peer(i), SendDatagram, buf)
			e.Hand(Delivery{ID: uint64(i), Payload: buf})
		}
		for i := range 10 {
			want := bytes.Repeat([]byte{byte(i)}, len(buf))
			if !bytes.Equal(e.Transmit[i].Bytes, want) || !bytes.Equal(e.Deliver[i].Payload, want) {
				t.Fatalf("what was held as number %d has changed", i)
			}
			if e.Transmit[i].To != Peer(i) || e.Deliver[i].ID != uint64(i) {
				t.Fatalf("number %d went elsewhere", i)
			}
		}
		e.Reset()
		if len(e.Transmit) != 0 || len(e.Deliver) != 0 {
			t.Fatal("Reset left something")
		}
	}
	if n := testing.AllocsPerRun(100,
		func() { e.Reset(); e.Send(0, SendDatagram, buf); e.Hand(Delivery{Payload: buf}) }); n != 0 {
		t.Errorf("a warm Effects allocates %v times a step", n)
	}
}

func TestCommandKindWords(t *testing.T) {
	for k := Connect; k <= Cancel; k++ {
		if got, ok := ParseCommandKind(k.String()); !ok || got != k {
			t.Errorf("%v reads back as %v, %v", k, got, ok)
		}
	}
	if _, ok := ParseCommandKind("dance"); ok {
		t.Error("an unknown word was read")
	}
}
