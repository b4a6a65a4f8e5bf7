package collect

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/internal/queries"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/unit"
)

// told is a row of the tables: its envelope, and what the command line says of the same flow or finding.
type told struct {
	row
	flow string // a name of the flow
	of   queries.Row
	open bool // it is provisional
}

// tables are a collector's tables, and what is in them.
type tables struct {
	folder          string
	flows, findings []told
	partitions      map[string]*partition
	files           map[string]*table
}

// TestOperator: every query of an operator returns what a computation over the command line's rows returns. The
// collector's own code writes the tables.
func TestOperator(t *testing.T) {
	testenv.Grid(t, "npm installs a database")
	engines := queries.Install(t)
	x := newTables(t)
	now := time.Now()
	want := map[string][][]any{
		"operator-last-hour":       x.lastHour(now),
		"operator-common-cause":    x.commonCause(now),
		"operator-gaps":            x.gaps(),
		"operator-quality-by-hour": x.qualityByHour(),
		"operator-top-talkers":     x.topTalkers(now),
	}
	for _, e := range engines {
		got := e.Run(t, x.folder, queries.Names("operator-")...)
		for _, name := range queries.Names("operator-") {
			queries.Compare(t, e.Engine, name, got[name], want[name])
		}
	}
}

// newTables writes tables of three sites, with rows of the last hour, the last day and before. There are sensors that
// began anew and tell a flow again, and rows that lack. Some flows go on, and some no protocol explains.
func newTables(t *testing.T) *tables {
	t.Helper()
	folder, root, program := t.TempDir(), queries.Root(t), queries.Program(t)
	unexplained := filepath.Join(folder, "unexplained.pcap")
	if err := os.WriteFile(unexplained, queries.Unexplained(), 0o600); err != nil {
		t.Fatal(err)
	}
	x := &tables{folder: folder, partitions: map[string]*partition{}, files: map[string]*table{}}
	for _, s := range []struct {
		site, sensor, epoch, capture string
		ago                          time.Duration
		skip                         uint64 // rows that a full spool dropped before
		open                         bool   // the flows go on
	}{
		{"asia", "game-2", "a", "reliable-burst.client.pcap.gz", 48 * time.Hour, 0, false},
		{"asia", "game-2", "a", "u210_falseack.client.pcap.gz", 3 * time.Hour, 0, false},
		{"asia", "game-2", "b", "reliable-loss10.server.pcap.gz", 50 * time.Minute, 2, false},
		{"asia", "game-2", "b", unexplained, 40 * time.Minute, 0, false},
		{"eu", "game-1", "a", "reliable-two-clients.server.pcap.gz", 30 * time.Minute, 0, false},
		{"eu", "game-1", "a", "reliable-ipv6.client.pcap.gz", 29 * time.Minute, 3, false},
		{"eu", "game-3", "a", "u210_loss10.client.pcapng.gz", 20 * time.Minute, 0, true},
		{"us", "game-1", "a", "reliable-loss40.client.pcapng.gz", 100 * time.Minute, 0, false},
		{"us", "game-1", "b", "reliable-loss40.client.pcapng.gz", 10 * time.Minute, 0, false}, // told again
		{"us", "game-1", "b", "reliable-ipv6.client.pcap.gz", 9 * time.Minute, 1, false},
		{"us", "game-1", "c", "reliable-ipv6.client.pcap.gz", 7 * time.Minute, 0, false}, // told again within the hour
		{"us", "game-1", "b", "u210_loss30.client.pcap.gz", 8 * time.Minute, 5, false},
	} {
		path := s.capture
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, "testdata", "pcaps", path)
		}
		p := path
		flows, findings := queries.RowsOf(t, program, "flows", p), queries.RowsOf(t, program, "findings", p)
		result := analysed(t, p)
		if len(flows) != len(result.Flows) || len(findings) != len(result.Findings) {
			t.Fatalf("%s: the command line has other rows than package unit", p)
		}
		at := row{at: message.Place{Site: s.site, Sensor: s.sensor}, stored: time.Now().Add(-s.ago)}
		at.id = message.ID{Sensor: s.sensor, Epoch: strings.Repeat(s.epoch, 32)}
		uids := map[int]unit.UID{}
		for i, f := range flows {
			uids[f.Number("flow")] = result.Flows[i].Flow
		}
		for i, f := range findings {
			cells := message.Schema(message.Findings).Cells()
			setText(&cells[0], uids[f.Number("flow")].String())
			of := flows[slices.IndexFunc(flows, func(r queries.Row) bool { return r.Number("flow") == f.Number("flow") })]
			setText(&cells[1], of.Text("a"))
			setText(&cells[2], of.Text("b"))
			cells[3].Set, cells[3].Int = true, 1
			x.read(t, &export.Findings.Schema, result.Findings[i].Cells, cells[4:])
			// It was told when it was new, less surely, and is told again.
			first := maps.Clone(f)
			first["certainty"], first["count"] = "possible", 1.0
			was := slices.Clone(cells)
			setText(&was[4+column(&export.Findings.Schema, "certainty")], "possible")
			c := &was[4+column(&export.Findings.Schema, "count")]
			c.Uint = 1
			c = &was[4+column(&export.Findings.Schema, "provisional")]
			c.Set, c.Uint = true, 1
			x.tell(t, message.Findings, at, s.skip, was, told{flow: fmt.Sprint(p, f["flow"]), of: first, open: true})
			// Another rule was told too, which the flow's end does not confirm.
			revoked := maps.Clone(first)
			revoked["rule"] = "revoked"
			setText(&was[4+column(&export.Findings.Schema, "rule")], "revoked")
			x.tell(t, message.Findings, at, 0, was, told{flow: fmt.Sprint(p, f["flow"]), of: revoked, open: true})
			if !s.open {
				x.tell(t, message.Findings, at, 0, cells, told{flow: fmt.Sprint(p, f["flow"]), of: f})
			}
		}
		for i, f := range flows {
			if s.open {
				break
			}
			cells := message.Schema(message.Flows).Cells()
			setText(&cells[0], uids[f.Number("flow")].String())
			x.read(t, &export.Flows.Schema, result.Flows[i].Cells, cells[1:])
			x.tell(t, message.Flows, at, s.skip, cells, told{flow: fmt.Sprint(p, f["flow"]), of: f})
		}
	}
	for key, p := range x.partitions {
		if err := p.write(&stretch{table: x.files[key], last: uint64(x.files[key].rows)}); err != nil {
			t.Fatal(err)
		}
		p.close()
	}
	return x
}

