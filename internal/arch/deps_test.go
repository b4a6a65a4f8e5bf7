// Package arch tests the rules of the architecture: which package may import
// which, who starts goroutines, and who writes files. For example, it fails
// when package wire imports package machine. ARCHITECTURE.md explains the
// rules.
package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ackscope/ackscope"

// rule says what the packages that match a pattern may import: packages of this
// module, and packages from outside the standard library. Allowed paths have
// two placeholders:
//
//   - "@" is the second element of the importer's path, the protocol. So
//     machine/gaffer and machine/gaffer/judge may import wire/gaffer, but not
//     wire/riptide.
//   - "%" is the last element of the importer's path, which is the protocol
//     below cli/protocol.
type rule struct {
	packages string // exact path below the module; "*" is one element, "/*" at the end is all below
	ours     []string
	outside  []string
}

// law is the table of imports that ARCHITECTURE.md describes. The first rule
// that matches a package applies.
var law = []rule{
	{"printable", nil, nil},
	{"scale", nil, nil},
	{"agenda", nil, nil},
	{"wire", nil, nil},
	{"wire/seq", nil, nil},
	{"wire/bits", nil, nil},
	{"wire/*", []string{"wire", "wire/seq", "wire/bits"}, nil},
	{"schema", []string{"wire", "wire/bits", "printable"}, nil},
	{"schema/yamlfile", []string{"schema", "dissect", "printable"}, []string{"github.com/goccy/go-yaml"}},
	{"machine", []string{"scale"}, nil},
	{"machine/machinetest", []string{"machine"}, nil},
	{"machine/*/endpoint", roomOf("messages"), nil},
	{"machine/*/tracker", roomOf("messages", "clock", "pathloss", "vantage"), nil},
	{"machine/*/judge", roomOf("endpoint", "tracker", "messages", "yojimbo"), nil},
	{"machine/*/whatif", roomOf("endpoint", "tracker", "messages", "yojimbo"), nil},
	{"machine/riptide/clock", nil, nil},
	{"machine/riptide/pathloss", []string{"machine"}, nil},
	{"machine/riptide/riptidetest", append(roomOf("endpoint"), "sim"), nil},
	{
		"machine/gaffer/gaffertest",
		append(roomOf("endpoint", "messages"), "sim", "capture", "schema/yamlfile", "internal/testenv"), nil,
	},
	{"machine/riptide/vantage", roomOf(), nil},
	{"machine/gaffer/messages", roomOf(), nil},
	{"machine/gaffer/netcode", roomOf(), nil},
	{"machine/gaffer/yojimbo", roomOf("netcode", "tracker", "messages"), nil},
	{"machine/gaffer/article", roomOf("judge", "tracker", "messages"), nil},
	{"machine/*", []string{"machine", "agenda", "schema", "wire", "wire/@", "wire/seq", "wire/bits", "scale"}, nil},
	{"sim", []string{"machine", "agenda", "printable"}, nil},
	{"sim/*", []string{
		"sim", "machine", "machine/@", "machine/@/endpoint", "machine/@/messages", "machine/@/article",
		"wire", "wire/@", "wire/bits",
	}, nil},
	{"outfile", nil, []string{"golang.org/x/sys"}},
	{"host", []string{"machine"}, nil},
	{"capture", []string{"machine", "agenda", "capture/...", "host", "printable"}, captureOutside},
	{"capture/pcapfilter", nil, []string{"golang.org/x/net/bpf"}},
	{"capture/afpacket", []string{"machine", "capture", "capture/pcapfilter"}, captureOutside},
	{"capture/libpcap", []string{"machine", "capture", "capture/afpacket"}, captureOutside},
	{"capture/*", []string{"machine", "capture"}, captureOutside},
	{"dissect", []string{"machine", "schema", "printable"}, nil},
	{"dissect/dissecttest", []string{"machine", "dissect"}, nil},
	{"dissect/stack", []string{"capture", "dissect", "machine"}, []string{gopacket}},
	{"dissect/*/layers", []string{"dissect", "dissect/@", "dissect/stack", "wire", "wire/@"}, []string{gopacket}},
	{"dissect/gaffer/netcode", []string{"machine", "machine/@/yojimbo", "wire/@"}, []string{"golang.org/x/crypto"}},
	{"dissect/*", []string{
		"dissect", "dissect/@/netcode", "schema", "machine", "wire", "wire/@", "wire/seq", "wire/bits",
		"machine/@", "machine/@/...",
	}, nil},
	{"analyze", []string{"capture", "capture/stream", "dissect", "host", "machine", "printable", "scale"}, nil},
	{"filter", []string{"analyze", "dissect", "machine", "capture", "printable"}, nil},
	{"figures", []string{"analyze", "filter", "machine", "printable"}, nil},
	{"filter/fields", []string{"filter", "dissect", "machine", "capture"}, nil},
	{
		"show",
		[]string{"analyze", "capture", "dissect", "dissect/stack", "filter", "machine", "printable", "scale"},
		[]string{gopacket, "github.com/dustin/go-humanize"},
	},
	{"show/table", nil, nil},
	{"export", []string{
		"analyze", "dissect", "dissect/stack", "host", "machine", "capture", "filter", "show", "printable",
		"scale",
	}, nil},
	{"batch", []string{"capture/paths", "export", "export/parquet", "outfile", "unit"}, nil},
	{"batch/baseline", []string{"batch", "export", "export/parquet", "printable", "show", "unit"}, nil},
	{"export/parquet", []string{"export", "printable"}, []string{"github.com/parquet-go/parquet-go"}},
	{"protocols", []string{
		"analyze", "dissect", "dissect/gaffer", "dissect/riptide", "dissect/srdp", "schema/yamlfile",
	}, nil},
	{"unit", []string{"analyze", "capture", "dissect", "export", "machine", "protocols"}, nil},
	{"compare", []string{"analyze", "dissect", "figures", "machine", "show"}, nil},
	{"graph", []string{"analyze", "machine", "printable", "scale"}, nil},
	{"ledger", []string{"analyze", "capture", "dissect", "machine", "printable"}, nil},
	{"metrics", []string{"analyze", "capture", "cause", "dissect", "machine", "printable"}, nil},
	{"rewrite/anonymise", []string{"analyze", "capture", "dissect", "machine"}, []string{"golang.org/x/crypto"}},
	{"rewrite/merge", []string{"analyze", "capture", "machine", "scale"}, nil},
	{"rewrite", []string{"analyze", "capture", "dissect", "machine", "replay"}, nil},
	{"replay", []string{"analyze", "capture", "sim", "dissect", "schema", "machine", "printable"}, nil},
	{"recorder", []string{"machine"}, nil},
	{"ring", []string{"capture", "host", "machine", "outfile", "printable"}, nil},
	{"live", []string{"analyze", "capture", "host", "machine", "scale"}, nil},
	{"report", []string{
		"analyze", "compare", "dissect", "gamelog", "graph", "ledger", "machine", "overview", "replay",
		"rewrite/merge", "show", "printable", "scale",
	}, nil},
	{"cause", []string{"analyze", "machine", "show"}, nil},
	{"gamelog", []string{"analyze", "machine", "show"}, nil},
	{"overview", []string{"analyze", "cause", "gamelog", "machine", "printable", "replay", "show"}, nil},
	{"replay/whatif", []string{"agenda", "analyze", "capture", "dissect", "machine"}, nil},
	{"lab", []string{"machine", "agenda", "sim"}, nil},
	{"tui/draw", []string{"printable", "scale"}, []string{"github.com/rivo/tview", "github.com/gdamore/tcell/v2"}},
	{"tui/store", []string{
		"analyze", "capture", "dissect", "filter", "gamelog", "machine", "overview", "replay", "scale", "show",
	}, nil},
	{"tui/browser", []string{"tui/draw", "tui/store", "analyze", "filter", "machine", "show"}, nil},
	{"tui/screens", []string{
		"tui/browser", "tui/draw", "tui/store", "analyze", "capture", "cause", "dissect", "export", "filter", "gamelog",
		"graph", "machine", "overview", "replay", "scale", "show", "show/table",
	}, nil},
	{
		"tui",
		[]string{"tui/...", "analyze", "capture", "filter", "machine", "outfile", "overview", "show"},
		[]string{"github.com/rivo/tview", "github.com/gdamore/tcell/v2"},
	},
	{"cli/app", cliBase(), cliOutside},
	{"cli/privilege", cliBase(), cliOutside},
	{"cli/interfaces", cliBase("privilege"), cliOutside},
	{"cli/reader", cliBase("app", "interfaces"), cliOutside},
	{"cli/listing", cliBase("app", "reader", "state"), cliOutside},
	{"cli/state", cliBase("app", "reader"), cliOutside},
	{"cli/replaying", cliBase("app", "reader"), cliOutside},
	{"cli/comparing", cliBase("app", "reader"), cliOutside},
	{"cli/batching", cliBase("app", "reader"), cliOutside},
	{"cli/files", append(cliBase("app", "reader", "listing"), "web"), cliOutside},
	{"cli/simulate", cliBase("app", "reader"), cliOutside},
	{"cli/labs", cliBase("app", "reader", "privilege", "simulate"), cliOutside},
	{"cli/about", cliBase("app"), cliOutside},
	{"cli/terminal", cliBase("app", "reader"), cliOutside},
	{"cli/serving", append(cliBase("app"), "web"), cliOutside},
	{"cli/protocol", cliBase("app", "simulate", "labs"), cliOutside},
	{"cli/protocol/*", append(cliBase("app", "reader", "simulate", "labs", "protocol"), "dissect/%", "machine/%",
		"machine/%/...", "sim/%", "wire/%", "wire/bits"), cliOutside},
	{"cli", cliBase("..."), cliOutside},
	{"web", nil, nil},
	{"web/engine", []string{"cli", "cli/app", "cli/protocol", "cli/state", "machine"}, nil},
	{"cmd/ackscope", []string{"cli", "cli/protocol", "cli/protocol/...", "web/engine"}, nil},
	{"internal/srdppeer", nil, nil}, // it checks SRDP, and must not share its mistakes
	{"internal/testnet", []string{"internal/testenv"}, []string{"golang.org/x/sys"}},
	{"internal/*", []string{"..."}, []string{gopacket}},
	{"testdata/gen/*", []string{"..."}, nil},
}

