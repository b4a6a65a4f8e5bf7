package serving

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ackscope/ackscope/web"
)

var page = fstest.MapFS{
	"index.html":    {Data: []byte("<!doctype html>")},
	"app.js":        {Data: []byte("1")},
	"ackscope.wasm": {Data: []byte("\x00asm")},
	"notes.txt":     {Data: []byte("no part of the page")},
	"sub/inner.js":  {Data: []byte("2")},
}

// Only files of the page are served, with their types, to those who name the server's address.
func TestHandler(t *testing.T) {
	h := Handler(page, "127.0.0.1:4711")
	for _, c := range []struct {
		method, host, path string
		code               int
		kind               string
	}{
		{"GET", "127.0.0.1:4711", "/", 200, "text/html; charset=utf-8"},
		{"HEAD", "127.0.0.1:4711", "/index.html", 200, "text/html; charset=utf-8"},
		{"GET", "localhost:4711", "/app.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "127.0.0.1:4711", "/ackscope.wasm", 200, "application/wasm"},
		{"GET", "127.0.0.1:4711", "/notes.txt", 404, ""},
		{"GET", "127.0.0.1:4711", "/sub/inner.js", 404, ""},
		{"GET", "127.0.0.1:4711", "/../cli/root.js", 404, ""},
		{"POST", "127.0.0.1:4711", "/", 405, ""},
		{"GET", "evil.example:4711", "/", 421, ""},
		{"GET", "evil.example", "/app.js", 421, ""},
		{"GET", "127.0.0.1:80", "/", 421, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.1"+c.path, nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.code || c.kind != "" && w.Header().Get("Content-Type") != c.kind {
			t.Errorf("%s %s of %s: %d, %s", c.method, c.path, c.host, w.Code, w.Header().Get("Content-Type"))
		}
		if !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: no policy", c.path)
		}
	}
}

// The server refuses addresses that others can reach, and folders without the analysis.
func TestRefused(t *testing.T) {
	for _, at := range []string{"0.0.0.0:0", "10.0.0.1:80", ":8080", "[::]:0", "localhost:80", "x"} {
		if err := serve(t.Context(), io.Discard, at, page); err == nil {
			t.Errorf("%s is served", at)
		}
	}
	if _, err := web.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "make web") {
		t.Errorf("an empty folder: %v", err)
	}
}

// The server says where it is, answers there, and ends with its context.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, w, "127.0.0.1:0", page) }()
	line := make([]byte, 100)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(string(line[:n])), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Equal(text, page["index.html"].Data) {
		t.Errorf("%v: %q", err, text)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the server goes on after its context ended")
	}
}
