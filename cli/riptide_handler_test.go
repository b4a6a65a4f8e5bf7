package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
)

// objects runs a command of the program, and returns its lines of JSON.
func objects(t *testing.T, args ...string) (list []map[string]any) {
	t.Helper()
	var out, trouble bytes.Buffer
	if code := runKnown(args, app.Streams{Out: &out, Err: &trouble}); code > 1 {
		t.Fatalf("%v: exit %d: %s", args, code, trouble.String())
	}
	return objectsOf(t, out.String())
}

func objectsOf(t *testing.T, text string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		list = append(list, o)
	}
	return list
}

// TestConnectionHandler runs servers whose application decides on each of five clients. It accepts two, for which the
// server has one slot. It refuses two, and never decides on one. The events of the capture must be what the endpoints
// reported to their applications, at either end of the path. No side diverges.
func TestConnectionHandler(t *testing.T) {
	for _, protocol := range []string{
		"notes", "notes-be", "notes:tcp", "2.0", "2.1-dev-d", "2.1-dev-n", "2.1.0", "2.2.1", "2.2.1:tcp",
	} {
		t.Run(protocol, func(t *testing.T) {
			for _, tap := range []string{"a", "b"} {
				holdHandler(t, protocol, tap)
			}
		})
	}
}

func holdHandler(t *testing.T, protocol, tap string) {
	t.Helper()
	dir := t.TempDir()
	path, log := filepath.Join(dir, "run.pcapng"), filepath.Join(dir, "run.jsonl")
	args := []string{
		"simulate", "-q", "--protocol", "riptide:" + protocol, "--clients", "5", "--slots", "1",
		"--decide", "accept,reject:not on the list,reject,never,accept", "--decide-after", "1500ms", "--hello", "alice",
		"--duration", "3s", "--messages", "1", "--end", "none", "--tap", tap, "-w", path, "--truth", log,
	}
	var trouble bytes.Buffer
	if code := runKnown(args, app.Streams{Out: &trouble, Err: &trouble}); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, trouble.String())
	}
	truth, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{} // what a client's application was told, by its address
	ports, asked, refused := map[any]string{}, 0, 0
	for _, o := range objectsOf(t, string(truth)) {
		host, _ := o["endpoint"].(string)
		switch o["event"] {
		case "local_endpoint":
			for n := range 5 {
				if at := simulate.AddrOf(n); float64(at.Port()) == o["local_port"] {
					ports[host] = at.String()
				}
			}
		case "connect_attempt":
			asked++
			if values, _ := json.Marshal(o["connect_values"]); string(values) != `[{"type":"string","value":"alice"}]` {
				t.Errorf("the server's application got %s with a Connect", values)
			}
		case "connected":
			if host != "server" {
				told[ports[host]] = "connected"
			}
		case "connection_failed":
			if host != "server" {
				told[ports[host]] = o["reason"].(string)
			}
			if values, _ := json.Marshal(o["reject_values"]); o["reason"] == "Custom" {
				refused++
				if string(values) != `[{"type":"string","value":"not on the list"}]` {
					t.Errorf("the client's application got %s with a Reject", values)
				}
			}
		}
	}
	var outcomes []string
	for _, x := range told {
		outcomes = append(outcomes, x)
	}
	slices.Sort(outcomes)
	if want := []string{"Custom", "Rejected", "ServerFull", "connected"}; !slices.Equal(outcomes, want) || asked != 5 ||
		refused != 1 {
		t.Fatalf("the applications were told %v, asked %d times; expected %v, asked 5 times", outcomes, asked, want)
	}

	version := strings.TrimSuffix(protocol, ":tcp")
	transport := "udp"
	if version != protocol {
		transport = "tcp"
	}
	read := []string{"--vantage", tap, "-d", transport + ".port==40000,riptide:" + version, path}
	found, pending := map[string]string{}, map[string]bool{}
	for _, o := range objects(t, append([]string{"events", "--json"}, read...)...) {
		client := o["addr"].(string)
		switch o["event"] {
		case "connection_pending":
			pending[o["peer"].(string)] = true
		case "connected":
			if client != simulate.Addrs[1].String() {
				found[client] = "connected"
			}
		case "connection_failed":
			found[client] = o["note"].(string)
		}
	}
	for client, want := range told {
		if found[client] != want {
			t.Errorf("tap %s: %s: events have %q, its application was told %q", tap, client, found[client], want)
		}
	}
	if len(found) != len(told) || len(pending) != 5 {
		t.Errorf("tap %s: events tell of %v, and that %d clients waited; expected %v and 5", tap, found, len(pending), told)
	}
	if protocol == "notes" {
		for _, o := range objects(t, "flows", "--json", path) {
			if o["dialect"] != "notes" {
				t.Errorf("tap %s: flow %v is found to be %v, expected notes", tap, o["flow"], o["dialect"])
			}
		}
	}
	if transport == "udp" { // a stream of so few messages is cut into messages only at its end
		holdStates(t, tap, read)
	}
	for _, o := range objects(t, append([]string{"replay", "--json", "-q"}, read...)...) {
		if o["verdict"] == "diverges" {
			t.Errorf("tap %s: side %s diverges: %v at frame %v", tap, o["addr"], o["rule"], o["first_frame"])
		}
	}
}

