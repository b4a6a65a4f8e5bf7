package batch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/unit"
)

// shelf is a store of a few objects. It counts the searches.
type shelf struct {
	objects  []string
	manifest string // a local file
	searches int
}

func (s *shelf) Find(address string) (found []string, err error) {
	s.searches++
	before, after, _ := strings.Cut(address, "*")
	for _, x := range s.objects {
		if rest, ok := strings.CutPrefix(x, before); ok && strings.HasSuffix(rest, after) {
			found = append(found, x)
		}
	}
	if len(found) == 0 {
		err = errors.New(address + ": no capture")
	}
	return found, err
}

func (s *shelf) Open(address string) (*os.File, error) {
	if !strings.HasSuffix(address, "/m.csv") {
		return nil, os.ErrNotExist
	}
	return os.Open(s.manifest)
}

// TestElsewhere finds captures by addresses, and by a manifest that has one.
func TestElsewhere(t *testing.T) {
	s := &shelf{
		objects:  []string{"st://b/list/eu/1.pcap", "st://b/list/eu/2.pcap", "st://b/us/3.pcap", "st://c/4.pcap"},
		manifest: filepath.Join(t.TempDir(), "local.csv"),
	}
	plan := func(rows string, arguments ...string) (*Plan, error) {
		if err := os.WriteFile(s.manifest, []byte("capture,build\n"+rows), 0o600); err != nil {
			t.Fatal(err)
		}
		s.searches = 0
		return NewPlan(Selection{Arguments: arguments, Manifest: "st://b/list/m.csv", Elsewhere: s})
	}
	p, err := plan("eu/*.pcap,1\n../us/3.pcap,2\nst://c/4.pcap,3\nst://d/5.pcap,3\n", "st://c/")
	if err != nil || len(p.Failed) > 0 {
		t.Fatal(err, p)
	}
	var got []string
	for _, c := range p.Captures {
		got = append(got, c.Name+" "+c.Files[0].Path+" "+c.Labels[0].Value)
	}
	want := []string{
		"../us/3.pcap st://b/us/3.pcap 2", "eu/1.pcap st://b/list/eu/1.pcap 1", "eu/2.pcap st://b/list/eu/2.pcap 1",
		"st://c/4.pcap st://c/4.pcap 3", "st://d/5.pcap st://d/5.pcap 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, expected %q", got, want)
	}
	if s.searches != 2 {
		t.Errorf("%d searches, expected one for each pattern and folder", s.searches)
	}
	if _, err := plan("eu/1.pcap,1\neu/*.pcap,2\n"); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("a capture that two rows name: %v", err)
	}
	if p, err := plan("asia/*.pcap,1\neu/1.pcap,1\n"); err != nil || len(p.Failed) != 1 || len(p.Captures) != 1 {
		t.Errorf("a pattern without captures: %v, %v", p, err)
	}
	if p, err := NewPlan(Selection{Arguments: []string{"st://c/4.pcap"}}); err != nil || s.searches != 1 ||
		p.Captures[0].Name != "st://c/4.pcap" {
		t.Errorf("without a store, an address is a path like others: %v, %v", p, err)
	}
}

// TestCheckPartitions refuses labels with a value for each capture.
func TestCheckPartitions(t *testing.T) {
	p := &Plan{}
	for i := range mostPartitions + 1 {
		p.Captures = append(p.Captures, Capture{Labels: []unit.Label{{Name: "n", Value: strings.Repeat("x", i%97) +
			string(rune('a'+i/97%26)) + string(rune('a'+i/97/26))}}})
	}
	if err := p.CheckPartitions(); err == nil || !strings.Contains(err.Error(), "--partition") {
		t.Errorf("%d partitions: %v", len(p.Captures), err)
	}
	p.Captures = p.Captures[1:]
	if err := p.CheckPartitions(); err != nil {
		t.Error(err)
	}
}
