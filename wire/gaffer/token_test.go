package gaffer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/wire"
)

// TestTokenLayout lays out a token by hand, without the codec's constants.
func TestTokenLayout(t *testing.T) {
	var b []byte
	hexed := func(s string) {
		x, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, x...)
	}
	hexed("691e060000000000") // client 401001
	hexed("0a000000")         // 10 s
	hexed("02000000")
	hexed("01 0a4d0101 409c")                                // 10.77.1.1:40000
	hexed("02 77fd 0100 0000 0000 0000 0000 0000 0100 419c") // [fd77:1::1]:40001
	b = append(b, bytes.Repeat([]byte{0xc5}, 32)...)
	b = append(b, bytes.Repeat([]byte{0x5c}, 32)...)
	b = append(b, bytes.Repeat([]byte{0xda}, 256)...)
	b = append(b, make([]byte, 1008-len(b))...)
	got, err := ParseToken(b)
	if err != nil {
		t.Fatal(err)
	}
	want := &Token{ClientID: 401001, Timeout: 10, Servers: []netip.AddrPort{
		netip.MustParseAddrPort("10.77.1.1:40000"), netip.MustParseAddrPort("[fd77:1::1]:40001"),
	}}
	for i := range want.ClientToServer {
		want.ClientToServer[i], want.ServerToClient[i] = 0xc5, 0x5c
	}
	for i := range want.UserData {
		want.UserData[i] = 0xda
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("read %v, expected %v, or keys and user data differ", got, want)
	}
	if back := got.AppendToken([]byte{7}); !bytes.Equal(back[1:], b) || back[0] != 7 {
		t.Error("appending what was read gives other bytes")
	}
}

// TestTokenKeepsKeys: no format of a token may show a key.
func TestTokenKeepsKeys(t *testing.T) {
	var tok Token
	for i := range tok.ClientToServer {
		tok.ClientToServer[i], tok.ServerToClient[i] = 0xc5, 0xc5
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, v := range []any{tok, &tok} {
			s := fmt.Sprintf(format, v)
			if strings.Contains(strings.ToLower(s), "c5") || strings.Contains(s, "197") ||
				!strings.Contains(s, "token of client") {
				t.Errorf("%s of %T gives %s", format, v, s)
			}
		}
	}
}

func TestConnectRequest(t *testing.T) {
	q := NetcodeRequest{
		ProtocolID: 0x11223344556677, Expire: 1795237000, Nonce: bytes.Repeat([]byte{1}, 24),
		Token: bytes.Repeat([]byte{2}, 1024),
	}
	b := q.Append(nil)
	if len(b) != 1078 || !bytes.HasPrefix(b, []byte("\x00NETCODE 1.02\x00\x77\x66\x55\x44\x33\x22\x11\x00")) {
		t.Fatalf("%d bytes that begin with % x", len(b), b[:22])
	}
	got, err := ParseNetcodeRequest(b)
	if err != nil || !reflect.DeepEqual(got, q) {
		t.Fatalf("reads back as %+v, %v", got, err)
	}
	if data := got.AppendTokenData(nil); !bytes.Equal(data, b[1:30]) {
		t.Errorf("associated data is % x, expected bytes 1 to 29 of the request", data)
	}
	for n := range b {
		if _, err := ParseNetcodeRequest(b[:n]); err == nil {
			t.Fatalf("the first %d bytes are taken for a request", n)
		}
	}
	b[5]++
	if _, err := ParseNetcodeRequest(b); err == nil {
		t.Error("another version is taken for 1.02")
	}
}

func FuzzToken(f *testing.F) {
	f.Add((&Token{Servers: []netip.AddrPort{netip.MustParseAddrPort("1.2.3.4:5")}}).AppendToken(nil))
	full := &Token{}
	for range MaxTokenServers {
		full.Servers = append(full.Servers, netip.MustParseAddrPort("[2001:db8::1]:5"))
	}
	f.Add(full.AppendToken(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := ParseToken(b)
		if err != nil {
			var p *wire.ParseError
			if !errors.As(err, &p) {
				t.Fatalf("error %v is no ParseError", err)
			}
			return
		}
		again, err := ParseToken(tok.AppendToken(nil))
		if err != nil || !reflect.DeepEqual(again, tok) {
			t.Fatalf("%v reads back as %v, %v", tok, again, err)
		}
	})
}