// roomOf returns what a package below machine/<p> may import: the imports of
// the protocol's root, the root itself, and the named packages beside it.
func roomOf(beside ...string) []string {
	ours := []string{"machine", "scale", "agenda", "schema", "wire", "wire/@", "wire/seq", "wire/bits", "machine/@"}
	for _, room := range beside {
		ours = append(ours, "machine/@/"+room)
	}
	return ours
}

// cliBase returns what a package of the command line may import. That is the
// inner packages, none of which names a protocol, and the named packages beside
// it.
func cliBase(beside ...string) []string {
	ours := []string{
		"analyze", "batch", "batch/...", "capture", "capture/...", "cause", "compare", "dissect", "dissect/stack",
		"export", "export/...", "figures", "filter", "filter/...", "gamelog", "graph", "host", "lab", "ledger", "live",
		"machine", "metrics", "overview", "outfile", "printable", "recorder", "replay", "replay/...", "report", "rewrite",
		"rewrite/...", "ring", "scale", "schema", "schema/...",
		"show", "show/table", "sim", "tui", "tui/store", "unit",
	}
	for _, p := range beside {
		ours = append(ours, "cli/"+p)
	}
	return ours
}

var cliOutside = []string{
	"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", "golang.org/x/sys",
	"github.com/dustin/go-humanize",
}

