package gaffer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sentName identifies one datagram in the logs: the key it was encrypted with, its type
// and its number.
type sentName struct {
	key8     string
	kind     int
	sequence uint64
}

// TestDecryptEqualsLog: every datagram of a flow whose token opens is decrypted, to the
// very bytes that its sender logged before encryption. All that the endpoint at the tap
// logged as read is among them.
func TestDecryptEqualsLog(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		plain, read := map[sentName]string{}, map[string]map[sentName]bool{"client": {}, "server": {}}
		for _, l := range r.lines {
			n := sentName{l.Key8, l.Type, l.NcSeq}
			switch l.Event {
			case "netcode_tx":
				plain[n] = l.Plain
			case "netcode_rx":
				read[l.Endpoint][n] = true
			}
		}
		for _, at := range []string{"client", "server"} {
			t.Run(name+"."+at, func(t *testing.T) {
				keys, profile := r.keys(t), netcodeProfile(t)
				flows := map[int]*netcode.Decryptor{}
				var opened, closed, requests int
				for _, d := range r.tap(t, at) {
					var pk wire.Packet
					if err := profile.Parse(d.Bytes, d.Length, &pk); err != nil {
						t.Fatalf("frame %d: %v", d.Ref.Frame(), err)
					}
					dec := flows[d.flow]
					if dec == nil {
						dec = netcode.NewDecryptor(keys)
						flows[d.flow] = dec
					}
					if pk.NetcodeType == 0 {
						requests++
						err := dec.Request(&d.Datagram)
						if name == "yojimbo-wrong-key" && errors.Is(err, netcode.ErrWrongKey) {
							continue
						}
						if err != nil || dec.Session() == nil {
							t.Fatalf("frame %d: token: %v", d.Ref.Frame(), err)
						}
						continue
					}
					got, err := dec.Open(&d.Datagram, &pk)
					if err != nil {
						closed++
						t.Errorf("frame %d: %v", d.Ref.Frame(), err)
						continue
					}
					opened++
					tok := dec.Session().Token
					n := sentName{key8(tok.ServerToClient), int(pk.NetcodeType), pk.NetcodeSequence}
					if client, ok := dec.Client(); !ok {
						t.Fatal("the client's side is not known")
					} else if d.From == client {
						n.key8 = key8(tok.ClientToServer)
					}
					want, logged := plain[n]
					if !logged {
						t.Errorf("frame %d: %v was never logged as sent", d.Ref.Frame(), n)
					} else if h := hex.EncodeToString(got); h != want {
						t.Errorf("frame %d: %v decrypts to %s, logged as %s", d.Ref.Frame(), n, h, want)
					}
					delete(read[at], n)
				}
				if len(read[at]) != 0 {
					t.Errorf("%d datagrams that the %s logged as read were not opened: %s", len(read[at]), at, some(read[at]))
				}
				if opened == 0 || requests == 0 {
					t.Errorf("%d requests and %d datagrams opened", requests, opened)
				}
				t.Logf("%d requests, %d opened, %d closed", requests, opened, closed)
			})
		}
	}
}

func some(m map[sentName]bool) (s string) {
	for n := range m {
		if s += fmt.Sprint(n, " "); len(s) > 200 {
			break
		}
	}
	return s
}

