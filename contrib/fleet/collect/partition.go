package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/export"
)

// partition is the folder of one stream's files: DIR/KIND/site=SITE.
//
// A file holds a stretch of the stream. Its name is the number after the last row of the file before it. It gets that
// name by a link, which fails if there is such a file. So the files are the position. A second
// collector that writes the same stretch fails, also over a network file system that has no locks.
type partition struct {
	folder string
	unread string // folder of the rows of other versions
	kind   message.Kind
	site   string
	at     uint64 // number in the stream of the last row that was written
	newest string // name of the newest file of the tables
	purged uint64 // up to there the hub was told to let rows go
	kept   int64  // bytes that unread rows take on the disk
	lock   *os.File
	seen   seen
	told   map[message.Version]bool

	schema  *export.Schema // of the files
	decoder *message.Decoder
	cells   []export.Cell
}

const (
	suffix     = ".parquet"
	unfinished = ".part-" // a file that is being written
	streamTag  = ".stream"
	lockFile   = ".lock"
	digits     = 20 // of a number in a file's name, so that names sort as numbers do
)

// ErrSecond is the error of a collector whose partition another one writes.
var ErrSecond = errors.New("expected no other collector of this partition, found one")

// openPartition locks a folder, and finds the position. Messages have rows of the given schema.
func openPartition(root string, kind message.Kind, site string, of *export.Schema) (*partition, error) {
	p := &partition{
		folder: filepath.Join(root, string(kind), "site="+site), kind: kind, site: site, seen: seen{},
		unread: filepath.Join(root, unreadFolder, string(kind), "site="+site), told: map[message.Version]bool{},
		decoder: message.NewDecoder(of), schema: withEnvelope(of),
	}
	p.cells = p.schema.Cells()
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		return nil, err
	}
	var err error
	if p.lock, err = lock(filepath.Join(p.folder, lockFile)); err != nil {
		return nil, fmt.Errorf("%s: %w", p.folder, err)
	}
	if err := p.find(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *partition) close() { _ = p.lock.Close() }

// find removes what a killed collector was writing. It reads the position from the newest files, and from all files of
// the tables which rows they have.
func (p *partition) find() error {
	tables, err := clean(p.folder)
	if err != nil {
		return err
	}
	unread, err := clean(p.unread)
	if err != nil {
		return err
	}
	made := map[string]bool{}
	for _, name := range tables { // sorted
		if err := p.seen.read(filepath.Join(p.folder, name)); err != nil {
			return fmt.Errorf("%s: expected a file of this collector: %w", filepath.Join(p.folder, name), err)
		}
		if _, whole, _ := parseName(name); whole {
			made[name], p.newest = true, name
		}
	}
	for _, name := range unread {
		if _, whole, _ := parseName(name); whole && !made[name] {
			if err := p.setAside(name); err != nil {
				return err
			}
		}
	}
	if p.newest == "" {
		return nil
	}
	first, _, _ := parseName(p.newest)
	beside := []string{filepath.Join(p.folder, p.newest), filepath.Join(p.unread, p.newest)}
	taken, err := takenFrom(p.folder, p.newest)
	if err != nil {
		return err
	}
	for version := range taken {
		if !strings.Contains(version, "-") { // as that of rows that the hub may send again: see setAside
			beside = append(beside, filepath.Join(p.folder, nameOf(p.newest, version)))
		}
	}
	for _, path := range beside {
		last, err := lastNumber(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: expected a file of this collector: %w", path, err)
		}
		p.at = max(p.at, last)
	}
	if p.at < first {
		return fmt.Errorf("%s: expected rows from number %d on, found %d", filepath.Join(p.folder, p.newest), first, p.at)
	}
	return nil
}

// clean removes unfinished files, and returns the names of the others, sorted.
func clean(folder string) (names []string, err error) {
	list, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range list {
		name := entry.Name()
		if strings.HasPrefix(name, unfinished) {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
				return nil, err
			}
		}
		if _, _, ok := parseName(name); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// nameOf returns the name of a file of rows that another file has too.
func nameOf(name, more string) string { return strings.TrimSuffix(name, suffix) + "-" + more + suffix }

func fileName(first uint64) string { return fmt.Sprintf("%0*d%s", digits, first, suffix) }

// parseName returns the number in the name of a file. The result whole is false where the name has more. That of a file
// of rows that were unread before has their version.
func parseName(name string) (first uint64, whole, ok bool) {
	text, ok := strings.CutSuffix(name, suffix)
	text, more, has := strings.Cut(text, "-")
	if !ok || len(text) != digits || has && (more == "" || strings.Trim(more, "0123456789abcdef-") != "") {
		return 0, false, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, !has, err == nil
}

// lastNumber returns the number of the last row of a file, or 0 if it has no rows. The rows are in the order of the
// stream.
func lastNumber(path string) (uint64, error) {
	f, file, err := openFile(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	column, ok := file.Schema().Lookup(numberColumn)
	if !ok {
		return 0, fmt.Errorf("expected a column %q, found none", numberColumn)
	}
	if file.NumRows() == 0 {
		return 0, nil
	}
	groups := file.RowGroups()
	group := groups[len(groups)-1]
	pages := group.ColumnChunks()[column.ColumnIndex].Pages()
	defer func() { _ = pages.Close() }() // they were read
	if err := pages.SeekToRow(group.NumRows() - 1); err != nil {
		return 0, err
	}
	page, err := pages.ReadPage()
	if err != nil {
		return 0, err
	}
	defer parquet.Release(page)
	var last [1]parquet.Value
	if n, err := page.Values().ReadValues(last[:]); n == 0 {
		return 0, err
	}
	return last[0].Uint64(), nil
}

// belongs checks that the stream is the one of the files. A hub that lost its store begins to count anew, and the
// collector would wait for numbers that were long given to other rows.
func (p *partition) belongs(made time.Time, last uint64) error {
	path, now := filepath.Join(p.folder, streamTag), made.UTC().Format(time.RFC3339Nano)
	before, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.mark(now)
	case err != nil:
		return err
	}
	if was := strings.TrimSpace(string(before)); was != now {
		return &otherStreamError{fmt.Sprintf("%s: expected the stream made at %s, found one made at %s: the hub has a new "+
			"store. Collect into another folder", p.folder, message.Quoted(was), now)}
	}
	if last < p.at {
		return &otherStreamError{fmt.Sprintf("%s: expected a stream that reaches number %d, found one up to %d: the hub "+
			"lost rows. Collect into another folder", p.folder, p.at, last)}
	}
	return nil
}

// otherStreamError says that the files are those of another stream. Trying again does not help.
type otherStreamError struct{ text string }

func (e *otherStreamError) Error() string { return e.text }

// mark writes down when the stream was made.
func (p *partition) mark(made string) error {
	f, err := os.CreateTemp(p.folder, unfinished)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has another name, or is of no use
	if _, err := f.WriteString(made + "\n"); err != nil {
		return errors.Join(err, f.Close())
	}
	return p.place(p.folder, streamTag, f)
}

// place puts a file in place, under a name that no file may have yet. When it returns, the disk has both. The file
// keeps its first name too.
func (p *partition) place(folder, name string, f *os.File) error {
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	err := giveName(f.Name(), folder, name)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w: %s is there", folder, ErrSecond, name)
	}
	return err
}

// giveName gives a file another name. When it returns, the disk has that.
func giveName(path, folder, name string) error {
	if err := os.Link(path, filepath.Join(folder, name)); err != nil {
		return err
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// pause waits for a time, or for the end of the context.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
