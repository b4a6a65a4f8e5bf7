package reader

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// guardTime ends a test that would hang. It measures nothing.
const guardTime = 30 * time.Second

// served is a metrics server under test.
type served struct {
	address string
	client  *http.Client
	scheme  string
	hold    chan bool // /held waits for it
	held    chan bool // signals that /held waits
}

// largeAnswer is larger than the buffers of a connection.
const largeAnswer = 16 << 20

// serveMetrics starts a server. With patience its time limits are an hour, so
// that only its limit of connections can let the next client in.
func serveMetrics(t *testing.T, access *metricsAccess, patience bool) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{address: l.Addr().String(), scheme: "http", hold: make(chan bool), held: make(chan bool, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "up 1") })
	mux.HandleFunc("GET /large",
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, largeAnswer)) })
	mux.HandleFunc("GET /held", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case s.held <- true:
		default: // a client that asks again
		}
		<-s.hold
		fmt.Fprintln(w, "up 2")
	})
	server := newMetricsServer(mux, access)
	if patience {
		server.ReadTimeout, server.ReadHeaderTimeout, server.WriteTimeout = time.Hour, time.Hour, time.Hour
	}
	go func() { _ = server.Serve(metricsListener(l, access)) }()
	t.Cleanup(func() { _ = server.Close() })
	transport := &http.Transport{DisableKeepAlives: true}
	if access.certificate != nil {
		s.scheme = "https"
		roots := x509.NewCertPool()
		leaf, err := x509.ParseCertificate(access.certificate.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		roots.AddCert(leaf)
		transport.TLSClientConfig, transport.ForceAttemptHTTP2 = &tls.Config{RootCAs: roots}, true
	}
	s.client = &http.Client{Transport: transport, Timeout: guardTime}
	return s
}

// answer is the part of a response that tests check. The body was read and
// closed.
type answer struct {
	Status     string
	StatusCode int
	Header     http.Header
	TLS        *tls.ConnectionState
	Proto      string
	ProtoMajor int
	Close      bool
}

// get requests a path, with an Authorization header unless it is empty.
func (s *served) get(t *testing.T, path, authorization string) (answer, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.scheme+"://"+s.address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return answer{
		Status: response.Status, StatusCode: response.StatusCode, Header: response.Header, TLS: response.TLS,
		Proto: response.Proto, ProtoMajor: response.ProtoMajor, Close: response.Close,
	}, string(text)
}

// crowd connects n times, sends the same each time, and reads nothing.
func (s *served) crowd(t *testing.T, n int, says string) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil { // a large answer blocks
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, says); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Fatal(err)
		}
	}
}

// TestScrapeBesideOthers connects 8 and 1,000 times and stays connected, in
// each way that keeps a connection open. Every scrape gets through.
func TestScrapeBesideOthers(t *testing.T) {
	secure := &metricsAccess{certificate: selfSigned(t)}
	for _, c := range []struct {
		name, says string
		access     *metricsAccess
	}{
		{"idle", "", &metricsAccess{}},
		{"half a header", "GET /metrics HTTP/1.1\r\nHost: a\r\nX-Slow: ", &metricsAccess{}},
		{"a body that does not come", "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", &metricsAccess{}},
		{"an answer that is not read", "GET /large HTTP/1.1\r\nHost: a\r\n\r\n", &metricsAccess{}},
		{"idle over TLS", "", secure},
		{"half a handshake", "\x16\x03\x01\x02\x00", secure},
	} {
		for _, n := range []int{8, metricsConnections, 1000} {
			if strings.HasPrefix(c.says, "GET /large") {
				n = min(n, 3*metricsConnections) // each takes some MB of the kernel's memory
			}
			s := serveMetrics(t, c.access, true)
			for range 3 {
				s.crowd(t, n/2, c.says)
				if response, text := s.get(t, "/metrics", ""); response.StatusCode != http.StatusOK || text != "up 1\n" {
					t.Errorf("%s, %d times: %s %q, expected the metrics", c.name, n, response.Status, text)
				}
				s.crowd(t, n-n/2, c.says)
				if response, text := s.get(t, "/metrics", ""); response.StatusCode != http.StatusOK || text != "up 1\n" {
					t.Errorf("%s, %d times: %s %q, expected the metrics", c.name, n, response.Status, text)
				}
			}
		}
	}
}

