package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/metrics"
)

const metricsPage, dashboard = "docs/metrics.md", "docs/grafana.json"

// TestMetrics: the page lists all metrics of the code.
func TestMetrics(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.Module(t), metricsPage))
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-update writes them -->\n", "<!-- end -->"
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("%s: expected a place for the list, from %q to %q", metricsPage, begin, end)
	}
	var list strings.Builder
	list.WriteString("| metric | type | labels | |\n|---|---|---|---|\n")
	for _, f := range metrics.Families() {
		fmt.Fprintf(&list, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, strings.Join(f.Labels, ", "), f.Help)
	}
	same(t, metricsPage, head+begin+list.String()+end+tail)
}

// TestDashboard: the dashboard is JSON. It uses all existing metrics and no
// others, except those that are sums of others.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.Module(t), dashboard))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%s: %v", dashboard, err)
	}
	known := map[string]bool{}
	labels := map[string]map[string]bool{}
	for _, f := range metrics.Families() {
		names := []string{f.Name}
		if f.Type == "histogram" {
			names = []string{f.Name + "_bucket", f.Name + "_sum", f.Name + "_count"}
		}
		for _, n := range names {
			known[n] = true
			labels[n] = map[string]bool{"instance": true, "le": f.Type == "histogram"}
			for _, l := range f.Labels {
				labels[n][l] = true
			}
		}
	}
	metric := regexp.MustCompile(`\b(?:ackscope|process|go)_\w+`)
	by := regexp.MustCompile(`\bby \(([^)]*)\)`)
	asked := map[string]bool{}
	for _, p := range d.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			names := metric.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("panel %q: %q names no metric of ours", p.Title, target.Expr)
			}
			for _, n := range names {
				if asked[n] = true; !known[n] {
					t.Errorf("panel %q asks for %s, which does not exist", p.Title, n)
					continue
				}
				for _, group := range by.FindAllStringSubmatch(target.Expr, -1) {
					for l := range strings.SplitSeq(group[1], ",") {
						if !labels[n][strings.TrimSpace(l)] {
							t.Errorf("panel %q groups %s by %s, a label that it has not", p.Title, n, l)
						}
					}
				}
			}
		}
	}
	if len(d.Panels) < 10 || len(asked) < 20 {
		t.Errorf("%d panels over %d metrics, expected 10 and 20 at least", len(d.Panels), len(asked))
	}
}
