package gaffer_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema/yamlfile"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

var registry = dissect.NewRegistry(gaffer.Protocol)

func read(t testing.TB, text string) *dissect.Config {
	t.Helper()
	profiles, err := yamlfile.Profiles([]byte(text), "test.yaml", registry)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(profiles) != 1 || profiles[0].Protocol != "gaffer" {
		t.Fatalf("read %+v", profiles)
	}
	return profiles[0].Config
}

func TestProfileErrors(t *testing.T) {
	const head = "protocol: gaffer\nname: x\n"
	for name, c := range map[string]struct{ text, want, line string }{
		"unknown setting":  {head + "settings:\n  byte_ordre: big\n", "byte_ordre", "line 4: "},
		"unknown word":     {head + "settings:\n  byte_order: middle\n", "expected one of little, big", ""},
		"unknown base":     {head + "base: articles\n", "base: expected one of", ""},
		"unknown protocol": {"protocol: gafer\nname: x\n", "expected one of gaffer", ""},
		"no name":          {"protocol: gaffer\n", "line 1: name: is missing", ""},
		"bad header": {
			head + "settings:\n  header: [{field: sequence, bits: 12}]\n",
			"sequence is 12 bits wide", "",
		},
		"schema type": {head + "settings:\n  schema:\n    messages:\n      0:\n        fields:\n          - {name: " +
			"a, type: nonsense}\n", `unknown type "nonsense"`, "line 8: "},
		"schema beyond": {head + "settings:\n  messages: {form: by-id, types: 1, max_per_packet: 4}\n  schema: " +
			"{messages: {1: {fields: [{name: a, type: bool}]}}}\n", "schema.messages.1", ""},
		"two of a name":       {head + "---\n" + head, "two profiles", ""},
		"nothing":             {"", "holds no profile", ""},
		"a list":              {"- 1\n", "", "line 1: "},
		"unknown top key":     {head + "setings: {}\n", "setings", "line 3: "},
		"number for a word":   {head + "settings:\n  form: 3\n", "expected one of fixed", ""},
		"text for a number":   {head + "settings:\n  slices: many\n", "", "line 4: "},
		"window out of range": {head + "settings:\n  receive_window: 70000\n", "receive_window", ""},
	} {
		_, err := yamlfile.Profiles([]byte(c.text), "x.yaml", registry)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if s := err.Error(); !strings.HasPrefix(s, "x.yaml: ") || !strings.Contains(s, c.want) ||
			!strings.Contains(s, c.line) {
			t.Errorf("%s: %s", name, s)
		}
	}
}

const game = `
protocol: gaffer
name: mygame
base: article
settings:
  byte_order: big
  messages: {form: by-id, types: 3, max_per_packet: 8, receive_queue: 256}
  schema:
    messages:
      0:
        name: Move
        fields:
          - {name: x, type: int, min: -100, max: 100}
          - {name: jump, type: bool}
          - {name: height, type: bits, bits: 5, if: jump}
      2: {name: Chat, fields: [{name: text, type: string, max: 63}]}
`

