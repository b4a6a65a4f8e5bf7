package netcode

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/schema/yamlfile"
)

const secret = "606abe6ec91910ea9a6562f66f2b30e44371d62cd19927266b3c60f4b715aba1"

// readKeys reads a key file as the program does.
func readKeys(text string) (*Keys, error) {
	var f KeyFile
	if err := yamlfile.Read([]byte(text), "keys.yaml", &f); err != nil {
		return nil, err
	}
	return NewKeys(&f)
}

// TestKeyFileErrors: an error names the setting or the line of a key file. No message
// repeats a character of a key, wherever in the file it is.
func TestKeyFileErrors(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{`{}`, "expected servers, sessions or both"},
		{`{"servers": [{"protocol_id": 1}]}`, "servers[0]: private_key is missing"},
		{`{"servers": [{"private_key": "` + secret + `"}]}`, "servers[0]: protocol_id is missing"},
		{
			`{"servers": [{"protocol_id": 1, "private_key": "` + secret[2:] + `"}]}`,
			"private_key: expected 64 hexadecimal digits, found 62 characters",
		},
		{`{"servers": [{"protocol_id": 1, "private_key": "zz` + secret[2:] + `"}]}`, "found another character"},
		{
			`{"servers": [{"protocol_id": "` + secret + `", "private_key": "` + secret + `"}]}`,
			"protocol_id: expected a number of 64 bits",
		},
		{
			`{"sessions": [{"protocol_id": 1, "client_to_server": "` + secret + `"}]}`,
			"sessions[0]: server_to_client is missing",
		},
		{"sesions: []", "line 1: a setting that is not known"},
		{"servers:\n  - protocol_id: 1\n    " + secret + ": 1", "line 3: a setting that is not known"},
		{"servers:\n  - protocol_id: 1\n    private_key: " + secret + "\n    private_key: " + secret, "line"},
		{"servers: " + secret, "line 1"},
		{secret, "keys.yaml"},
		{"servers: [\n" + secret, "keys.yaml"},
		{"servers:\n\t- " + secret, "keys.yaml"},
		{``, "expected servers"},
	} {
		_, err := readKeys(c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s gives %v, expected it to say %q", c.file, err, c.want)
		} else if shows(err.Error()) {
			t.Errorf("the error shows a piece of the key: %v", err)
		}
	}
}

// TestKeyFileForms: keys read the same in every form: quoted or not, like a number or
// not, in YAML or JSON.
func TestKeyFileForms(t *testing.T) {
	for _, key := range []string{
		secret, strings.ToUpper(secret), strings.Repeat("0", 64), strings.Repeat("0", 63) + "1",
		"1" + strings.Repeat("0", 63),
		"12345e" + strings.Repeat("7", 58), "0x" + strings.Repeat("1", 62), "0b" + strings.Repeat("1", 62),
		"1_" + strings.Repeat("1", 62),
	} {
		valid := !strings.ContainsAny(key, "x_")
		for _, file := range []string{
			"servers:\n  - protocol_id: 0x11223344556677\n    private_key: " + key + "\n",
			"# ours\nservers:\n  - private_key: " + key + " # of the test server\n    protocol_id: 4822678189205111\n",
			"servers: [{protocol_id: '0x11223344556677', private_key: '" + key + "'}]",
			"{\"servers\": [{\"protocol_id\": \"0x11223344556677\", \"private_key\": \"" + key + "\"}]}",
			"sessions:\n  - protocol_id: 0x11223344556677\n    client_to_server: " + key + "\n    server_to_client: \"" +
				key + "\"\n",
		} {
			k, err := readKeys(file)
			if (err == nil) != valid {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if valid && len(k.servers) == 1 && k.servers[0].protocolID != 0x11223344556677 {
				t.Errorf("%s: protocol id %#x", file, k.servers[0].protocolID)
			}
		}
	}
}

// shows reports whether a text holds eight digits of the secret in a row.
func shows(s string) bool {
	for i := 0; i+8 <= len(secret); i++ {
		if strings.Contains(strings.ToLower(s), secret[i:i+8]) {
			return true
		}
	}
	return false
}

// TestKeysFormatAsNothing: no attempt to format or encode keys shows them.
func TestKeysFormatAsNothing(t *testing.T) {
	f := KeyFile{
		Servers:  []ServerKey{{Secret{"0x11223344556677"}, Secret{secret}}},
		Sessions: []SessionKeys{{Secret{"1"}, Secret{secret}, Secret{secret}}},
	}
	k, err := NewKeys(&f)
	if err != nil {
		t.Fatal(err)
	}
	const asNumbers = "96 106 190 110" // the first bytes of the secret
	values := []any{
		f, &f, f.Servers, f.Servers[0], f.Servers[0].PrivateKey, &f.Servers[0].PrivateKey, k, k.servers,
		k.sessions, k.sessions[0], NewDecryptor(k), *NewDecryptor(k),
	}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			if s := fmt.Sprintf(verb, v); shows(s) || strings.Contains(s, asNumbers) {
				t.Errorf("%s of %T shows a key: %s", verb, v, s)
			}
		}
		if b, err := json.Marshal(v); shows(string(b)) {
			t.Errorf("JSON of %T shows a key: %v %s", v, err, b)
		}
	}
}