// holdStates checks that the states of five clients show what the server's application decided on each.
func holdStates(t *testing.T, tap string, read []string) {
	t.Helper()
	shown := map[string]int{}
	for _, flow := range []string{"1", "2", "3", "4", "5"} {
		var out, trouble bytes.Buffer
		if code := runKnown(append([]string{"state", "--flow", flow}, read...),
			app.Streams{Out: &out, Err: &trouble}); code != 0 {
			t.Fatalf("exit %d: %s", code, trouble.String())
		}
		for _, word := range []string{"Custom", "Rejected", "ServerFull", "pending: the server's", " connected\n"} {
			if strings.Contains(out.String(), word) {
				shown[word]++
			}
		}
	}
	for word, n := range shown {
		if n != 1 {
			t.Errorf("tap %s: %d states show %q, expected 1", tap, n, word)
		}
	}
	if len(shown) != 5 {
		t.Errorf("tap %s: the states show %v, expected five kinds", tap, shown)
	}
}

// TestVarLongs reads values of variable length from captures, and compares them with those that the applications
// submitted. It does so in each dialect that has them, and in both byte orders.
func TestVarLongs(t *testing.T) {
	for _, protocol := range []string{"notes", "notes-be", "2.1.0", "2.2.1", "notes:tcp", "notes-be:tcp"} {
		dir := t.TempDir()
		path, log, body := filepath.Join(dir, "run.pcapng"), filepath.Join(dir, "run.jsonl"), filepath.Join(dir, "long.yaml")
		if err := os.WriteFile(body, []byte("messages:\n  1: {name: score, fields: [{name: gain, type: varlong}, "+
			"{name: flag, type: bool}, {name: total, type: varulong}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{
			"simulate", "-q", "--protocol", "riptide:" + protocol, "--schema", body, "--duration", "5s",
			"--mix", "100/0/0", "--loss", "10%", "-w", path, "--truth", log,
		}
		var trouble bytes.Buffer
		if code := runKnown(args, app.Streams{Out: &trouble, Err: &trouble}); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, trouble.String())
		}
		truth, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		submitted := map[string]string{} // by the sender's role and the sequence
		for _, o := range objectsOf(t, string(truth)) {
			if o["event"] != "send" {
				continue
			}
			var values []any
			for _, v := range o["values"].([]any) {
				values = append(values, v.(map[string]any)["value"])
			}
			text, _ := json.Marshal(values)
			submitted[fmt.Sprint(o["endpoint"] == "server", o["seq"])] = string(text)
		}
		read := 0
		for _, o := range objects(t, "messages", "--json", "--schema", body, path) {
			if o["mode"] != "reliable" || o["name"] != "score" {
				continue
			}
			read++
			text, _ := json.Marshal(o["values"])
			key := fmt.Sprint(o["from"] == simulate.Addrs[1].String(), o["sequence"])
			if submitted[key] != string(text) {
				t.Errorf("%s: message %s: read %s, submitted %s", protocol, key, text, submitted[key])
			}
		}
		if read < len(submitted)*9/10 || read < 100 {
			t.Errorf("%s: %d messages read, %d submitted", protocol, read, len(submitted))
		}
	}
}
