package fleet_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/queries"
	"github.com/ackscope/ackscope/internal/testenv"
)

// TestSmoke runs both ways past one machine over the same captures. `ackscope batch` writes tables of them. Sensors
// read them as well, and a collector that is killed writes tables of what they tell. The rows must be the same, a row
// of numbers may be neither missing nor twice, and a query of each kind runs.
//
// The captures are of each protocol, and later packets decide of none of their findings. A sensor reads packets once,
// and batch reads a capture twice. The package internal/onepass of core compares both ways over all captures.
func TestSmoke(t *testing.T) {
	testenv.Grid(t, "npm installs a database")
	engine, program, folder := queries.Install(t)[0], queries.Program(t), t.TempDir()
	captures := map[string]string{
		"eu": "reliable-two-clients.server.pcap.gz", "us": "reliable-loss40.client.pcapng.gz",
		"asia": "reliable-burst.client.pcap.gz", "riptide": "u210_loss10.client.pcapng.gz",
	}
	for site, name := range captures {
		captures[site] = filepath.Join(queries.Root(t), "testdata", "pcaps", name)
	}
	captures["srdp"] = filepath.Join(folder, "srdp.pcapng")
	simulate := exec.Command(program, "simulate", "-q", "--protocol", "srdp", "--clients", "3", "--services", "any",
		"--loss", "1%", "-w", captures["srdp"])
	if said, err := simulate.CombinedOutput(); err != nil {
		t.Fatalf("simulate: %v\n%s", err, said)
	}
	manifest := "capture,build,region,platform\n"
	for site := range captures {
		build := "1.5"
		if site == "eu" {
			build = "1.4"
		}
		manifest += fmt.Sprintf("%s,%s,%s,pc\n", captures[site], build, site)
	}
	if err := os.WriteFile(filepath.Join(folder, "captures.csv"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	batch := exec.Command(program, "batch", "-q", "-o", "tables", "--manifest", "captures.csv")
	batch.Dir = folder
	if said, err := batch.CombinedOutput(); err != nil {
		t.Fatalf("batch: %v\n%s", err, said)
	}

	f := newFleet(t, 1, []string{"asia", "eu", "numbers", "riptide", "srdp", "us"})
	collector := f.collector()
	const rows = 3840
	numbers := f.numbers("numbers", "n-1", rows, 1500)
	for site, path := range captures {
		start(t, "program", "sensor", "--site", site, "--name", "host-1", "-r", path, "--hub", f.url(), "--key", f.key(site),
			"--spool", f.file("spool-"+site), "--stay")
	}
	until(t, time.Minute, func() bool { _, n := readTables(t, f.file("tables")); return n > rows/4 })
	collector.kill()
	collector.again()
	if err := numbers.wait(time.Minute); err != nil {
		t.Fatal(err)
	}
	var gaps queries.Table
	differ := differences(folder, f.file("tables"))
	until(t, time.Minute, func() bool {
		if _, n := readTables(t, f.file("tables")); n < rows {
			return false
		}
		gaps = engine.Run(t, f.folder, "operator-gaps")["operator-gaps"]
		for _, table := range engine.Ask(t, folder, differ...) {
			if len(table.Rows) != 1 || fmt.Sprint(table.Rows[0]) != "[0 0]" {
				t.Logf("%v rows of batch are not in the fleet's tables, and the other way round", table.Rows)
				return false
			}
		}
		return true
	})
	if err := collector.stop(); err != nil {
		t.Errorf("collector: %v", err)
	}
	total := 0
	for _, row := range gaps.Rows {
		var count, missing, twice int
		if _, err := fmt.Sscan(fmt.Sprintln(row[4], row[6], row[8]), &count, &missing, &twice); err != nil {
			t.Fatal(err)
		}
		total += count
		if missing > 0 || twice > 0 {
			t.Errorf("expected no row missing and none twice, found %v of %v", row, gaps.Columns)
		}
	}
	if len(gaps.Rows) != 2*(len(captures)+1) || total <= rows {
		t.Errorf("expected rows of two kinds of %d sensors, found %v", len(captures)+1, gaps.Rows)
	}
	later := engine.Run(t, folder, "studio-new-rules")["studio-new-rules"]
	if len(later.Rows) == 0 {
		t.Error("expected rules that only the later build breaks, found none")
	}
	t.Logf("%d rows of %d sensors, none missing, none twice; flows and findings equal those of batch; %d rules are new",
		total, len(captures)+1, len(later.Rows))
}

// differences returns a statement for each kind, which counts the rows of batch that the fleet's tables lack, and the
// other way round. The fleet's rows of files also have an envelope, and those of findings were told before too.
func differences(batch, fleet string) (texts []string) {
	for kind, envelope := range map[string]string{"flows": "uid", "findings": "uid, a, b, begun"} {
		texts = append(texts, fmt.Sprintf(`
WITH
one AS (SELECT * EXCLUDE (file) FROM read_parquet('%[1]s/tables/%[2]s/**/*.parquet', hive_partitioning = false)),
other AS (
  SELECT * EXCLUDE (file, number, stored, site, sensor, epoch, seq, %[4]s)
  FROM read_parquet('%[3]s/%[2]s/**/*.parquet', hive_partitioning = false)
  WHERE site <> 'numbers' AND NOT coalesce(provisional, FALSE)
)
SELECT (SELECT count(*) FROM (FROM one EXCEPT ALL FROM other)), (SELECT count(*) FROM (FROM other EXCEPT ALL FROM one))`,
			batch, kind, fleet, envelope))
	}
	return texts
}
