package fleet_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/contrib/fleet/demo"
	"github.com/ackscope/ackscope/contrib/fleet/fetch"
)

// TestFetch fetches the packets around findings: each file must show its finding again.
func TestFetch(t *testing.T) {
	players, want := 8, 4
	if heavy() {
		players, want = 100, 50
	}
	f := newFleet(t, 1, []string{"asia", "eu", "us"})
	games, err := demo.Simulate(t.TempDir(), 3, 12*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	collector := f.collector()
	begin := time.Now().Add(-time.Minute)
	for site, host := range demo.Hosts(players, 5*time.Second) {
		path := f.file(site + ".pcapng")
		if err := demo.Play(t.Context(), path, games.Traffic(host), begin, false); err != nil {
			t.Fatal(err)
		}
		allow := "--allow-fetch"
		if site == "asia" {
			allow = "--allow-fetch=false"
		}
		s := start(t, "program", "sensor", "--site", site, "--name", "host-1", "-r", path, "--hub", f.url(), "--key",
			f.key(site),
			"--spool", f.file("spool-"+site), "--ring", f.file("ring-"+site), "--ring-size", "64MiB", "--stay", allow)
		s.says("epoch", 30*time.Second)
	}
	args := []string{"fetch", "--hub", f.url(), "--key", f.operator(), "--tables", f.file("tables")}
	var list string
	until(t, time.Minute, func() bool { // all flows have ended, and each lossy one has a finding
		var code int
		list, code = run(t.Context(), append(args, "--list")...)
		found, err := fetch.Find(f.file("tables"), fetch.Choice{}, 1<<20)
		if err != nil || code != 0 {
			return false
		}
		ended := 0
		for _, x := range found {
			if x.At.Site != "asia" && x.Ended > 0 && !x.Provisional {
				ended++
			}
		}
		return ended >= want
	})
	// One site does not give packets.
	if said, code := run(t.Context(), append(args, "--site", "asia", "-o", t.TempDir())...); code == 0 ||
		!strings.Contains(said, "has no --allow-fetch") {
		t.Errorf("expected that the sensor of asia gives nothing, found %d: %s", code, said)
	}
	if said, code := run(t.Context(), append(args, "--site", "eu", "--plain", "-o", t.TempDir())...); code == 0 ||
		!strings.Contains(said, "anonymised") {
		t.Errorf("expected that plain packets are refused, found %d: %s", code, said)
	}
	out, fetched, again := t.TempDir(), 0, 0
	begun := time.Now()
	for _, site := range []string{"eu", "us"} {
		said, code := run(t.Context(), append(args, "--site", site, "--most", strconv.Itoa((want+1)/2), "--json", "-o",
			out)...)
		if code != 0 {
			t.Fatalf("fetch: %d: %s", code, said)
		}
		for line := range strings.Lines(said) {
			var x fetch.Fetched
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			fetched++
			if x.Again {
				again++
			} else {
				t.Errorf("%v: expected that %s shows it again", x.Finding, x.Path)
			}
			if x.Answer.Plain || len(x.Answer.Missing) > 0 {
				t.Errorf("%s: expected an anonymised, whole flow, found %+v", x.Path, x.Answer)
			}
			if b, err := os.ReadFile(x.Path); err != nil || strings.Contains(string(b), string(x.Finding.A.Addr().AsSlice())) {
				t.Errorf("%s: expected a capture without the address %v (%v)", x.Path, x.Finding.A, err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(out, "*.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d findings fetched in %.1f s into %d files, their digests right; %d show the finding again", fetched,
		time.Since(begun).Seconds(), len(files), again)
	if fetched < want || len(files) != fetched {
		t.Errorf("expected %d files, found %d of %d; the findings:\n%s", want, len(files), fetched, list)
	}
	if err := collector.stop(); err != nil {
		t.Error(err)
	}
	// The sensors told of themselves and of what they found.
	top, code := run(t.Context(), "top", "--hub", f.url(), "--key", f.operator(), "--tables", f.file("tables"), "--plain")
	if code != 0 || !strings.Contains(top, "3 sensors at 3 sites") || !strings.Contains(top, "eu/host-1") {
		t.Errorf("top: %d: %s", code, top)
	}
}
