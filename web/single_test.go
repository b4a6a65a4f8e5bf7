package web

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

const index = `<!doctype html>
<html lang="en">
<head>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'">
<title>ackscope</title>
<link rel="stylesheet" href="app.css">
<script src="app.js" defer></script>
</head>
<body>
</body>
</html>
`

func files() fstest.MapFS {
	return fstest.MapFS{
		"index.html": {Data: []byte(index)}, "app.css": {Data: []byte("body{}")}, "app.js": {Data: []byte("run()")},
		"worker.js": {Data: []byte("work()")}, "wasm_exec.js": {Data: []byte("load()")}, program: {Data: []byte("\x00asm")},
	}
}

// page writes a page, and returns it with its blocks, decoded.
func page(t *testing.T, s *Single) (string, map[string]string) {
	t.Helper()
	var out bytes.Buffer
	if err := s.Write(&out, files()); err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	one := regexp.MustCompile(`<script type="application/octet-stream" id="([a-z0-9-]+)">([A-Za-z0-9+/=]*)</script>`)
	for _, m := range one.FindAllStringSubmatch(out.String(), -1) {
		text, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(text, []byte("\x1f\x8b")) {
			r, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if text, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		blocks[m[1]] = string(text)
	}
	return out.String(), blocks
}

func of(name string, packed bool, text string) File {
	return File{Name: name, Kind: "capture", Packed: packed, Copy: copyOf([]byte(text))}
}

// The page holds what it was given, whatever that is, and nothing of it is read as a part of the
// page.
func TestSingle(t *testing.T) {
	const hostile = `</script><script>alert(1)</script><!--`
	s := &Single{
		Title: hostile, Flags: []string{"--vantage", "a"},
		Files: []File{of(hostile, false, hostile), of("b", true, "packed")},
	}
	text, got := page(t, s)
	want := map[string]string{
		"inside-worker": "load()\nwork()", "inside-program": "\x00asm", "inside-0": hostile, "inside-1": "packed",
		"inside": `{"flags":["--vantage","a"],"files":[{"name":"\u003c/script\u003e\u003cscript\u003ealert(1)` +
			`\u003c/script\u003e\u003c!--","kind":"capture","side":"","packed":true},` +
			`{"name":"b","kind":"capture","side":"","packed":false}]}`,
	}
	if !maps.Equal(got, want) {
		t.Errorf("the page has %q", got)
	}
	if n := strings.Count(text, "alert"); n != 1 || !strings.Contains(text, "<title>&lt;/script&gt;") {
		t.Errorf("%d times: %s", n, text)
	}
	if strings.Contains(text, "src=") || strings.Contains(text, "href=") {
		t.Errorf("the page refers to a file: %s", text)
	}
	// The hashes are those of `printf 'run()' | openssl dgst -sha256 -binary | base64`, and of `body{}`.
	for _, part := range []string{
		"script-src 'sha256-AvyuiL0SD1mVY3NNxR+V2uo+lhk6RMFrytWmRt6CrJQ=' 'wasm-unsafe-eval'",
		"style-src 'sha256-fJgEClQWV1hGkK4qHMO0KotTsVnMYMXTq7/suurGyUo='", "connect-src 'none'", "<style>body{}</style>",
		"<script>run()</script>\n</body>",
	} {
		if strings.Count(text, part) != 1 {
			t.Errorf("the page lacks %s: %s", part, text)
		}
	}
	if again, _ := page(t, s); again != text {
		t.Error("the same input made another page")
	}
}

// A page has at most as many bytes as it may.
func TestSingleBounded(t *testing.T) {
	s := &Single{Files: []File{of("a", true, strings.Repeat("x", 1000))}}
	text, _ := page(t, s)
	if s.Most = int64(len(text)); s.Write(io.Discard, files()) != nil {
		t.Error("a page of just as many bytes is refused")
	}
	s.Most--
	var large *TooLargeError
	if err := s.Write(io.Discard, files()); !errors.As(err, &large) || large.Most != s.Most {
		t.Errorf("%v", err)
	}
}

// A folder that is not the page of `make web` is refused, and so are parts that would change how
// the page is read.
func TestSingleRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"index.html": "<!doctype html>", "app.js": `x = "</script>"`, "app.css": "a{content:'<!--'}",
	} {
		assets := files()
		assets[name] = &fstest.MapFile{Data: []byte(text)}
		if err := (&Single{}).Write(io.Discard, assets); err == nil {
			t.Errorf("%s of %q is accepted", name, text)
		}
	}
	for name := range files() {
		assets := files()
		delete(assets, name)
		if err := (&Single{}).Write(io.Discard, assets); err == nil {
			t.Errorf("a page without %s is accepted", name)
		}
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "make web") {
		t.Errorf("an empty folder: %v", err)
	}
}