// TestMessagesAreDissected lays out the bits of a packet with two messages by hand.
func TestMessagesAreDissected(t *testing.T) {
	config := read(t, game)
	payload := ""
	bit := func(v uint64, n int) {
		for i := range n {
			payload += fmt.Sprint(v >> i & 1)
		}
	}
	bit(2, 4)               // count, 0 to 8
	bit(700, 16)            // id
	bit(0, 2)               // Move
	bit(uint64(-40+100), 8) // x, 0 to 200
	bit(1, 1)
	bit(17, 5)
	bit(701, 16)
	bit(2, 2) // Chat
	bit(2, 6) // length, 0 to 63
	for len(payload)%8 != 0 {
		bit(0, 1)
	}
	bit('h', 8)
	bit('i', 8)
	datagram := []byte{0x01, 0x2c, 0x01, 0x26, 0xb5, 0xee, 0xe7, 0xf1}
	for i := 0; i < len(payload); i += 8 {
		var b byte
		for k := range 8 {
			b |= (payload[i+k] - '0') << k
		}
		datagram = append(datagram, b)
	}
	datagram = append(datagram, 0xde, 0xad) // the packet's own

	var d dissect.Dissection
	dg := &machine.Datagram{Bytes: datagram, Length: len(datagram)}
	gaffer.Protocol.Dissect(dissect.Context{Config: config}, dg, &d)
	if d.Problem != nil {
		t.Fatal(d.Problem)
	}
	var got []string
	for _, f := range d.Fields {
		if strings.HasPrefix(f.Spec.Name, "gaffer.message") || f.Spec.Name == "gaffer.payload" {
			got = append(got, fmt.Sprintf("%s @%d+%d %d %s%s", f.Spec.Name, f.Bit, f.Bits, int64(f.Uint), f.Bytes, f.Note))
		}
	}
	want := []string{
		"gaffer.message.count @64+4 2 ",
		"gaffer.message @68+32 0 Move",
		"gaffer.message.id @68+16 700 ",
		"gaffer.message.type @84+2 0 ",
		"gaffer.message.Move @86+14 0 ",
		"gaffer.message.Move.x @86+8 -40 ",
		"gaffer.message.Move.jump @94+1 1 ",
		"gaffer.message.Move.height @95+5 17 ",
		"gaffer.message @100+44 0 Chat",
		"gaffer.message.id @100+16 701 ",
		"gaffer.message.type @116+2 2 ",
		"gaffer.message.Chat @118+26 0 ",
		"gaffer.message.Chat.text @118+26 0 hi",
		"gaffer.payload @144+16 0 \xde\xad",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	// The article requires that a type out of range makes the packet malformed.
	bad := append([]byte{}, datagram...)
	bad[10] |= 3 << 4 // type at bit 84
	d.Reset()
	gaffer.Protocol.Dissect(dissect.Context{Config: config}, &machine.Datagram{Bytes: bad, Length: len(bad)}, &d)
	if d.Problem == nil || !strings.Contains(d.Problem.Error(), "message.type") {
		t.Errorf("type 3 of 3: %v", d.Problem)
	}
}

// TestUserProfileIsFound: a user's profile is tried on flows like a built-in one.
func TestUserProfileIsFound(t *testing.T) {
	profiles, err := yamlfile.Profiles([]byte("protocol: gaffer\nname: odd\nbase: article\nsettings:\n"+
		"  header: [{field: ack_bits, bits: 64}, {field: ack, bits: 32}, {field: sequence, bits: 32}]\n"+
		"  prefix: [zero]\n"), "odd.yaml", registry)
	if err != nil {
		t.Fatal(err)
	}
	protocol := gaffer.WithProfiles([]dissect.Profile{profiles[0].Profile})
	p := profiles[0].Config.Profile.(*wire.Profile)
	c := protocol.Classify()
	for i := range uint32(40) {
		// Both sides have received all but every seventh packet.
		h := wire.Header{Sequence: 1<<20 + i/2, Ack: 1<<20 + (i-1)/2}
		if i == 0 {
			h = wire.Header{Sequence: 1 << 20, Ack: p.Space().Mask()}
		}
		for n := range uint32(64) {
			if at := h.Ack - n; i > 0 && at >= 1<<20 && (n == 0 || at%7 != 0) {
				h.AckBits |= 1 << n
			}
		}
		b := p.Append(nil, &wire.Packet{Header: h, Sequence: h.Sequence}, []byte("some payload"))
		c.Feed(&machine.Datagram{From: machine.Side(i % 2), Bytes: b, Length: len(b)})
	}
	if v := c.Verdict(); v.Config == nil || v.Config.Dialect != "odd" {
		t.Errorf("taken for %+v", v)
	}

	// A profile that differs from a built-in one only in its windows replaces it, with the
	// same confidence.
	if _, err := yamlfile.Profiles([]byte("protocol: gaffer\nname: mine\nbase: odd\n"), "odd.yaml",
		dissect.NewRegistry(protocol)); err == nil {
		t.Error("a user's profile serves as a base")
	}
	alike, err := yamlfile.Profiles(
		[]byte("protocol: gaffer\nname: mine\nbase: article\nsettings: {receive_window: 256, ports: [7777]}\n"),
		"mine.yaml", registry)
	if err != nil {
		t.Fatal(err)
	}
	if ports := alike[0].Config.Ports; len(ports) != 1 || ports[0] != 7777 {
		t.Errorf("ports %v", ports)
	}
	p, _, err = wire.Builtin(wire.Article)
	if err != nil {
		t.Fatal(err)
	}
	c = gaffer.WithProfiles([]dissect.Profile{alike[0].Profile}).Classify()
	for i := range uint32(12) {
		h := wire.Header{Sequence: 900 + i/2, Ack: 900 + (i-1)/2, AckBits: 0xffffffff}
		b := p.Append(nil, &wire.Packet{Header: h, Sequence: h.Sequence}, []byte("some payload"))
		c.Feed(&machine.Datagram{From: machine.Side(i % 2), Bytes: b, Length: len(b)})
	}
	if v := c.Verdict(); v.Config == nil || v.Config.Dialect != "mine" || !v.Settled || !c.Sure() {
		t.Errorf("taken for %+v", v)
	}
	if len(protocol.Profiles) != len(gaffer.Protocol.Profiles)+1 {
		t.Error("the profile is not listed")
	}
}

func FuzzProfiles(f *testing.F) {
	f.Add([]byte(game))
	for _, name := range wire.BuiltinNames() {
		f.Add([]byte("protocol: gaffer\nname: x\nbase: " + name +
			"\nsettings: {prefix: [zero], ack_base: ack-n-1, ports: [7777]}\n"))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		profiles, err := yamlfile.Profiles(src, "x", registry)
		if err != nil {
			return
		}
		dg := &machine.Datagram{Bytes: src, Length: len(src)}
		var d dissect.Dissection
		for _, p := range profiles {
			d.Reset()
			gaffer.Protocol.Dissect(dissect.Context{Config: p.Config}, dg, &d)
			gaffer.Protocol.Info(dissect.Context{Config: p.Config}, dg, nil)
		}
	})
}
