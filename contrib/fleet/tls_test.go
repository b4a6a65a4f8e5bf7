package fleet_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/contrib/fleet/link"
)

// TestTLS connects to a hub with TLS: with the certificate that signs the hub's, and with another one.
func TestTLS(t *testing.T) {
	folder := t.TempDir()
	cert, key := certificate(t, folder+"/hub.pem", folder+"/hub.key")
	other, _ := certificate(t, folder+"/other.pem", folder+"/other.key")
	f := newFleet(t, 1, []string{"eu"}, "--tls-cert", cert, "--tls-key", key)
	url := []string{strings.Replace(f.urls[0], "nats://", "tls://", 1)}
	for _, x := range []struct {
		ca   string
		want bool
	}{{cert, true}, {other, false}, {"", false}} {
		c, err := link.Connect(link.Options{URLs: url, Key: f.operator(), CA: x.ca})
		if err != nil {
			t.Fatal(err)
		}
		if x.want {
			until(t, 20*time.Second, c.IsConnected)
		} else if time.Sleep(time.Second); c.IsConnected() {
			t.Errorf("certificate %q: expected that the client refuses, found a connection", x.ca)
		}
		c.Close()
	}
	if said, code := run(t.Context(), "hub", "--listen", "0.0.0.0:0", "--access", f.file("access")); code == 0 ||
		!strings.Contains(said, "--no-tls") {
		t.Errorf("a hub for all without TLS: expected a refusal, found %d: %s", code, said)
	}
}

// TestNoSecrets starts all parts and makes them fail. No line may hold a seed.
func TestNoSecrets(t *testing.T) {
	f := newFleet(t, 1, []string{"eu"})
	seed, err := os.ReadFile(f.key("eu"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := f.file("damaged.key")
	if err := os.WriteFile(damaged, append([]byte("S"), seed...), 0o600); err != nil {
		t.Fatal(err)
	}
	open := f.file("open.key")
	if err := os.WriteFile(open, seed, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{damaged, open} {
		said, code := run(t.Context(), "top", "--hub", f.url(), "--key", key, "--plain", "--wait", "1ms")
		if code == 0 || !strings.Contains(said, "expected") || strings.Contains(said, string(bytes.TrimSpace(seed))) {
			t.Errorf("%s: expected an error without the seed, found %d: %s", key, code, said)
		}
	}
	for _, h := range f.hubs {
		if strings.Contains(h.said(), string(seed[:20])) {
			t.Error("the hub said the seed")
		}
	}
}

// certificate writes a self-signed certificate for this host.
func certificate(t *testing.T, certPath, keyPath string) (string, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hub"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		certPath: {Type: "CERTIFICATE", Bytes: der}, keyPath: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certPath, keyPath
}
