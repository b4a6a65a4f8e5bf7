//go:build !js

package reader

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
)

// metricsAccess says who may read metrics.
type metricsAccess struct {
	token       *[sha256.Size]byte // hash of the bearer token; nil if none is required
	certificate *tls.Certificate   // nil for HTTP without TLS
}

// maxAccessFile limits the files of the token and of TLS, in bytes. Chains of
// certificates take some 10 KB.
const maxAccessFile = 1 << 20

// tokenForm is the b64token of RFC 6750: what an HTTP header can carry.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// checkAccess refuses flags that exclude each other. It reads no file.
func (w *WatchFlags) checkAccess() error {
	switch {
	case w.Metrics == "" && w.tokenFile+w.certificate+w.key != "":
		return errors.New("--metrics-token-file, --metrics-tls-cert, --metrics-tls-key: expected --metrics too")
	case (w.certificate == "") != (w.key == ""):
		return errors.New("--metrics-tls-cert and --metrics-tls-key: expected both or none")
	}
	return nil
}

// access reads the token and the certificate, as the user who serves the
// metrics. It warns of secrets that others can read.
func (w *WatchFlags) access(warn func(string)) (*metricsAccess, error) {
	a := &metricsAccess{}
	if w.tokenFile != "" {
		text, err := readSecret("--metrics-token-file", w.tokenFile, warn)
		if err != nil {
			return nil, err
		}
		text = bytes.TrimRight(text, "\r\n")
		if !tokenForm.Match(text) {
			return nil, fmt.Errorf("--metrics-token-file %s: expected one line of letters, digits and -._~+/, with = at its "+
				"end or none", w.tokenFile)
		}
		hash := sha256.Sum256(text)
		a.token = &hash
	}
	if w.certificate == "" {
		return a, nil
	}
	certificate, err := readLimited("--metrics-tls-cert", w.certificate, nil)
	if err != nil {
		return nil, err
	}
	key, err := readSecret("--metrics-tls-key", w.key, warn)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key) // its errors show nothing of the files
	if err != nil {
		return nil, fmt.Errorf("--metrics-tls-cert %s, --metrics-tls-key %s: %w", w.certificate, w.key, err)
	}
	a.certificate = &pair
	return a, nil
}

// readSecret reads a file, and warns if every user of the machine can read it.
func readSecret(flag, path string, warn func(string)) ([]byte, error) {
	return readLimited(flag, path, func(info fs.FileInfo) {
		const othersRead = 0o004
		if info.Mode().IsRegular() && info.Mode().Perm()&othersRead != 0 {
			warn(fmt.Sprintf("%s %s: every user of this machine can read it (mode %04o): expected 0600, or 0640", flag, path,
				info.Mode().Perm()))
		}
	})
}

// readLimited reads a file of at most maxAccessFile bytes. It calls look, if
// set, with the file's description.
func readLimited(flag, path string, look func(fs.FileInfo)) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%s: %w: expected a file that user %d can read, who goes on after privileges were given up",
			flag, err, os.Geteuid())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if look != nil {
		look(info)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxAccessFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	case len(text) > maxAccessFile:
		return nil, fmt.Errorf("%s %s: expected at most %d bytes", flag, path, maxAccessFile)
	}
	return text, nil
}

// guard checks the token of every request first.
func (a *metricsAccess) guard(next http.Handler) http.Handler {
	if a.token == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		// Hashes have equal lengths, so the time of the comparison reveals nothing
		// about the token.
		given := sha256.Sum256([]byte(token))
		if strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(given[:], a.token[:]) == 1 {
			next.ServeHTTP(w, r)
			return
		}
		challenge := `Bearer realm="ackscope"`
		if scheme != "" {
			challenge += `, error="invalid_token"` // by RFC 6750 only if a token was given
		}
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "expected the header Authorization: Bearer TOKEN", http.StatusUnauthorized)
	})
}

// exposure says what strangers on the network can do at an address. It returns
// "" if they can do nothing.
func (a *metricsAccess) exposure(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return ""
	}
	switch {
	case a.token == nil:
		return fmt.Sprintf("--metrics %s: whoever reaches this address can read the metrics: expected --metrics-token-file",
			at)
	case a.certificate == nil:
		return fmt.Sprintf("--metrics %s: the token passes the network in the clear: expected --metrics-tls-cert and "+
			"--metrics-tls-key", at)
	}
	return ""
}
