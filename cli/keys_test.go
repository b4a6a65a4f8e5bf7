package cli

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/internal/testenv"
)

// secretsOf returns the keys of a recorded run: the server's private key, from
// the config line of its log, and every session key.
func secretsOf(t *testing.T, run string) (private, protocolID string, all []string) {
	t.Helper()
	scan := bufio.NewScanner(bytes.NewReader(testenv.Unpacked(t, testenv.Capture(t, run+".truth.jsonl.gz"))))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l struct {
			Event      string `json:"event"`
			Endpoint   string `json:"endpoint"`
			Key        string `json:"key"`
			PrivateKey string `json:"private_key"`
			ProtocolID string `json:"protocol_id"`
		}
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Event == "config" && l.Endpoint == "server":
			private, protocolID = l.PrivateKey, l.ProtocolID
			all = append(all, l.PrivateKey)
		case l.Event == "netcode_key" && l.Endpoint == "client":
			all = append(all, l.Key) // server to client, then client to server
		}
	}
	if private == "" || len(all) < 3 {
		t.Fatalf("%s: the log has %d keys", run, len(all))
	}
	return private, protocolID, all
}

// keyFile writes a key file.
func keyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ackscope runs a command line in this process.
func ackscope(args ...string) (code int, out, complaint string) {
	var o, e bytes.Buffer
	code = runKnown(args, app.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// shapes returns the forms in which a key could be printed. Eight bytes are
// enough to find it.
func shapes(t *testing.T, key string) (out []string) {
	t.Helper()
	b, err := hex.DecodeString(key)
	if err != nil || len(b) != 32 {
		t.Fatalf("a key of the log: %v", err)
	}
	for at := 0; at+8 <= len(b); at += 8 {
		part := b[at : at+8]
		spaced := fmt.Sprintf("% x", part)
		out = append(out, hex.EncodeToString(part), spaced, strings.ReplaceAll(spaced, " ", ":"), string(part),
			strings.Trim(fmt.Sprint(part), "[]"), strings.ReplaceAll(strings.Trim(fmt.Sprint(part), "[]"), " ", ","))
	}
	for shift := range 3 { // the key's position within a text in base64
		text := base64.StdEncoding.EncodeToString(b[shift:])
		out = append(out, text[:len(text)/2])
	}
	return out
}

// No output and no error of any command shows a key, in any form, although
// every command got the keys and used them.
func TestNoKeyInAnyOutput(t *testing.T) {
	const run = "yojimbo-wrong-key" // its private key is not all zeros
	private, id, secrets := secretsOf(t, run)
	capture := testenv.Capture(t, run+".client.pcap.gz")
	server := keyFile(t, "servers: [{protocol_id: 0x"+id+", private_key: "+private+"}]\n")
	session := keyFile(t, fmt.Sprintf("sessions: [{protocol_id: 0x%s, client_to_server: %s, server_to_client: %s}]\n", id,
		secrets[2], secrets[1]))
	odd := keyFile(t, "servers: [{protocol_id: 0x"+id+", private_key: "+private+", more: "+private+"}]\n")
	short := keyFile(t, "servers: [{protocol_id: 0x"+id+", private_key: "+private[1:]+"}]\n")
	twice := keyFile(t, "servers:\n  - private_key: "+private+"\n    private_key: "+private+"\n")
	broken := keyFile(t, "servers: [{protocol_id: 0x"+id+", private_key: "+private)
	saved := filepath.Join(t.TempDir(), "saved.pcapng")

	opened := 0
	for _, c := range [][]string{
		{"flows", "--keys", server, capture},
		{"flows", "--json", "--keys", server, capture},
		{"flows", "--json", "--keys", session, capture},
		{"packets", "--keys", server, capture},
		{"packets", "-V", "-x", "--keys", server, capture},
		{"packets", "--json", "--keys", server, capture},
		{"packets", "-V", "--keys", session, capture},
		{"packets", "--keys", server, "-w", saved, capture},
		{"events", "--json", "--keys", server, capture},
		{"messages", "--keys", server, capture},
		{"messages", "--json", "--keys", server, capture},
		{"findings", "--keys", server, capture},
		{"findings", "--json", "--keys", server, capture},
		{"state", "--keys", server, "--flow", "2", "--at", "200", capture},
		{"state", "--json", "--keys", server, "--flow", "2", "--at", "200", capture},
		{"protocols", "--keys", server},
		{"protocols", "gaffer:yojimbo", "--keys", server},
		{"fields", "--keys", server},
		{"explain", "netcode-forged", "--keys", server},
		{"flows", "--keys", odd, capture},
		{"flows", "--keys", short, capture},
		{"flows", "--keys", twice, capture},
		{"flows", "--keys", broken, capture},
		{"flows", "--keys", private, capture},
		{"packets", "-Y", "gaffer.netcode.token == " + "1", "--keys", server, capture},
	} {
		_, out, complaint := ackscope(c...)
		if strings.Contains(out, "yojimbo") {
			opened++
		}
		text := out + complaint
		if c[1] == "--keys" && c[2] == private {
			text = strings.ReplaceAll(text, private, "") // the user's own name of the file
		}
		for _, key := range secrets {
			for _, s := range shapes(t, key) {
				if strings.Contains(text, s) || strings.Contains(strings.ToLower(text), s) && len(s) >= 16 {
					t.Errorf("ackscope %s shows a key", strings.Join(c[:2], " "))
				}
			}
		}
	}
	if opened < 8 {
		t.Errorf("only %d commands decrypted anything: the rest proves nothing", opened)
	}
	if b, err := os.ReadFile(saved); err != nil || len(b) == 0 {
		t.Errorf("the saved capture: %v", err)
	} else {
		for _, key := range secrets {
			raw, _ := hex.DecodeString(key)
			if bytes.Contains(b, raw[:8]) {
				t.Error("the saved capture holds a key")
			}
		}
	}
}

// Without keys a flow is netcode, and with the server's keys it is yojimbo.
// With another key or another protocol id it stays netcode, and ackscope says
// why.
func TestKeysDecideTheDialect(t *testing.T) {
	const run = "yojimbo-wrong-key"
	private, id, _ := secretsOf(t, run)
	capture := testenv.Capture(t, run+".client.pcap.gz")
	other := "ab" + private[2:]
	for _, c := range []struct {
		name, keys string
		dialects   []string
		reason     string // the reason of the first flow
	}{
		{"none", "", []string{"netcode", "netcode"}, "encrypted"},
		{
			"the server's", "servers: [{protocol_id: 0x" + id + ", private_key: " + private + "}]",
			[]string{"netcode", "yojimbo"},
			"another key made it",
		},
		{
			"another", "servers: [{protocol_id: 0x" + id + ", private_key: " + other + "}]",
			[]string{"netcode", "netcode"},
			"another key made it",
		},
		{
			"another game's", "servers: [{protocol_id: 0x1234, private_key: " + private + "}]",
			[]string{"netcode", "netcode"},
			"no private key for this protocol id",
		},
	} {
		args := []string{"flows", "--json", capture}
		if c.keys != "" {
			args = append(args, "--keys", keyFile(t, c.keys))
		}
		code, out, complaint := ackscope(args...)
		if code != 0 {
			t.Fatalf("%s: exit %d: %s", c.name, code, complaint)
		}
		var got []string
		first := ""
		for line := range strings.Lines(out) {
			var f struct {
				Flow    int    `json:"flow"`
				Dialect string `json:"dialect"`
				Reason  string `json:"reason"`
			}
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			if f.Flow == 0 {
				continue
			}
			if got = append(got, f.Dialect); len(got) == 1 {
				first = f.Reason
			}
		}
		if strings.Join(got, " ") != strings.Join(c.dialects, " ") || !strings.Contains(first, c.reason) {
			t.Errorf("%s: dialects %v, the first because %q; expected %v, and %q in it", c.name, got, first,
				c.dialects, c.reason)
		}
	}
}

// The profile in docs/keys.md loads. With a schema for the recorded game it
// names every message.
func TestYojimboProfiles(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(testenv.Module(t), "docs", "keys.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(doc), "```yaml\nprotocol:")
	example, _, closed := strings.Cut("protocol:"+example, "```")
	if !found || !closed {
		t.Fatal("docs/keys.md has no profile")
	}
	private, id, _ := secretsOf(t, "yojimbo-server-kick")
	keys := keyFile(t, "servers: [{protocol_id: 0x"+id+", private_key: "+private+"}]")
	capture := testenv.Capture(t, "yojimbo-server-kick.client.pcap.gz")
	if code, _, complaint := ackscope("protocols", "--profiles", keyFile(t, example), "--keys", keys); code != 0 {
		t.Fatalf("the example: exit %d: %s", code, complaint)
	}
	game := keyFile(t, `
protocol: gaffer
name: game
base: yojimbo
settings:
  block_types: [3]
  schema:
    messages:
      0:
        name: Input
        fields:
          - {name: tick, type: bits, bits: 32}
          - {name: mx, type: int, min: -1000, max: 1000}
          - {name: my, type: int, min: -1000, max: 1000}
          - {name: fire, type: bool}
      1: {name: Chat, fields: [{name: text, type: string, max: 63}]}
      2: {name: Float, fields: [{name: x, type: float}, {name: y, type: float}, {name: z, type: float}, {name: big, type: uint64}]}
      3: {name: Blob, fields: [{name: tag, type: bits, bits: 16}]}
      4: {name: Empty}
`)
	code, out, complaint := ackscope("messages", "--json", "--profiles", game, "--keys", keys, capture)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, complaint)
	}
	names := map[string]int{}
	for line := range strings.Lines(out) {
		var m struct {
			Name    string `json:"name"`
			Dialect string `json:"dialect"`
			Fields  map[string]any
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		names[m.Name]++
		if m.Dialect != "game" || m.Name == "Chat" && m.Fields["text"] == nil {
			t.Errorf("%s", line)
		}
	}
	if names["Chat"] < 10 || names["Input"] < 10 || names["Empty"] == 0 || names[""] != 0 {
		t.Errorf("messages by name: %v", names)
	}
}
