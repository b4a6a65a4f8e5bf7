package cli

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
)

// givenByMistake is a file that a user may pass by mistake, and the parts that
// no output may contain.
type givenByMistake struct {
	name, text string
	secrets    []string
}

// secretFiles writes one file of each kind.
func secretFiles(t *testing.T) []givenByMistake {
	t.Helper()
	random := func(n int) []byte {
		b := make([]byte, n)
		if _, err := rand.Read(b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	var list []givenByMistake
	add := func(name, text string, secrets ...string) { list = append(list, givenByMistake{name, text, secrets}) }
	armor := func(name, kind string, der []byte) {
		text := string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		var body []string
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			if !strings.HasPrefix(line, "-") {
				body = append(body, line)
			}
		}
		add(name, text, body...)
		// Without its first line, as after a careless copy; and indented, as in
		// YAML.
		_, rest, _ := strings.Cut(text, "\n")
		add(name+"-cut", rest, body...)
		add(name+"-yaml", "key: |\n  "+strings.ReplaceAll(text, "\n", "\n  ")+"\n", body...)
	}
	pkcs8 := func(key any, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 1024)
	armor("rsa", "PRIVATE KEY", pkcs8(rsaKey, err))
	armor("rsa1", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	armor("ec", "EC PRIVATE KEY", pkcs8(ecKey, err))
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	armor("ed25519", "PRIVATE KEY", pkcs8(edKey, err))
	armor("openssh", "OPENSSH PRIVATE KEY", append([]byte("openssh-key-v1\x00"), random(300)...))

	b64 := base64.StdEncoding.EncodeToString(random(32))
	add("wireguard", "[Interface]\nPrivateKey = "+b64+"\nAddress = 10.0.0.1/24\n", b64)
	add("wg-bare", b64+"\n", b64)
	password := "Tr0ub4" + hex.EncodeToString(random(4))
	for name, format := range map[string]string{
		"env":         "DB_PASSWORD=%s\nDEBUG=1\n",
		"env-export":  "export API_TOKEN='%s'\n",
		"yaml":        "database:\n  password: %s\n",
		"yaml-tab":    "database:\n\tpassword: %s\n",
		"yaml-twice":  "password: %[1]s\npassword: %[1]s\n",
		"yaml-list":   "- secret: %s\n- [\n",
		"yaml-open":   "secret: \"%s\n",
		"yaml-name":   "%s: password\n",
		"yaml-word":   "messages: {0: {name: A, password: %s, fields: [{name: \"%[1]s\", type: %[1]s}]}}\n",
		"yaml-type":   "secret: x\nmessages: {0: {fields: [{name: a, type: %s}]}}\n",
		"yaml-bits":   "token: x\nmessages: {0: {fields: [{name: a, type: bits, bits: %s}]}}\n",
		"yaml-proto":  "protocol: %s\nname: a\n# password: %[1]s\n",
		"yaml-base":   "protocol: gaffer\nname: a\nbase: %s\nsettings: {secret: %[1]s}\n",
		"yaml-form":   "protocol: gaffer\nname: a\nsettings: {form: %s, psk: x}\n# secret=x\n",
		"yaml-alias":  "password: *%s\n",
		"yaml-tag":    "password: !%s x\n",
		"yaml-escape": "password: \"%s\\q\"\n",
		"aws":         "[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = %s\n",
		"netrc":       "machine example.org login me password %s\n",
		"json":        "{\"auths\": {\"x\": {\"auth\": \"%s\"}}}\n",
		"json-open":   "{\"token\": \"%s\"",
		"url":         "password: https://me:%s@example.org/\n",
		"journal":     "{\"journal\":2,\"seed\":1,\"password\":\"%s\"}\n",
		"journal-2":   "{\"journal\":2,\"seed\":1}\n{\"at\":0,\"password\":\"%s\"}\n",
		"journal-in":  "{\"journal\":2,\"seed\":1}\n{\"at\":0,\"in\":\"%s\"}\n",
		"baseline":    "# secret\nflow %s\n",
		"bpf":         "1\n%s 0 0 0\n",
	} {
		add(name, fmt.Sprintf(format, password), password)
	}
	key := random(32)
	digits := hex.EncodeToString(key)
	add("hex", digits+"\n", digits)
	add("hex-yaml", "private_key: "+digits+"\nx: 1\n", digits)
	add("hex-keys", "servers:\n  - {protocol_id: 1, private_key: "+digits+"ff}\n", digits)
	add("hex-upper", strings.ToUpper(digits), strings.ToUpper(digits))
	c, decimal, escaped := "", "", ""
	for _, b := range key {
		c, decimal, escaped = c+fmt.Sprintf("0x%02x, ", b), decimal+fmt.Sprintf("%d, ", b), escaped+fmt.Sprintf("\\x%02x", b)
	}
	add("c-array", "static uint8_t private_key[] = { "+c+"};\n", c)
	add("c-bare", "{ "+c+"}", c)
	add("c-yaml", "messages: ["+c+"]", c)
	add("decimal", "["+decimal+"]\n", decimal)
	add("c-string", "\""+escaped+"\"\n", escaped)
	add("raw", string(key), string(key))
	return list
}

// shows returns a part of a secret that an output contains, or "".
func shows(output, secret string) string {
	const most = 8 // characters that an output and a secret may share by chance
	for i := 0; i+most <= len(secret); i++ {
		if strings.Contains(output, secret[i:i+most]) {
			return secret[i : i+most]
		}
	}
	return ""
}

// TestSecretsStay passes files of keys and passwords to every flag, as captures
// and baselines, and on standard input. No output contains a part of one.
func TestSecretsStay(t *testing.T) {
	a := &app.App{Registry: protocols()}
	sound := filepath.Join(repository(t), "testdata", "hostile", "inj.pcapng")
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	image, err := os.ReadFile(sound)
	if err != nil {
		t.Fatal(err)
	}
	// Every flag and command gets some of the files; flags that read
	// configuration get all. FILE is the path.
	var every, lines [][]string
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		for _, sub := range c.Commands() {
			if n := sub.Name(); n != "tui" && n != "man" {
				walk(sub, append(append([]string{}, path...), n))
			}
		}
		if len(path) == 0 || c.HasSubCommands() {
			return
		}
		if path[0] != "lab" {
			every = append(every, append(append([]string{}, path...), "FILE"))
		}
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "string" && f.Name != "write" && f.Name != "output" && f.Name != "truth" &&
				f.Name != "journal" && (path[0] != "lab" || f.Name == "play") {
				every = append(every, append(append([]string{}, path...), "--"+f.Name, "FILE", sound))
			}
		})
	}
	walk(command(known, a), nil)
	for _, flag := range []string{"--schema", "--profiles", "--keys", "--thresholds", "--read"} {
		lines = append(lines, []string{"flows", flag, "FILE", sound},
			[]string{"packets", "-V", "--json", flag, "FILE", sound})
	}
	lines = append(lines, []string{"flows", "-i", "nowhere", "--bpf-raw", "FILE"}, []string{"replay", "FILE.capture"},
		[]string{"simulate", "--play", "FILE"}, []string{"lab", "gaffer", "--play", "FILE"},
		[]string{"lab", "--play", "FILE"}, []string{"replay", "--json", "FILE.capture"})
	files := secretFiles(t)
	for i := range files {
		f := &files[i]
		path := filepath.Join(dir, "f"+fmt.Sprint(i))
		for name, data := range map[string]string{
			path: f.text, path + ".capture": string(image),
			path + ".capture.replay": f.text,
		} {
			if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tried := lines
		if f.name == "rsa" || f.name == "env" || f.name == "hex" {
			tried = append(tried, every...)
		}
		for _, line := range tried {
			args := make([]string, len(line))
			for j := range line {
				args[j] = strings.ReplaceAll(line[j], "FILE", path)
			}
			_, out, complaint := inProcess(args...)
			for _, secret := range f.secrets {
				if piece := shows(out+complaint, secret); piece != "" {
					t.Errorf("%s: ackscope %s shows %q of %q: %.300q", f.name, strings.Join(line, " "), piece, secret, out+complaint)
				}
			}
		}
	}
}
