package srdp

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/dissect"
	model "github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// FileSettings are the settings in a profile file.
type FileSettings struct {
	Form           string   `yaml:"form"`
	DataCommand    Octet    `yaml:"data_command"`
	AckCommand     Octet    `yaml:"ack_command"`
	ByteOrder      string   `yaml:"byte_order"`
	DontDuplicate  Octet    `yaml:"dont_duplicate"`
	Order          Octet    `yaml:"order"`
	MaxPayload     int      `yaml:"max_payload"`
	FramePrefix    int      `yaml:"frame_prefix"`
	FrameByteOrder string   `yaml:"frame_byte_order"`
	Recent         int      `yaml:"recent"`
	Remember       Period   `yaml:"remember"`
	Ports          []uint16 `yaml:"ports"`
}

// Period is a duration, in files as 30s or 250ms.
type Period time.Duration

// MarshalText returns "30s".
func (p Period) MarshalText() ([]byte, error) { return []byte(time.Duration(p).String()), nil }

// UnmarshalText parses what time.ParseDuration accepts.
func (p *Period) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("expected a time such as 30s or 250ms, found %q", text)
	}
	*p = Period(d)
	return nil
}

// Octet is one byte of the wire, in files as 0x53.
type Octet uint8

// MarshalText returns "0x53": 0x and two digits.
func (o Octet) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#02x", uint8(o)), nil }

// UnmarshalText parses a number from 0 to 255, decimal or with 0x.
func (o *Octet) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 0, 8)
	if err != nil {
		return fmt.Errorf("expected a byte such as 0x53, found %q", text)
	}
	*o = Octet(v)
	return nil
}

// settingDocs documents the settings of a profile file. The document of 1995
// does not state these values, or contradicts itself. Each value is ackscope's
// default.
var settingDocs = map[string]string{
	"form": "direct (command, id, flags, data) or proxied (command, id, source, destination, flags, data: " +
		"the document's proxies route by the addresses, its size section counts them)",
	"data_command": `command byte of data; the document says "TBD"`,
	"ack_command": "command byte of acknowledgements; the top bit of the id decides in any case, so it may be that " +
		"of data",
	"byte_order":     "of ids and ports: big or little; not stated in the document",
	"dont_duplicate": "bit of the flags that is SRDP_DONTDUPLICATE; not stated in the document",
	"order":          "bit of the flags that is SRDP_ORDER; not stated in the document",
	"max_payload": "most bytes of data; three numbers stand in the document: 548 for a call, 532 behind 16 bytes " +
		"of header, and so 544 behind 4. 0: 544 direct, 532 proxied",
	"frame_prefix": "bytes of the length before each packet of a TCP stream to a proxy: 2 or 4; the document has no " +
		"framing",
	"frame_byte_order": "of that length: big or little",
	"recent":           "how many ids of one source a receiver remembers, to know duplicates by",
	"remember":         "for how long it does: an id that comes again later is another packet's",
	"ports":            "a flow of one of these UDP ports is read so, with no evidence asked",
}

func fileSettings(s *Settings) *FileSettings {
	w := &s.Wire
	f := &FileSettings{
		Form: w.Form.String(), DataCommand: Octet(w.DataCommand), AckCommand: Octet(w.AckCommand),
		ByteOrder:     orderWord(w.LittleEndian),
		DontDuplicate: Octet(w.DontDuplicate), Order: Octet(w.Order), MaxPayload: s.MaxPayload,
		FramePrefix: w.FramePrefix, FrameByteOrder: orderWord(w.FrameLittleEndian), Recent: s.Rules.Recent,
		Remember: Period(s.Rules.Remember),
	}
	return f
}

func orderWord(little bool) string {
	if little {
		return "little"
	}
	return "big"
}

// newFileSettings returns the settings of a built-in profile to start from.
// Without a base it returns those of the direct form.
func newFileSettings(base string) (any, error) {
	if base == "" {
		f := fileSettings(usual)
		f.MaxPayload = 0 // the form decides, which the file may still change
		return f, nil
	}
	var names []string
	for _, p := range builtin() {
		if p.Name == base {
			return fileSettings(settingsOf(p.Config)), nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("expected one of %v, found %q", names, base)
}

// doneFileSettings checks the settings of a file and returns their Config.
func doneFileSettings(v any) (*dissect.Config, error) {
	f, ok := v.(*FileSettings)
	if !ok {
		return nil, fmt.Errorf("srdp: expected the settings that NewProfile gave, found %T", v)
	}
	s := &Settings{
		Wire: wire.Profile{
			DataCommand: uint8(f.DataCommand), AckCommand: uint8(f.AckCommand), DontDuplicate: uint8(f.DontDuplicate),
			Order:       uint8(f.Order),
			FramePrefix: f.FramePrefix,
		},
		MaxPayload: f.MaxPayload, Rules: model.Rules{Recent: f.Recent, Remember: time.Duration(f.Remember)},
	}
	if s.Wire.Form, ok = wire.ParseForm(f.Form); !ok {
		return nil, fmt.Errorf("form: expected %v or %v, found %q", wire.Direct, wire.Proxied, f.Form)
	}
	for _, o := range []struct {
		name, word string
		little     *bool
	}{
		{"byte_order", f.ByteOrder, &s.Wire.LittleEndian},
		{"frame_byte_order", f.FrameByteOrder, &s.Wire.FrameLittleEndian},
	} {
		if o.word != "big" && o.word != "little" {
			return nil, fmt.Errorf("%s: expected big or little, found %q", o.name, o.word)
		}
		*o.little = o.word == "little"
	}
	if err := s.Wire.Validate(); err != nil {
		return nil, err
	}
	switch {
	case f.MaxPayload < 0:
		return nil, fmt.Errorf("max_payload: expected 0 or more bytes, found %d", f.MaxPayload)
	case f.MaxPayload == 0:
		s.MaxPayload = s.Wire.MaxPayload()
	}
	if f.Recent < 0 || f.Recent > wire.AckMark {
		return nil, fmt.Errorf("recent: expected 0 to %d ids, found %d", wire.AckMark, f.Recent)
	}
	if f.Remember < 0 {
		return nil, fmt.Errorf("remember: expected a time such as 30s, found %v", time.Duration(f.Remember))
	}
	return &dissect.Config{Profile: s, Ports: f.Ports}, nil
}
