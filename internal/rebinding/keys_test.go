package rebinding

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// withKeys returns the protocol with the private key of a recorded run.
func withKeys(t *testing.T, run string) *dissect.Protocol {
	t.Helper()
	f, err := os.Open(testenv.Capture(t, run+".truth.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Event      string `json:"event"`
			PrivateKey string `json:"private_key"`
			ProtocolID string `json:"protocol_id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Event != "config" || l.PrivateKey == "" {
			continue
		}
		var file netcode.KeyFile
		text := "servers: [{protocol_id: 0x" + l.ProtocolID + ", private_key: " + l.PrivateKey + "}]\n"
		if err := yamlfile.Read([]byte(text), "keys.yaml", &file); err != nil {
			t.Fatal(err)
		}
		keys, err := netcode.NewKeys(&file)
		if err != nil {
			t.Fatal(err)
		}
		return gaffer.WithKeys(nil, keys)
	}
	t.Fatalf("%s: the log has no key", run)
	return nil
}

// With the server's key, a netcode client that moves is joined at certain, and its packets are
// read at the new address too. The other client of the capture stays apart.
func TestKeys(t *testing.T) {
	for _, run := range []string{
		"yojimbo-clean", "yojimbo-testmsgs-loss10", "yojimbo-two-clients", "yojimbo-blocks-loss30",
	} {
		for _, tap := range []string{"client", "server"} {
			list := load(t, testenv.Capture(t, run+"."+tap+".pcap.gz"))
			client, sent := busiest(list)
			for _, deaf := range []bool{false, true} {
				to := moved(client, true)
				s := analysed(t, withKeys(t, run), move(list, client, to, sent/2, deaf))
				f := flowOf(s, to)
				switch {
				case f == nil || f.Was == nil:
					t.Errorf("%s at the %s, deaf %v: not joined", run, tap, deaf)
				case f.Was.Addr != client || f.Was.Certainty != machine.Certain || f.Config().Dialect != gaffer.Yojimbo:
					t.Errorf("%s at the %s, deaf %v: joined as %+v, read as %s", run, tap, deaf, f.Was, f.Config().Dialect)
				}
				for _, other := range s.Flows() {
					if other != f && other.Was != nil {
						t.Errorf("%s at the %s: flow %d is joined too", run, tap, other.ID)
					}
				}
			}
		}
	}
}
