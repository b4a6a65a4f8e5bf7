package queries

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// programs run queries, each in an engine that npm installs.
//
//go:embed duckdb/* clickhouse/*
var programs embed.FS

// ClickHouseAsked is the environment variable that asks for tests with ClickHouse too. npm then installs 550 MB.
const ClickHouseAsked = "ACKSCOPE_CLICKHOUSE"

// Table is what a query returns. A value is nil, a bool, a string or a json.Number. An instant is a string in the form
// of RFC 3339, in microseconds.
type Table struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// Runner runs queries in an installed engine.
type Runner struct {
	Engine Engine
	folder string
}

// Install returns the engines that the test can use. It skips the test without node and npm.
func Install(t testing.TB) (list []*Runner) {
	t.Helper()
	engines := []Engine{DuckDB}
	if os.Getenv(ClickHouseAsked) != "" {
		engines = Engines()
	}
	testenv.Need(t, "node")
	npm := testenv.Need(t, "npm")
	for _, e := range engines {
		r := &Runner{e, t.TempDir()}
		files, err := fs.Sub(programs, string(e))
		if err == nil {
			err = os.CopyFS(r.folder, files)
		}
		if err != nil {
			t.Fatal(err)
		}
		command := "ci"
		if _, err := fs.Stat(files, "package-lock.json"); err != nil {
			command = "install" // a lock of chDB needs packages of other systems, which not every registry has
		}
		c := exec.Command(npm, command, "--ignore-scripts", "--no-audit", "--no-fund")
		c.Dir = r.folder
		if said, err := c.CombinedOutput(); err != nil {
			testenv.Skip(t, fmt.Sprintf("npm cannot install %s: %v %.300s", e, err, said))
		}
		list = append(list, r)
	}
	return list
}

// Run runs queries as their files have them. It runs them where the folder tables is.
func (r *Runner) Run(t testing.TB, folder string, names ...string) map[string]Table {
	t.Helper()
	var texts []string
	for _, name := range names {
		text, err := Text(r.Engine, name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	byName := map[string]Table{}
	for i, table := range r.Ask(t, folder, texts...) {
		byName[names[i]] = table
	}
	return byName
}

// Ask runs statements of a test in a folder.
func (r *Runner) Ask(t testing.TB, folder string, texts ...string) (tables []Table) {
	t.Helper()
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c := exec.Command("node", filepath.Join(r.folder, "run.mjs"))
	c.Dir, c.Stdin, c.Stderr = folder, bytes.NewReader(in), &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", r.Engine, err, said.Bytes())
	}
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	if err := d.Decode(&tables); err != nil || len(tables) != len(texts) {
		t.Fatalf("%s: expected %d tables, found %d (%v)", r.Engine, len(texts), len(tables), err)
	}
	return tables
}