func setText(c *export.Cell, text string) { c.Set, c.Bytes = true, []byte(text) }

func column(s *export.Schema, name string) int { return message.Column(s, name) }

// analysed analyses a capture.
func analysed(t *testing.T, path string) *unit.Result {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	r, err := unit.Analyze(context.Background(), path, []unit.Input{{
		Name: path, Size: info.Size(), Reader: f,
	}}, unit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (x *tables) read(t *testing.T, s *export.Schema, from []byte, to []export.Cell) {
	t.Helper()
	if err := s.ReadRow(from, to); err != nil {
		t.Fatal(err)
	}
}

// tell writes a row to the file of its partition.
func (x *tables) tell(t *testing.T, kind message.Kind, at row, skip uint64, cells []export.Cell, as told) {
	t.Helper()
	key := string(kind) + " " + at.at.Site
	if x.partitions[key] == nil {
		p, err := openPartition(filepath.Join(x.folder, "tables"), kind, at.at.Site, message.Schema(kind))
		if err != nil {
			t.Fatal(err)
		}
		x.partitions[key] = p
		if x.files[key], err = p.begin(); err != nil {
			t.Fatal(err)
		}
	}
	p, list := x.partitions[key], &x.flows
	if kind == message.Findings {
		list = &x.findings
	}
	as.row = at
	for _, before := range *list {
		if before.at == at.at && before.id.Epoch == at.id.Epoch {
			as.id.Seq = max(as.id.Seq, before.id.Seq)
		}
	}
	as.id.Seq += 1 + skip
	as.number = uint64(x.files[key].rows) + 1
	as.body = message.Append(nil, kind, cells)
	if err := p.decode(&as.row); err != nil {
		t.Fatal(err)
	}
	if err := p.add(x.files[key], &as.row); err != nil {
		t.Fatal(err)
	}
	*list = append(*list, as)
}
