package tui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// at presses keys and checks which frame is then selected.
func at(t *testing.T, m *Model, keys, want string) {
	t.Helper()
	press(m, keys)
	screenOf(t, m, 160, 50)
	if got := m.SelectedFrame(); got != want {
		t.Fatalf("%q went to frame %s, expected %s: %s", keys, got, want, m.Note)
	}
}

// Jumps between packets agree with the listing of the same capture: frame 300
// acks 153 and 154 first, which frames 292 and 294 carried.
func TestJumps(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	screenOf(t, m, 160, 50)
	at(t, m, "<Enter>300G", "300")
	at(t, m, "a", "307")
	at(t, m, "<Ctrl-O>", "300")
	at(t, m, "5]", "305")
	at(t, m, "3[", "302")
	at(t, m, "10j", "312")
	at(t, m, "2k", "310")
	at(t, m, "42gg", "42")
	at(t, m, "ma1G'a", "42")
	at(t, m, "''", "1")
	at(t, m, ":300<Enter>", "300")
	// Searches: text of the rows, bytes, a regular expression; forwards and
	// backwards.
	at(t, m, "1G/seq 154 ack 154<Enter>", "300")
	at(t, m, "1G/0xdfbfe256158bac<Enter>", "300")
	at(t, m, "1G/~seq 15[45] ack 15[45]<Enter>", "300")
	at(t, m, "n", "302")
	at(t, m, "N", "300")
	press(m, "/~[<Enter>")
	if !m.Bad {
		t.Error("an expression that is none was searched")
	}
	// Run until a filter holds: for the packet, and for what a side knew then.
	at(t, m, "1Gbgaffer.sequence == 154 && flow.side == \"b\"<Enter>", "300")
	press(m, "1Gbflow.loss_a > 2%<Enter>")
	screenOf(t, m, 160, 50)
	n := m.Selected
	loss := func(n int) float64 {
		m.Store.Lock()
		defer m.Store.Unlock()
		w, err := m.Store.Walk(m.Store.Flows()[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		for at, ok := w.Peek(); ok && at <= n; at, ok = w.Peek() {
			w.Next()
		}
		return w.Tracker().Summary(machine.A).Loss
	}
	if n == 0 || loss(n) <= 0.02 || loss(n-1) > 0.02 {
		t.Errorf("stopped at %s, where A computes a loss of %v, before it %v: %s", m.SelectedFrame(), loss(n),
			loss(n-1), m.Note)
	}
	press(m, "Bgaffer.sequence == 1 && flow.side == \"a\"<Enter>")
	screenOf(t, m, 160, 50)
	if got := m.SelectedFrame(); got != "2" {
		t.Errorf("ran back to %s", got)
	}
}

// A jump from a resend goes to the first packet of the message.
func TestJumpToWhatIsResent(t *testing.T) {
	m := openModel(t, "u210_falseack.server.pcapng.gz")
	screenOf(t, m, 160, 50)
	at(t, m, "<Enter>2321G", "2321")
	at(t, m, "r", "2079")
	press(m, "o")
	if !m.Bad {
		t.Error("a packet without an ack led to one that it acked")
	}
}

// Messages are sorted by the longest wait, as the command lists them. A jump
// goes from the first to the message that held it back.
func TestTUIMessages(t *testing.T) {
	session(t)
	program, dir := testenv.Ackscope(t), t.TempDir()
	profile, path := filepath.Join(dir, "game.yaml"), filepath.Join(dir, "game.pcapng")
	if err := os.WriteFile(profile, []byte(gameProfile), 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Output(t, program, "simulate", "--profiles", profile, "--protocol", "gaffer:game", "--messages", "20",
		"--loss", "20%", "--delay", "40ms", "--duration", "4s", "--tap", "b", "-w", path)
	args := []string{"--profiles", profile, "-d", "udp.port==40000,gaffer:game", path}
	type message struct {
		Side      string
		ID        int64   `json:"message_id64"`
		Wait      float64 `json:"wait_ms"`
		BlockedBy *int64  `json:"blocked_by"`
		Frame     uint64
	}
	var list []message
	for d := json.NewDecoder(
		strings.NewReader(
			string(testenv.Output(t, program, append([]string{"messages", "--json"}, args...)...)))); d.More(); {
		var x message
		if err := d.Decode(&x); err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	worst := slices.MaxFunc(list, func(x, y message) int { return cmp.Compare(x.Wait, y.Wait) })
	if worst.Wait == 0 || worst.BlockedBy == nil {
		t.Fatal("no message of the simulation was held back")
	}
	x := newTerminal(t, "160", "50")
	x.run(program + " tui " + strings.Join(args, " "))
	x.see(`gaffer/game`)
	x.keys("Enter", "M", "s")
	x.see(fmt.Sprintf(`by wait(?s:.*)▶%d +%s→`, worst.Frame, worst.Side))
	x.see(fmt.Sprintf(`held back +%.1f ms by message %d`, worst.Wait, *worst.BlockedBy))
	x.see(`time to arrival by type(?s:.*)(Move|Chat|Inventory) +\d+ .*median .*worst`)
	x.keys("x")
	x.see(fmt.Sprintf(`%d was held back %.1f ms by %d`, worst.ID, worst.Wait, *worst.BlockedBy))
	x.see(fmt.Sprintf(`▶\d+ .* %d +\d`, *worst.BlockedBy))
	x.keys("Z", "Z")
}

const gameProfile = `protocol: gaffer
name: game
base: article
settings:
  messages:
    form: by-id
    types: 3
    max_per_packet: 32
    send_queue: 1024
    receive_queue: 256
  schema:
    messages:
      0:
        name: Move
        fields:
          - {name: x, type: int, min: -1000, max: 1000}
      1:
        name: Chat
        fields:
          - {name: text, type: string, max: 24}
      2:
        name: Inventory
        fields:
          - {name: items, type: array, min: 0, max: 8, item: {type: bits, bits: 10}}
`

// The autopsy of the view is that of the command.
func TestTUIAutopsy(t *testing.T) {
	session(t)
	program := testenv.Ackscope(t)
	path := testenv.Capture(t, "u210_timeout_kill.client.pcap.gz")
	first, _, _ := strings.Cut(string(testenv.Output(t, program, "autopsy", path)), "\n\n")
	lines := strings.Split(first, "\n")
	x := newTerminal(t, "160", "50")
	x.run(program + " tui " + path)
	x.see(`riptide/2\.1`)
	x.keys("Enter", "A")
	screen := x.see(`autopsy of flow 1(?s:.*)last heartbeat`)
	for _, line := range lines[:2] {
		if !strings.Contains(screen, strings.TrimSpace(line)) {
			t.Errorf("the autopsy does not show %q:\n%s", line, screen)
		}
	}
	x.keys("Z", "Z")
}
