package collect

import (
	"fmt"
	"os"
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

// Schema returns the columns of the files of a kind.
func Schema(kind message.Kind) *export.Schema {
	s := *message.Schema(kind)
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
	kind, at, err := message.ParseSubject(m.Subject())
	if err != nil {
		return r, err
	}
	if kind != p.kind || at.Site != p.site {
		return r, fmt.Errorf("subject: expected %s of site %s, found %s", p.kind, p.site, message.Quoted(m.Subject()))
	}
	r.at = at
	if r.id, err = message.ParseID(m.Headers().Get(message.Header)); err != nil {
		return r, err
	}
	if r.id.Sensor != at.Sensor {
		return r, fmt.Errorf("message id: expected one of sensor %s, found %s", at.Sensor, message.Quoted(r.id.String()))
	}
	return r, nil
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
	return &table{file: f, encoder: parquet.New(f, Schema(p.kind))}, nil
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

// write puts the table in place. Its last row is the new position.
func (p *partition) write(t *table, last uint64) error {
	defer func() {
		_ = t.file.Close()
		_ = os.Remove(t.file.Name())
	}()
	if err := t.encoder.Close(); err != nil {
		return err
	}
	if err := p.place(fileName(p.at+1), t.file); err != nil {
		return err
	}
	p.at = last
	return nil
}
