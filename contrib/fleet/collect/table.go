package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
)

const numberColumn = "number"

// envelope are the columns that say where a row comes from.
var envelope = []export.Column{
	{Name: numberColumn, Type: export.Uint, Doc: "Number of the row in the hub's stream of its site."},
	{Name: "stored", Type: export.Time, Doc: "When the hub stored the row."},
	{Name: "site", Type: export.Text, Doc: "Site of the sensor."},
	{Name: "sensor", Type: export.Text, Doc: "Name of the sensor at its site."},
	{Name: "epoch", Type: export.Text, Doc: "Run of the sensor."},
	{Name: "seq", Type: export.Uint, Doc: "Number of the row in its epoch, from 1. A lacking number is a lost row."},
}

// withEnvelope returns the columns of files, where messages have rows of a schema.
func withEnvelope(of *export.Schema) *export.Schema {
	s := *of
	s.Columns = append(append([]export.Column{}, envelope...), s.Columns...)
	return &s
}

// row is a message of a stream.
type row struct {
	number uint64
	stored time.Time
	at     message.Place
	id     message.ID
	body   []byte
}

// parse reads a message of the partition's stream. Sensors wrote it, so it may be anything.
func (p *partition) parse(m jetstream.Msg) (row, error) {
	about, err := m.Metadata()
	if err != nil {
		return row{}, err
	}
	r := row{number: about.Sequence.Stream, stored: about.Timestamp, body: m.Data()}
	return r, p.origin(&r, m.Subject(), m.Headers().Get(message.Header))
}

// parseKept reads a message that was kept.
func (p *partition) parseKept(x *unreadRow) (row, error) {
	r := row{number: x.Number, stored: time.Unix(0, x.Stored), body: x.Body}
	return r, p.origin(&r, x.Subject, x.ID)
}

// origin reads where a row comes from.
func (p *partition) origin(r *row, subject, id string) error {
	kind, at, err := message.ParseSubject(subject)
	if err != nil {
		return err
	}
	if kind != p.kind || at.Site != p.site {
		return fmt.Errorf("subject: expected %s of site %s, found %s", p.kind, p.site, message.Quoted(subject))
	}
	r.at = at
	if r.id, err = message.ParseID(id); err != nil {
		return err
	}
	if r.id.Sensor != at.Sensor {
		return fmt.Errorf("message id: expected one of sensor %s, found %s", at.Sensor, message.Quoted(id))
	}
	return nil
}

// decode reads the body of a row into the partition's cells. The error says why it is none.
func (p *partition) decode(r *row) error { return p.decoder.Decode(r.body, p.cells[len(envelope):]) }

// table is a stretch of rows that becomes a file.
type table struct {
	file    *os.File
	encoder *parquet.Encoder
	rows    int
}

// begin starts a file. write must end it.
func (p *partition) begin() (*table, error) {
	f, err := os.CreateTemp(p.folder, unfinished)
	if err != nil {
		return nil, err
	}
	return &table{file: f, encoder: parquet.New(f, p.schema)}, nil
}

// add adds the row that was decoded.
func (p *partition) add(t *table, r *row) error {
	for i, text := range []string{2: r.at.Site, 3: r.at.Sensor, 4: r.id.Epoch} {
		if text != "" {
			p.cells[i].Set, p.cells[i].Bytes = true, append(p.cells[i].Bytes[:0], text...)
		}
	}
	p.cells[0].Set, p.cells[0].Uint = true, r.number
	p.cells[1].Set, p.cells[1].Int = true, r.stored.UnixNano()
	p.cells[5].Set, p.cells[5].Uint = true, r.id.Seq
	t.rows++
	return t.encoder.Encode(p.cells)
}

// close ends the file, and drops it unless it is in place.
func (t *table) close() {
	_ = t.file.Close()
	_ = os.Remove(t.file.Name())
}

// stretch is what is read of the stream until a file is written.
type stretch struct {
	table  *table  // nil without rows
	unread *unread // nil without rows of other versions
	last   uint64  // number of the last row
}

func (s *stretch) empty() bool { return s.table == nil && s.unread == nil }

// full reports whether the files have as many rows as they may.
func (s *stretch) full(rows int) bool {
	n := 0
	if s.table != nil {
		n += s.table.rows
	}
	if s.unread != nil {
		n += s.unread.rows
	}
	return n >= rows || s.unread != nil && s.unread.bytes >= mostUnread
}

// close drops what is not in place.
func (s *stretch) close() {
	if s.table != nil {
		s.table.close()
	}
	if s.unread != nil {
		s.unread.close()
	}
}

// write puts the files in place. The last row is the new position.
func (p *partition) write(s *stretch) error {
	name := fileName(p.at + 1)
	if u := s.unread; u != nil {
		if err := u.w.Close(); err != nil {
			return err
		}
		if err := p.place(p.unread, name, u.file); err != nil {
			return err
		}
		if s.table == nil {
			var err error
			if s.table, err = p.begin(); err != nil {
				return err
			}
		}
	}
	if err := s.table.encoder.Close(); err != nil {
		return err
	}
	if err := p.place(p.folder, name, s.table.file); err != nil {
		if s.unread != nil && errors.Is(err, ErrSecond) {
			_ = os.Remove(filepath.Join(p.unread, name)) // the other collector keeps these rows
		}
		return err
	}
	if u := s.unread; u != nil {
		// Where there are no locks, a collector that began just now took it for one of a killed collector.
		if err := giveName(u.file.Name(), p.unread, name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Stat(filepath.Join(p.unread, name))
		if err != nil {
			return err
		}
		p.kept += max(info.Size(), leastFile)
	}
	p.at, p.newest = s.last, name
	return nil
}