// TestScrapeIsFinished: a client that connects during a scrape displaces
// clients that wait for a request, not the scrape.
func TestScrapeIsFinished(t *testing.T) {
	s := serveMetrics(t, &metricsAccess{}, true)
	done := make(chan string, 1)
	go func() {
		defer close(done) // get may end this goroutine too
		_, text := s.get(t, "/held", "")
		done <- text
	}()
	<-s.held
	s.crowd(t, 4*metricsConnections, "")
	if response, _ := s.get(t, "/metrics", ""); response.StatusCode != http.StatusOK {
		t.Errorf("%s, expected an answer", response.Status)
	}
	close(s.hold)
	if text := <-done; text != "up 2\n" {
		t.Errorf("the scrape that came first got %q, expected its answer", text)
	}
}

// TestSlowRequestEnds: the server gives up a request that does not end, and
// closes a connection after its answer.
func TestSlowRequestEnds(t *testing.T) {
	if metricsRequestTime > 2*time.Second {
		t.Errorf("a request may take %v, expected 2 s at most", metricsRequestTime)
	}
	s := serveMetrics(t, &metricsAccess{}, false)
	for says, want := range map[string]string{
		"":                             "",
		"GET /metrics HTTP/1.1\r\nHos": "",
		"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n":    "up 1\n",
		"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\nGET /metrics HTTP/1.1\r\nHost": "up 1\n",
	} {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(guardTime)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, says); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c)
		if want != "" {
			response, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || string(text) != want || !response.Close {
				t.Errorf("%q: %q, %v, closes: %v; expected the metrics and the end", says, text, err, response.Close)
			}
		}
		if rest, err := io.ReadAll(in); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), "up 1") {
			t.Errorf("%q: then %q, %v; expected the end of the connection", says, rest, err)
		}
	}
}

// TestToken sends the right token, none, and wrong ones.
func TestToken(t *testing.T) {
	const token = "c2VjcmV0LXRva2Vu=="
	access := tokenAccess(t, token+"\n", 0o600, "")
	s := serveMetrics(t, access, true)
	for _, c := range []struct {
		authorization string
		code          int
		challenge     string
	}{
		{"", http.StatusUnauthorized, `Bearer realm="ackscope"`},
		{"Bearer " + token, http.StatusOK, ""},
		{"bearer " + token, http.StatusOK, ""},
		{"Bearer " + token[:len(token)-1], http.StatusUnauthorized, `Bearer realm="ackscope", error="invalid_token"`},
		{"Bearer " + token + "x", http.StatusUnauthorized, `Bearer realm="ackscope", error="invalid_token"`},
		{"Bearer ", http.StatusUnauthorized, `Bearer realm="ackscope", error="invalid_token"`},
		{"Bearer", http.StatusUnauthorized, `Bearer realm="ackscope", error="invalid_token"`},
		{"Basic " + token, http.StatusUnauthorized, `Bearer realm="ackscope", error="invalid_token"`},
		{token, http.StatusUnauthorized, `Bearer realm="ackscope", error="invalid_token"`},
	} {
		for _, path := range []string{"/metrics", "/nowhere"} {
			want := c.code
			if path == "/nowhere" && want == http.StatusOK {
				want = http.StatusNotFound
			}
			response, text := s.get(t, path, c.authorization)
			if response.StatusCode != want || response.Header.Get("WWW-Authenticate") != c.challenge {
				t.Errorf("GET %s with %q: %s, %q; expected %d, %q", path, c.authorization, response.Status,
					response.Header.Get("WWW-Authenticate"), want, c.challenge)
			}
			if want == http.StatusUnauthorized && (strings.Contains(text, "up") || strings.Contains(text, token)) {
				t.Errorf("GET %s with %q: refused with %q", path, c.authorization, text)
			}
		}
	}
}

// tokenAccess reads a token from a file. warns is a part of the only warning.
func tokenAccess(t *testing.T, text string, mode os.FileMode, warns string) *metricsAccess {
	t.Helper()
	w := &WatchFlags{Metrics: ":0", tokenFile: writeMode(t, "token", text, mode)}
	var said []string
	a, err := w.access(func(text string) { said = append(said, text) })
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(said, "\n"); (warns == "") != (all == "") || !strings.Contains(all, warns) || len(said) > 1 {
		t.Errorf("mode %04o: warnings %q, expected %q", mode, said, warns)
	}
	return a
}

