package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/batch"
)

// TestSearchIsOfStores: what lies on one machine is not left to the workers.
func TestSearchIsOfStores(t *testing.T) {
	for _, s := range []batch.Selection{
		{Arguments: []string{"captures"}},
		{Arguments: []string{"s3://studio/captures/", "captures"}},
		{Arguments: []string{"s3://studio/captures/\xff/"}},
		{Arguments: []string{"s3://studio/captures/"}, Manifest: "captures.csv"},
		{Arguments: []string{"s3://studio/" + strings.Repeat("x", mostSearch) + "/"}}, // too large for a message
	} {
		if search, err := NewSearch(s); search != nil || err != nil {
			t.Errorf("%v: %v, %v", s, search, err)
		}
	}
	search, err := NewSearch(batch.Selection{Arguments: []string{"s3://studio/captures/", "gs://a/*.pcap"}})
	if err != nil || !slices.Equal(search.Addresses, []string{"s3://studio/captures/", "gs://a/*.pcap"}) {
		t.Errorf("%v, %v", search, err)
	}
}

// TestMatched: parts of a match may come in any order. A manifest that changed meanwhile is refused.
func TestMatched(t *testing.T) {
	m := &matched{byAddress: map[string][]Match{
		"gs://a/*": {{Number: 1, Found: []byte(`["Yw=="]`)}, {Number: 0, Found: []byte(`["YQ==","/w=="]`)}},
		"gs://b/*": {{Error: []byte("denied")}},
		"gs://c/":  {{}},
	}}
	if found, err := m.Find("gs://a/*"); err != nil || !slices.Equal(found, []string{"a", "\xff", "c"}) {
		t.Errorf("%q, %v", found, err)
	}
	for address, says := range map[string]string{"gs://b/*": "denied", "gs://d/": "was not searched"} {
		if found, err := m.Find(address); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %q, %v, expected %q", address, found, err, says)
		}
	}
	path := filepath.Join(t.TempDir(), "captures.csv")
	if err := os.WriteFile(path, []byte("capture\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, sum, err := opened(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if m.sum = sum; sum == "" {
		t.Error("no sum")
	}
	if file, err = m.Open(path); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if err := os.WriteFile(path, []byte("capture\na\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open(path); err == nil || !strings.Contains(err.Error(), "changed while the job began") {
		t.Errorf("found %v", err)
	}
}