// TestSessionKeys: session keys alone open a flow whose request was not captured,
// whichever side sends first. Wrong keys produce an error.
func TestSessionKeys(t *testing.T) {
	r := readYojimboRun(t, "yojimbo-clean")
	var keys [2]string
	for _, l := range r.lines {
		if l.Event == "netcode_key" {
			keys[map[string]int{"client_to_server": 0, "server_to_client": 1}[l.Direction]] = l.Key
		}
	}
	profile := netcodeProfile(t)
	file := func(a, b string) *netcode.Keys {
		k, err := readKeys(
			fmt.Sprintf(`{"sessions": [{"protocol_id": 4822678189205111, "client_to_server": %q, "server_to_client": %q}]}`, a,
				b))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	tap := r.tap(t, "client")
	for _, c := range []struct {
		name  string
		keys  *netcode.Keys
		first machine.Side
		err   error
	}{
		{"server first", file(keys[0], keys[1]), machine.B, nil},
		{"client first", file(keys[0], keys[1]), machine.A, nil},
		// the file's directions are wrong: both keys still open, with the sides swapped
		{"crossed", file(keys[1], keys[0]), machine.A, nil},
		{"wrong", file(keys[0][:62]+"00", keys[1][:62]+"00"), machine.A, netcode.ErrNoSession},
	} {
		dec := netcode.NewDecryptor(c.keys)
		n := 0
		for i := 50; i < len(tap); i++ {
			d := tap[i].Datagram
			if n == 0 && d.From != c.first {
				continue
			}
			var pk wire.Packet
			if err := profile.Parse(d.Bytes, d.Length, &pk); err != nil {
				t.Fatal(err)
			}
			_, err := dec.Open(&d, &pk)
			if !errors.Is(err, c.err) {
				t.Fatalf("%s: frame %d: %v, expected %v", c.name, d.Ref.Frame(), err, c.err)
			}
			n++
		}
		if client, ok := dec.Client(); c.err == nil && (!ok || client != machine.A && c.name != "crossed" || n < 1000) {
			t.Errorf("%s: client %v %v after %d datagrams", c.name, client, ok, n)
		}
	}
}

// TestDecryptRefuses: an altered datagram does not open, and a cut one has another
// error.
func TestDecryptRefuses(t *testing.T) {
	r := readYojimboRun(t, "yojimbo-clean")
	dec, profile := netcode.NewDecryptor(r.keys(t)), netcodeProfile(t)
	var pk wire.Packet
	for i, d := range r.tap(t, "client")[:40] {
		if err := profile.Parse(d.Bytes, d.Length, &pk); err != nil {
			t.Fatal(err)
		}
		if pk.NetcodeType == 0 {
			altered := d.Datagram
			altered.Bytes = append([]byte(nil), d.Bytes...)
			altered.Bytes[700] ^= 1
			if err := dec.Request(&altered); !errors.Is(err, netcode.ErrWrongKey) {
				t.Errorf("an altered request: %v", err)
			}
			altered.Bytes[700] ^= 1
			altered.Bytes[14] ^= 1
			if err := dec.Request(&altered); !errors.Is(err, netcode.ErrNoServerKey) {
				t.Errorf("a request of another protocol id: %v", err)
			}
			if err := dec.Request(&d.Datagram); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := dec.Open(&d.Datagram, &pk); err != nil {
			t.Fatalf("frame %d: %v", d.Ref.Frame(), err)
		}
		for _, at := range []int{pk.PayloadOffset, len(d.Bytes) - 1, 0} {
			altered := d.Datagram
			altered.Bytes = append([]byte(nil), d.Bytes...)
			altered.Bytes[at] ^= 1
			if _, err := dec.Open(&altered, &pk); !errors.Is(err, netcode.ErrForged) {
				t.Errorf("datagram %d altered in byte %d: %v", i, at, err)
			}
		}
		cut := d.Datagram
		cut.Bytes = cut.Bytes[:len(cut.Bytes)-1]
		if _, err := dec.Open(&cut, &pk); !errors.Is(err, netcode.ErrSnapped) {
			t.Errorf("datagram %d cut: %v", i, err)
		}
	}
}

func BenchmarkDecrypt(b *testing.B) {
	r := readYojimboRun(b, "yojimbo-clean")
	dec, profile := netcode.NewDecryptor(r.keys(b)), netcodeProfile(b)
	type one struct {
		machine.Datagram
		pk wire.Packet
	}
	var all []one
	bytes := 0
	for _, d := range r.tap(b, "client") {
		o := one{Datagram: d.Datagram}
		if err := profile.Parse(d.Bytes, d.Length, &o.pk); err != nil {
			b.Fatal(err)
		}
		if o.pk.NetcodeType == 0 {
			if err := dec.Request(&o.Datagram); err != nil {
				b.Fatal(err)
			}
			continue
		}
		bytes += d.Length
		all = append(all, o)
	}
	b.SetBytes(int64(bytes / len(all)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o := &all[i%len(all)]
		if _, err := dec.Open(&o.Datagram, &o.pk); err != nil {
			b.Fatal(err)
		}
	}
}
