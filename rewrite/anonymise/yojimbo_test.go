package anonymise_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/rewrite/anonymise"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// keyed returns the options of an analysis with the private key of a run's
// server, from the log of the run.
func keyed(t *testing.T, name string) analyze.Options {
	t.Helper()
	f, err := os.Open(filepath.Join(pcaps, name+".truth.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var l struct {
			Event, Endpoint string
			PrivateKey      string `json:"private_key"`
			ProtocolID      string `json:"protocol_id"`
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.Event == "config" && l.Endpoint == "server" {
			var file netcode.KeyFile
			text := fmt.Sprintf("servers: [{protocol_id: '0x%s', private_key: '%s'}]", strings.TrimPrefix(l.ProtocolID, "0x"),
				l.PrivateKey)
			if err := yamlfile.Read([]byte(text), "keys.yaml", &file); err != nil {
				t.Fatal(err)
			}
			keys, err := netcode.NewKeys(&file)
			if err != nil {
				t.Fatal(err)
			}
			return analyze.Options{Registry: dissect.NewRegistry(gaffer.WithKeys(nil, keys), riptide.Protocol, srdp.Protocol)}
		}
	}
	t.Fatalf("%s: its log has no key", name)
	return analyze.Options{}
}

// said returns what applications said, according to the fields: bodies, blocks,
// texts.
func said(t *testing.T, o analyze.Options, src analyze.Rewinder) (list [][]byte) {
	t.Helper()
	var d dissect.Dissection
	o.Sink = func(r *analyze.Record) {
		if r.Flow == nil || r.Flow.Protocol == nil {
			return
		}
		d.Reset()
		r.Flow.Protocol.Dissect(dissect.Context{Config: r.Flow.Config(), From: r.Datagram.From}, &r.Datagram, &d)
		for i := range d.Fields {
			if x := &d.Fields[i]; x.Spec.Content == dissect.ContentData && x.Bits >= 64 {
				list = append(list, bytes.Clone(x.Bytes))
			}
		}
	}
	_, err := analyze.RunTwice(src, o)
	var cut *capture.CutError
	var damaged *capture.DamageError
	if err != nil && !errors.As(err, &cut) && !errors.As(err, &damaged) {
		t.Fatal(err)
	}
	return list
}

// TestYojimboWithoutSchema: yojimbo's messages are found in an anonymised
// capture as in the original, though no schema reads them. That includes bodies
// of counted bytes, blocks, fragmented packets and losses.
func TestYojimboWithoutSchema(t *testing.T) {
	names := []string{"yojimbo-packet-fragments"}
	if testenv.Required() {
		names = append(names, "yojimbo-blocks-loss30", "yojimbo-two-clients")
	}
	if os.Getenv("ACKSCOPE_SOAK") != "" {
		names = append(names, "yojimbo-testmsgs-loss10", "yojimbo-clean", "yojimbo-single-channel-type",
			"yojimbo-server-kick", "yojimbo-denied-full")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			o := keyed(t, name)
			in := open(t, filepath.Join(pcaps, name+".client.pcap.gz"))
			w, _ := runBy(t, o, in, anonymise.Options{Key: [32]byte{1}})
			rewound := func() *written {
				if err := in.Rewind(); err != nil {
					t.Fatal(err)
				}
				w.next = 0
				return w
			}
			rewound()
			want := reported(t, o, in)
			messages := 0
			for _, fact := range want {
				if len(fact) > 0 && fact[0] >= '1' && fact[0] <= '9' {
					messages++
				}
			}
			if messages < 200 {
				t.Errorf("%d facts of the original are no test of anything", messages)
			}
			got := reported(t, o, w)
			for i := range min(len(want), len(got)) {
				// Where no schema reads the bodies, what follows them in a packet is doubted.
				if doubted := strings.Replace(want[i], "certain", "likely", 1); doubted == got[i] {
					want[i] = doubted
				}
			}
			alike(t, want, got)
			rewound()
			was, is := said(t, o, in), said(t, o, w)
			if len(was) == 0 || len(was) != len(is) {
				t.Fatalf("%d fields of what was said, of the original %d", len(is), len(was))
			}
			same := 0
			for i := range was {
				if len(was[i]) != len(is[i]) || bytes.Equal(was[i], is[i]) {
					same++
				}
			}
			if same > 0 {
				t.Errorf("of %d fields of what was said %d are what they were, or have another length", len(was), same)
			}
		})
	}
}
