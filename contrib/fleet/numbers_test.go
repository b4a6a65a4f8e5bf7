package fleet_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ackscope/ackscope/contrib/fleet/link"
	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/contrib/fleet/sensor"
	"github.com/ackscope/ackscope/export"
)

// numbers is a sensor of rows that are numbered and nothing else. Its journal is a file that a kill does not damage.
// A line before rows are told says how many there will be. A line after they are spooled says so.
func numbers(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("numbers", flag.ContinueOnError)
	hub, key := f.String("hub", "", ""), f.String("key", "", "")
	site, name := f.String("site", "", ""), f.String("name", "", "")
	spoolPath, journalPath := f.String("spool", "", ""), f.String("journal", "", "")
	rows, rate, size := f.Int("rows", 0, ""), f.Int("rate", 0, ""), f.Int64("spool-size", 64<<20, "")
	drain, other := f.Duration("drain", time.Hour, ""), f.Bool("other", false, "tell rows of another version")
	if err := f.Parse(args); err != nil {
		return err
	}
	before, err := readJournal(*journalPath)
	if err != nil {
		return err
	}
	at := message.Place{Site: *site, Sensor: *name}
	spool, err := sensor.OpenSpool(ctx, at, sensor.SpoolOptions{Folder: *spoolPath, Bytes: *size})
	if err != nil {
		return err
	}
	defer spool.Close()
	conn, err := link.Connect(link.Options{URLs: strings.Split(*hub, ","), Key: *key, Inbox: message.Inbox(*site)})
	if err != nil {
		return err
	}
	defer conn.Close()
	x, err := sensor.New(spool, conn, sensor.Options{At: at})
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(*journalPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer journal.Close()
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- x.Serve(serving) }()
	defer func() { stop(); <-ended }()

	const batch = 64
	begun := time.Now()
	made := map[message.Kind][]export.Cell{
		message.Flows:    syntheticRow(message.Flows),
		message.Findings: syntheticRow(message.Findings),
	}
	for n := 0; n < *rows-before.spooled(); n += batch {
		fmt.Fprintf(journal, "%s told %d\n", spool.Epoch(), n+batch)
		for i := range batch {
			kind := message.Stored[i%2]
			body := message.Append(nil, kind, made[kind])
			if *other {
				body[len(message.Version{})-1]++ // a fingerprint of other columns
			}
			if err := spool.Tell(ctx, kind, body); err != nil {
				return err
			}
		}
		if err := spool.Settle(ctx); err != nil {
			return err
		}
		fmt.Fprintf(journal, "%s spooled %d\n", spool.Epoch(), n+batch)
		time.Sleep(time.Until(begun.Add(time.Duration(n) * time.Second / time.Duration(*rate))))
	}
	waiting, cancel := context.WithTimeout(ctx, *drain)
	defer cancel()
	left := x.Drain(waiting)
	report := x.Report(ctx)
	fmt.Printf("confirmed %d dropped %d left %d\n", report.Forwarded, report.Dropped, left)
	return nil
}

// syntheticRow returns a row in which every column has a value that must have one.
func syntheticRow(kind message.Kind) []export.Cell {
	s := message.Schema(kind)
	cells := s.Cells()
	for i := range cells {
		cells[i].Set = s.Columns[i].Absent == export.Never
		if c := &s.Columns[i]; cells[i].Set && c.Type == export.Text {
			cells[i].Bytes = []byte("text of the column " + c.Name)
			if len(c.Words) > 0 {
				cells[i].Bytes = []byte(c.Words[0])
			}
		}
	}
	return cells
}

// journal is what a sensor told in each of its epochs: half of them flows and half findings.
type journal map[string]*struct{ told, spooled int }

func (j journal) spooled() (n int) {
	for _, e := range j {
		n += e.spooled
	}
	return n
}

func readJournal(path string) (journal, error) {
	j := journal{}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return j, nil
	}
	for line := range strings.Lines(string(text)) {
		var epoch, what string
		var n int
		if _, err := fmt.Sscan(line, &epoch, &what, &n); err != nil {
			return nil, err
		}
		if j[epoch] == nil {
			j[epoch] = &struct{ told, spooled int }{}
		}
		if what == "told" {
			j[epoch].told = n
		} else {
			j[epoch].spooled = n
		}
	}
	return j, err
}

// collected is what the tables have: by sensor and epoch, how often each sequence number is there.
type collected map[message.Kind]map[string]map[uint64]int

// readTables reads all files of a collector, also those of rows that it could not read.
func readTables(t *testing.T, folder string) (collected, int) {
	t.Helper()
	c, rows := collected{}, 0
	for _, kind := range message.Stored {
		c[kind] = map[string]map[uint64]int{}
		add := func(sensor, epoch string, seq uint64) {
			k := sensor + " " + epoch
			if c[kind][k] == nil {
				c[kind][k] = map[uint64]int{}
			}
			c[kind][k][seq]++
			rows++
		}
		type row struct {
			Sensor string `parquet:"sensor"`
			Epoch  string `parquet:"epoch"`
			Seq    uint64 `parquet:"seq"`
		}
		for _, r := range readFiles[row](t, folder, string(kind)) {
			add(r.Sensor, r.Epoch, r.Seq)
		}
		type unread struct {
			ID string `parquet:"id"`
		}
		for _, r := range readFiles[unread](t, folder, "unread", string(kind)) {
			id, err := message.ParseID(r.ID)
			if err != nil {
				t.Fatal(err)
			}
			add(id.Sensor, id.Epoch, id.Seq)
		}
	}
	return c, rows
}

// readFiles reads the files of all sites below a folder.
func readFiles[R any](t *testing.T, folder ...string) (rows []R) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(append(folder, "site=*", "*.parquet")...))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		list, err := parquet.ReadFile[R](name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows = append(rows, list...)
	}
	return rows
}

// verdict compares the tables with a journal.
type verdict struct {
	rows      int
	missing   int // rows that were spooled, and are not in the tables
	twice     int
	unspooled int // rows that a killed sensor told and had not spooled
	foreign   int // rows that no sensor told
}

func (v *verdict) String() string {
	return fmt.Sprintf("%d rows, missing %d, twice %d, not spooled by killed sensors %d, never told %d",
		v.rows, v.missing, v.twice, v.unspooled, v.foreign)
}

func (v *verdict) compare(c collected, name string, j journal) {
	for _, kind := range message.Stored {
		for epoch, e := range j {
			seen := c[kind][name+" "+epoch]
			for seq := 1; seq <= e.told/2; seq++ {
				switch n := seen[uint64(seq)]; {
				case n == 0 && seq <= e.spooled/2:
					v.missing++
				case n == 0:
					v.unspooled++
				default:
					v.twice += n - 1
				}
			}
			for seq := range seen {
				if seq > uint64(e.told/2) {
					v.foreign++
				}
			}
		}
	}
}
