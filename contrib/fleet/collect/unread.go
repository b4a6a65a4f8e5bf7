package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/ackscope/ackscope/contrib/fleet/message"
)

// Rows of another version are kept as they came:
//
//	DIR/unread/flows/site=eu/00000000000000004097.parquet   those among the rows from the number 4097 on
//
// Such a file is in place before the file of the tables that has the same name. That one makes both count, so it may
// have no rows. A collector that knows the version moves the rows to the tables when it starts. Their file's name has
// the version:
//
//	DIR/flows/site=eu/00000000000000004097-01c0ffee00.parquet
const unreadFolder = "unread"

// unreadRow is a message whose body this collector cannot read.
type unreadRow struct {
	Number  uint64 `parquet:"number"`
	Stored  int64  `parquet:"stored,timestamp(nanosecond)"`
	Subject string `parquet:"subject"`
	ID      string `parquet:"id"`      // the header, whatever it says
	Version string `parquet:"version"` // message.Version
	Body    []byte `parquet:"body"`
}

const (
	// DefaultUnread bounds the unread rows of a partition on the disk.
	// Source: choice, the rows of some days while collectors wait for their update
	DefaultUnread = 256 << 20
	// mostUnread bounds those of a file. They are in memory until it is written.
	mostUnread = 16 << 20
	// leastFile is what a file takes at least: a block of common file systems. So the bound holds for many small files.
	leastFile = 4096
	// rowSize is what an unread row takes beside its body.
	// Source: bound, the subject, the id and the numbers
	rowSize      = 256
	unreadAtOnce = 16 // rows that are read into memory, each of which may have message.MostBody
	// mostVersions bounds the versions that are told one by one.
	mostVersions = 20
)

// errFull says that there is no room for unread rows. The hub then keeps them.
var errFull = errors.New("no room is left for rows of other versions")

// unread are rows of another version that become a file.
type unread struct {
	file  *os.File
	w     *parquet.GenericWriter[unreadRow]
	rows  int
	bytes int64
}

// keep adds a row to the unread ones of the stretch.
func (p *partition) keep(s *stretch, r *row, m jetstream.Msg, v message.Version) error {
	if s.unread == nil {
		if err := os.MkdirAll(p.unread, 0o755); err != nil {
			return err
		}
		f, err := os.CreateTemp(p.unread, unfinished)
		if err != nil {
			return err
		}
		s.unread = &unread{file: f, w: parquet.NewGenericWriter[unreadRow](f, parquet.Compression(&zstd.Codec{}))}
	}
	s.last = r.number
	s.unread.rows++
	s.unread.bytes += int64(len(r.body)) + rowSize
	_, err := s.unread.w.Write([]unreadRow{{
		Number: r.number, Stored: r.stored.UnixNano(), Subject: m.Subject(), ID: m.Headers().Get(message.Header),
		Version: v.String(), Body: r.body,
	}})
	return err
}

// room reports whether a row may be kept. It measures the folder again before it says no, since the operator may have
// moved files away.
func (p *partition) room(s *stretch, r *row, most int64) (bool, error) {
	more := int64(len(r.body)) + rowSize
	if s.unread != nil {
		more += s.unread.bytes
	}
	if p.kept+more <= most {
		return true, nil
	}
	_, err := p.measure()
	return p.kept+more <= most, err
}

// measure returns the names of the unread files, and notes what they take on the disk.
func (p *partition) measure() (names []string, err error) {
	list, err := os.ReadDir(p.unread) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	p.kept = 0
	for _, entry := range list {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, _, ok := parseName(entry.Name()); ok {
			names = append(names, entry.Name())
			p.kept += max(info.Size(), leastFile)
		}
	}
	return names, err
}

// close ends the file, and drops it unless it is in place.
func (u *unread) close() {
	_ = u.file.Close()
	_ = os.Remove(u.file.Name())
}

// setAside renames an unread file that no file of the tables stands beside. A killed collector left it, or the operator
// moved the tables away. So the hub may send its rows again, and ids tell which. The next file may take its name.
func (p *partition) setAside(name string) error {
	path := filepath.Join(p.unread, name)
	for n := 0; ; n++ {
		err := giveName(path, p.unread, nameOf(name, strconv.Itoa(n)))
		if err == nil {
			return os.Remove(path)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// takeUp moves the rows to the tables that an earlier collector could not read and this one can. Where it is killed in
// between, the next one finds the file of the tables, and only removes the other.
func (c *Collector) takeUp(p *partition) error {
	names, err := p.measure()
	if err != nil {
		return err
	}
	before := c.rows.Load()
	for _, name := range names {
		if err := c.takeUpFile(p, name); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(p.unread, name), err)
		}
	}
	if n := c.rows.Load() - before; n > 0 {
		c.notice(fmt.Sprintf("%s of site %s: %d rows that an earlier collector could not read are in the tables", p.kind,
			p.site, n))
	}
	_, err = p.measure()
	return err
}

func (c *Collector) takeUpFile(p *partition, name string) error {
	taken, err := takenFrom(p.folder, name)
	if err != nil {
		return err
	}
	s, left := &stretch{}, 0
	defer s.close()
	if err := ReadFile(filepath.Join(p.unread, name), unreadAtOnce, func(x *unreadRow) error {
		if taken[x.Version] {
			return nil
		}
		r, bad := p.parseKept(x)
		if _, other := p.decoder.Other(x.Body); other {
			left++
			if bad == nil {
				p.seen.add(r.id) // so that it is not kept twice
			}
			return nil
		}
		return c.add(p, s, &r, bad)
	}); err != nil {
		return err
	}
	if s.table != nil {
		if err := s.table.encoder.Close(); err != nil {
			return err
		}
		if err := p.place(p.folder, nameOf(name, p.decoder.Own().String()), s.table.file); err != nil {
			return err
		}
		c.rows.Add(uint64(s.table.rows))
	}
	// The last unread file may be what says the position, if no file of the tables has its last row.
	if left > 0 || name == p.newest && s.table == nil && len(taken) == 0 {
		return nil
	}
	return os.Remove(filepath.Join(p.unread, name))
}

// takenFrom returns the versions whose rows of an unread file are in the tables.
func takenFrom(tables, name string) (map[string]bool, error) {
	list, err := os.ReadDir(tables)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the operator moved all of them away
	}
	taken := map[string]bool{}
	for _, entry := range list {
		if version, ok := strings.CutPrefix(entry.Name(), strings.TrimSuffix(name, suffix)+"-"); ok {
			taken[strings.TrimSuffix(version, suffix)] = true
		}
	}
	return taken, err
}

// Unread returns how many rows of other versions a collector has kept in a folder, and has not moved to the tables.
func Unread(folder string) (rows uint64, err error) {
	names, err := fs.Glob(os.DirFS(folder), unreadFolder+"/*/site=*/*"+suffix)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		path := filepath.Join(folder, filepath.FromSlash(name))
		below := strings.TrimPrefix(name, unreadFolder+"/")
		taken, err := takenFrom(filepath.Join(folder, filepath.FromSlash(filepath.Dir(below))), filepath.Base(path))
		if err != nil {
			return 0, err
		}
		err = ReadFile(path, unreadAtOnce, func(x *unreadRow) error {
			if !taken[x.Version] {
				rows++
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a collector may just have read it
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	return rows, nil
}
