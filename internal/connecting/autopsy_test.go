package connecting

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
)

// refused turns the first datagrams that the server sent to another client into ICMP errors
// about the last request. The client of the request has port 30000.
func refused() change {
	var quote []byte
	left := 5
	return func(f *capture.Frame, p *capture.Packet) bool {
		const link, ip = 14, 20
		switch {
		case p.Src.Port() == 30000:
			quote = bytes.Clone(f.Data[link : link+ip+8+64])
		case p.Src.Port() == 40000 && quote != nil && left > 0:
			left--
			data := append(bytes.Clone(f.Data[:link+ip]), 3, 3, 0, 0, 0, 0, 0, 0) // port unreachable
			data = append(data, quote...)
			data[link+9] = 1 // ICMP
			binary.BigEndian.PutUint16(data[link+2:], uint16(len(data)-link))
			f.Data, f.Length = data, len(data)
		}
		return true
	}
}

// otherProtocol changes the protocol id that a client asks for.
func otherProtocol(f *capture.Frame, p *capture.Packet) bool {
	if p.Src.Port() == 30000 && len(p.Payload) == 1078 {
		f.Data = bytes.Clone(f.Data)
		f.Data[14+20+8+14] ^= 1
	}
	return true
}

func asCaptured(*capture.Frame, *capture.Packet) bool { return true }

// TestAutopsyOfAttempts: the autopsy of a connection that never came about names its cause.
func TestAutopsyOfAttempts(t *testing.T) {
	const (
		ignored = "yojimbo-wrong-key.client.pcap.gz"
		denied  = "yojimbo-denied-full.client.pcap.gz"
		riptide = "u210_noserver.client.pcap.gz"
	)
	alone := func(_ *capture.Frame, p *capture.Packet) bool { return p.Src.Port() == 30000 }
	for _, c := range []struct {
		name   string
		file   string
		change change
		ended  string
		want   []string // parts of the story
		absent string
	}{
		{"as captured", ignored, asCaptured, "unanswered", []string{
			"A (10.77.1.2:30000) asked 31 times in 3.95s and never had an answer, and the capture does not show why.",
			"another private key", "The server answered 1 other request.",
		}, "is down"},
		{"alone", ignored, alone, "unanswered", []string{"does not show why", "the server is down"}, "answered 1"},
		{
			"expired", ignored, both(shifted(expiry(t, ignored, 42*time.Second)), alone), "unanswered",
			[]string{"never had an answer: the token expired 42 s before", "(likely)"},
			"does not show why",
		},
		{
			"expired by a clock that the server has not", ignored, shifted(expiry(t, ignored, 42*time.Second)), "unanswered",
			[]string{"does not show why"},
			"had expired",
		},
		{
			"soon expired", ignored, both(shifted(expiry(t, ignored, -20*time.Second)), alone), "unanswered",
			[]string{"the server's clock is 20 s ahead"},
			"token expired",
		},
		{
			"soon expired, as another token that was taken", ignored, shifted(expiry(t, ignored, -20*time.Second)),
			"unanswered",
			[]string{"another private key"},
			"ahead",
		},
		{"another protocol id", ignored, otherProtocol, "unanswered", []string{
			": it asked for protocol id 0x11223344556676, and the server answers 0x11223344556677 (likely).",
		}, "Left"},
		{"refused", ignored, refused(), "unanswered", []string{
			`: the host of B refused its datagrams (5 ICMP errors, such as "port unreachable", certain).`,
		}, "Left"},
		{"denied", denied, asCaptured, "denied", []string{
			"B (10.77.1.1:40000) denied it in frame 43, 66ms after",
		}, "asked"},
		{"riptide", riptide, asCaptured, "unanswered", []string{
			"A (10.20.1.2:59027) asked and never had an answer.",
		}, "expired"},
	} {
		path := filepath.Join(t.TempDir(), "changed.pcapng.gz")
		write(t, path, edit(t, c.file, c.change))
		program := testenv.Ackscope(t)
		var got struct {
			Ended, Story string
		}
		first, _, _ := bytes.Cut(testenv.Output(t, program, "autopsy", "--json", path), []byte("\n"))
		if err := json.Unmarshal(first, &got); err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, first)
		}
		if got.Ended != c.ended || strings.Contains(got.Story, c.absent) {
			t.Errorf("%s: %s, %q, expected %s without %q", c.name, got.Ended, got.Story, c.ended, c.absent)
		}
		for _, part := range c.want {
			if !strings.Contains(got.Story, part) {
				t.Errorf("%s: %q, expected %q", c.name, got.Story, part)
			}
		}
		sentence := string(testenv.Output(t, program, "overview", "--json", path))
		if story, _, _ := strings.Cut(got.Story, ". "); !strings.Contains(sentence, `No connection came about: `+
			strings.ReplaceAll(strings.TrimSuffix(story, "."), `"`, `\"`)) {
			t.Errorf("%s: the overview does not say %q: %.400s", c.name, story, sentence)
		}
	}
}