func writeMode(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSecretsOfMetrics reads wrong files: no error contains any of their text.
func TestSecretsOfMetrics(t *testing.T) {
	tokenAccess(t, "token\r\n", 0o640, "")
	tokenAccess(t, "token", 0o644, "every user of this machine can read it (mode 0644)")
	certificate, key := pemOf(t, selfSigned(t))
	_, otherKey := pemOf(t, selfSigned(t))
	cert, secret := writeMode(t, "cert.pem", certificate, 0o644), writeMode(t, "key.pem", key, 0o600)
	keyLine := strings.Split(key, "\n")[1]
	for name, c := range map[string]struct {
		flags WatchFlags
		says  string
	}{
		"empty token":      {WatchFlags{tokenFile: writeMode(t, "t", "\n", 0o600)}, "expected one line"},
		"two lines":        {WatchFlags{tokenFile: writeMode(t, "t", "one\ntwo\n", 0o600)}, "expected one line"},
		"a key as a token": {WatchFlags{tokenFile: secret}, "expected one line"},
		"no end":           {WatchFlags{tokenFile: "/dev/zero"}, "expected at most"},
		"no file":          {WatchFlags{tokenFile: filepath.Join(t.TempDir(), "no")}, "no such file"},
		"no certificate":   {WatchFlags{certificate: secret, key: cert}, "--metrics-tls-cert"},
		"another's key": {
			WatchFlags{certificate: cert, key: writeMode(t, "k", otherKey, 0o600)},
			"private key does not match",
		},
		"no key": {WatchFlags{certificate: cert, key: cert}, "--metrics-tls-key"},
		"a key without end": {
			WatchFlags{certificate: cert, key: writeMode(t, "k", key[:len(key)-20], 0o600)}, "--metrics-tls-key",
		},
	} {
		_, err := c.flags.access(func(string) {})
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), keyLine) {
			t.Errorf("%s: %v, expected an error that says %q and nothing of the key", name, err, c.says)
		}
	}
	var warned []string
	flags := WatchFlags{certificate: cert, key: writeMode(t, "k", key, 0o604)}
	if _, err := flags.access(func(text string) { warned = append(warned, text) }); err != nil || len(warned) != 1 {
		t.Errorf("%v, warnings %q: expected one, of the key", err, warned)
	}
}

// TestTLS sends requests with and without TLS.
func TestTLS(t *testing.T) {
	s := serveMetrics(t, &metricsAccess{certificate: selfSigned(t)}, true)
	response, text := s.get(t, "/metrics", "")
	if text != "up 1\n" || response.TLS == nil || response.TLS.Version < tls.VersionTLS12 || response.ProtoMajor != 1 ||
		!response.Close {
		t.Errorf("%q over %s, closes: %v; expected the metrics over TLS and HTTP/1.1, and the end", text, response.Proto,
			response.Close)
	}
	s.scheme = "http"
	if response, text := s.get(t, "/metrics", ""); response.StatusCode != http.StatusBadRequest ||
		strings.Contains(text, "up") {
		t.Errorf("without TLS: %s %q, expected 400", response.Status, text)
	}
	old := &tls.Dialer{Config: &tls.Config{
		InsecureSkipVerify: true, MinVersion: tls.VersionTLS10,
		MaxVersion: tls.VersionTLS11,
	}}
	if _, err := old.DialContext(context.Background(), "tcp", s.address); err == nil {
		t.Error("TLS 1.1 was taken, expected 1.2 at least")
	}
}

// TestExposure checks what strangers can do at each kind of address.
func TestExposure(t *testing.T) {
	token, certificate := tokenAccess(t, "token", 0o600, ""), &metricsAccess{certificate: selfSigned(t)}
	both := &metricsAccess{token: token.token, certificate: certificate.certificate}
	for _, c := range []struct {
		access *metricsAccess
		ip     string
		says   string
	}{
		{&metricsAccess{}, "127.0.0.1", ""},
		{&metricsAccess{}, "::1", ""},
		{&metricsAccess{}, "::", "expected --metrics-token-file"},
		{&metricsAccess{}, "10.0.0.1", "expected --metrics-token-file"},
		{certificate, "10.0.0.1", "expected --metrics-token-file"},
		{token, "10.0.0.1", "in the clear"},
		{token, "127.0.0.1", ""},
		{both, "10.0.0.1", ""},
	} {
		text := c.access.exposure(&net.TCPAddr{IP: net.ParseIP(c.ip), Port: 9090})
		if (c.says == "") != (text == "") || !strings.Contains(text, c.says) {
			t.Errorf("at %s: %q, expected %q", c.ip, text, c.says)
		}
	}
}

// selfSigned makes a certificate for 127.0.0.1.
func selfSigned(t *testing.T) *tls.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

// pemOf returns a certificate and its key in PEM.
func pemOf(t *testing.T, c *tls.Certificate) (certificate, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
