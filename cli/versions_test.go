package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
)

// recordedVersions says which version both ends of a recording ran, by the begin of its name
// (testdata/pcaps/RIPTIDE.md).
var recordedVersions = map[string]string{
	"u200_": "2.0.0", "t200_": "2.0.0", "u210_": "2.1.0", "t210_": "2.1.0", "u221_": "2.2.1", "t221_": "2.2.1",
	"upy_clean": "Pytide 2.1.0-alpha", "tpy_clean": "Pytide 2.1.0-alpha", "upy200_clean": "Pytide 2.0.0",
	"tpy200_clean": "Pytide 2.0.0", "reliable-": "from 1.3", "oldreliable-": "of May 2017",
}

// TestVersionIsOpen: the version that an end ran is among those that its packets leave open.
func TestVersionIsOpen(t *testing.T) {
	var paths []string
	truth := map[string]string{}
	for begin, version := range recordedVersions {
		found, err := filepath.Glob("../testdata/pcaps/" + begin + "*.pcap*")
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d captures, error %v", begin, len(found), err)
		}
		for _, path := range found {
			truth[path] = version
		}
		paths = append(paths, found...)
	}
	var out, trouble bytes.Buffer
	args := append([]string{"flows", "--json", "-q"}, paths...)
	if code := run(known, args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &trouble}); code != app.ExitDone {
		t.Fatalf("exit %d: %s", code, trouble.String())
	}
	type row struct {
		Flow       int
		File       string
		Protocol   string
		Versions   []string `json:"versions_a"`
		Others     []string `json:"versions_b"`
		PacketsA   int      `json:"packets_a"`
		PacketsB   int      `json:"packets_b"`
		Confidence float64
	}
	narrowed := 0
	for lines := json.NewDecoder(&out); ; {
		var r row
		if err := lines.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Protocol == "" {
			continue
		}
		for side, open := range map[string][]string{"a": r.Versions, "b": r.Others} {
			if !slices.Contains(open, truth[r.File]) {
				t.Errorf("%s flow %d side %s ran %s; open are %q", r.File, r.Flow, side, truth[r.File], open)
			}
			if len(open) <= 3 {
				narrowed++
			}
		}
	}
	if narrowed < 2*len(paths) {
		t.Errorf("%d sides are narrowed down to three versions in %d captures, expected most of them", narrowed, len(paths))
	}
}

// TestMatrixAgreesWithVersions: --matrix offers no behaviour of a version that the packets
// exclude. For example, Acks with 16 unread bits exclude main, whose acks are alike.
func TestMatrixAgreesWithVersions(t *testing.T) {
	var out, trouble bytes.Buffer
	run(known, []string{"replay", "-q", "--matrix", "../testdata/pcaps/u210_dup.client.pcap.gz"},
		app.Streams{In: strings.NewReader(""), Out: &out, Err: &trouble})
	for _, want := range []string{
		"A can be riptide@2.1.0, riptide@2.1.1-2.2.1: the captured packets",
		"A acts like riptide@main too, but its packets show another version",
		"the packets of A show Riptide 2.1.0, 2.1.1 or 2.1.2: its Acks carry 16 unread bits",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("replay --matrix does not say %q:\n%s%s", want, out.String(), trouble.String())
		}
	}
}