var captureOutside = []string{gopacket, "golang.org/x/sys", "golang.org/x/net/bpf", "github.com/klauspost/compress"}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportLaw(t *testing.T) {
	packages := list(t)
	if len(packages) < 3 {
		t.Fatalf("go list found %d packages of %s, expected the whole module", len(packages), module)
	}
	for _, p := range packages {
		for _, broken := range check(strings.TrimPrefix(p.ImportPath, module+"/"), p.Imports) {
			t.Error(broken)
		}
	}
}

// TestLawCatches checks that the law refuses forbidden imports.
func TestLawCatches(t *testing.T) {
	for _, c := range []struct{ importer, imported string }{
		{"wire/seq", module + "/tui"},
		{"sim", module + "/capture"},
		{"sim", module + "/sim/gaffer"},
		{"sim/gaffer", module + "/machine/srdp"},
		{"lab", module + "/sim/gaffer"},
		{"machine/gaffer", module + "/wire/riptide"},
		{"machine/gaffer", gopacket},
		{"dissect/gaffer", gopacket},
		{"dissect", gopacket},
		{"analyze", gopacket},
		{"filter", gopacket},
		{"dissect/stack", module + "/analyze"},
		{"dissect/gaffer/netcode", module + "/dissect/gaffer"},
		{"dissect/gaffer", module + "/dissect/gaffer/layers"},
		{"dissect/gaffer/layers", module + "/wire/riptide"},
		{"analyze", "github.com/gdamore/tcell/v2"},
		{"dissect/srdp", module + "/machine/gaffer"},
		{"machine/gaffer/tracker", module + "/machine/gaffer/judge"},
		{"machine/riptide/vantage", module + "/machine/riptide/tracker"},
		{"machine/gaffer/endpoint", module + "/machine/gaffer/tracker"},
		{"machine/gaffer/judge", module + "/machine/riptide/tracker"},
		{"machine/gaffer", module + "/machine/gaffer/tracker"},
		{"cli/listing", module + "/dissect/riptide"},
		{"cli/protocol/srdp", module + "/dissect/riptide"},
		{"cli/app", module + "/cli/reader"},
		{"cmd/ackscope", module + "/analyze"},
		{"unit", module + "/dissect/gaffer"},
		{"unit", module + "/cli/app"},
		{"analyze", module + "/protocols"},
		{"cli/files", module + "/protocols"},
		{"filter", module + "/filter/fields"},
		{"tui/draw", module + "/analyze"},
		{"tui/store", module + "/tui/draw"},
		{"tui/browser", module + "/tui/screens"},
		{"tui/screens", module + "/tui"},
		{"tui/screens", "github.com/gdamore/tcell/v2"},
		{"internal/srdppeer", module + "/wire/srdp"},
		{"internal/srdppeer", module + "/wire/seq"},
		{"nowhere", module + "/machine"},
	} {
		if len(check(c.importer, []string{c.imported})) == 0 {
			t.Errorf("the law lets %s import %s", c.importer, c.imported)
		}
	}
	if broken := check("machine/gaffer", []string{module + "/wire/gaffer", "fmt"}); len(broken) != 0 {
		t.Errorf("the law refuses what it allows: %v", broken)
	}
}

