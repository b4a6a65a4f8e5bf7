package gaffer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const secret = "606abe6ec91910ea9a6562f66f2b30e44371d62cd19927266b3c60f4b715aba1"

// What is wrong with a key file is said by the name of the setting; no message
// repeats a character of a key, wherever in the file it stands.
func TestKeyFileErrors(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{`{}`, "expected servers, sessions or both"},
		{`{"servers": [{"protocol_id": 1}]}`, "servers[0]: private_key is missing"},
		{`{"servers": [{"private_key": "` + secret + `"}]}`, "servers[0]: protocol_id is missing"},
		{`{"servers": [{"protocol_id": 1, "private_key": "` + secret[2:] + `"}]}`, "expected 64 hexadecimal digits, found 62 characters"},
		{`{"servers": [{"protocol_id": 1, "private_key": "zz` + secret[2:] + `"}]}`, "found another character"},
		{`{"servers": [{"protocol_id": "` + secret + `", "private_key": "` + secret + `"}]}`, "expected a number of 64 bits"},
		{`{"sessions": [{"protocol_id": 1, "client_to_server": "` + secret + `"}]}`, "sessions[0]: expected protocol_id, client_to_server and server_to_client"},
		{`{"sesions": []}`, `unknown field "sesions"`},
		{`{"servers": "` + secret + `"}`, "servers"},
		{secret, "key file"},
		{``, "key file"},
	} {
		_, err := ReadKeys(strings.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s gives %v, expected it to say %q", c.file, err, c.want)
		} else if shows(err.Error()) {
			t.Errorf("the error shows a piece of the key: %v", err)
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

// Whatever is done to format or encode keys, they do not come out.
func TestKeysFormatAsNothing(t *testing.T) {
	var f KeyFile
	text := `{"servers": [{"protocol_id": "0x11223344556677", "private_key": "` + secret + `"}],
		"sessions": [{"protocol_id": 1, "client_to_server": "` + secret + `", "server_to_client": "` + secret + `"}]}`
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	k, err := NewKeys(&f)
	if err != nil {
		t.Fatal(err)
	}
	raw := fmt.Sprint(f.Servers[0].PrivateKey.bytes[:4]) // as a slice of numbers it would read so
	values := []any{f, &f, f.Servers, f.Servers[0], f.Servers[0].PrivateKey, &f.Servers[0].PrivateKey, k, k.sessions, k.sessions[0], NewDecryptor(k)}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			if s := fmt.Sprintf(verb, v); shows(s) || strings.Contains(s, strings.Trim(raw, "[]")) {
				t.Errorf("%s of %T shows a key: %s", verb, v, s)
			}
		}
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(f); err != nil || shows(b.String()) {
		t.Errorf("JSON of a key file: %v %s", err, b.String())
	}
}
