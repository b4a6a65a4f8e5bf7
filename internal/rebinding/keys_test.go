package rebinding

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

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
	lines := bufio.NewScanner(bytes.NewReader(testenv.Unpacked(t, testenv.Capture(t, run+".truth.jsonl.gz"))))
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

// Without keys, a connect token that comes from another address is likely the same player's.
func TestToken(t *testing.T) {
	list := load(t, testenv.Capture(t, "yojimbo-clean.server.pcap.gz"))
	client, _ := busiest(list)
	to := moved(client, true)
	again := move(list, client, to, 1, false)
	after := list[len(list)-1].at - list[0].at + machine.Instant(time.Second)
	for i := range again {
		again[i].at += after
	}
	f := flowOf(analysed(t, plain, append(list, again...)), to)
	switch {
	case f == nil || f.Was == nil:
		t.Error("the client is not joined")
	case f.Was.Certainty != machine.Likely || f.Was.Addr != client:
		t.Errorf("joined as %+v", f.Was)
	}
}

// With the server's key, two players behind one address stay apart too. One falls silent, and
// the other one is seen for the first time, from its handshake on or in the middle of its game.
func TestPairsWithKeys(t *testing.T) {
	const run = "yojimbo-two-clients"
	protocol := withKeys(t, run)
	list := load(t, testenv.Capture(t, run+".server.pcap.gz"))
	first, _ := busiest(list)
	var players [2]game
	for i := range list {
		d := &list[i]
		player := &players[1]
		if d.src == first || d.dst == first {
			player = &players[0]
		} else if player.client = d.src; d.src.Port() == simulatedPort {
			player.client = d.dst
		}
		player.list = append(player.list, *d)
	}
	players[0].client = first
	chance := rand.New(rand.NewPCG(3, 4))
	joined, known := map[machine.Certainty]int{}, 0
	for pair := range testenv.Rounds(100, 1000, 1000) {
		one, two := &players[pair%2], &players[1-pair%2]
		left := 500*time.Millisecond + time.Duration(chance.Int64N(int64(time.Second)))
		seen := left + time.Duration(chance.Int64N(int64(100*time.Millisecond)))
		begun := seen // the handshake is seen
		if pair%4 >= 2 {
			begun = 0
		}
		both := append(one.played(30001, 0, 0, left), two.played(30002, begun, seen, seen+time.Second)...)
		for _, f := range analysed(t, protocol, both).Flows() {
			if f.Was != nil {
				joined[f.Was.Certainty]++
			}
			if f.Config().Dialect == gaffer.Yojimbo {
				known++
			}
		}
	}
	t.Logf("joined: %v; %d flows are yojimbo's", joined, known)
	if joined[machine.Certain] > 0 || joined[machine.Likely] > 0 || known == 0 {
		t.Errorf("joined: %v; %d flows are yojimbo's", joined, known)
	}
}