func check(importer string, imports []string) (broken []string) {
	i := slices.IndexFunc(law, func(r rule) bool { return matches(r.packages, importer) })
	if i < 0 {
		return []string{importer + " is in no ring: add it to the law and to ARCHITECTURE.md"}
	}
	r := law[i]
	for _, imported := range imports {
		if own, ok := strings.CutPrefix(imported, module+"/"); ok {
			if !slices.ContainsFunc(r.ours, func(a string) bool {
				a = strings.ReplaceAll(strings.ReplaceAll(a, "@", protocolOf(importer)), "%", path.Base(importer))
				return matches(a, own)
			}) {
				broken = append(broken, importer+" may not import "+own+": the import law allows "+strings.Join(r.ours, " "))
			}
			continue
		}
		if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
			continue // standard library
		}
		if !slices.ContainsFunc(r.outside, func(a string) bool {
			return imported == a ||
				strings.HasPrefix(imported, a+"/")
		}) {
			broken = append(broken, importer+" may not import "+imported+": the import law allows from outside "+
				strings.Join(r.outside, " "))
		}
	}
	return broken
}

// protocolOf returns the second element of a path, or "".
func protocolOf(importer string) string {
	elements := strings.Split(importer, "/")
	if len(elements) < 2 {
		return ""
	}
	return elements[1]
}

func matches(pattern, name string) bool {
	if strings.Contains(pattern, "/*/") {
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	}
	for _, suffix := range []string{"...", "*"} {
		if base, ok := strings.CutSuffix(pattern, suffix); ok {
			return strings.HasPrefix(name, base) && name != strings.TrimSuffix(base, "/")
		}
	}
	return pattern == name
}

func list(t *testing.T) (out []listed) {
	t.Helper()
	// With a profile, go list names every package a second time as "path [main
	// package]", and the imports of those packages have no name.
	cmd := exec.Command("go", "list", "-pgo=off", "-json=ImportPath,Imports", module+"/...")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(pipe); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return out
}
