package apart

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/unit"
)

// What came of a capture is a row of sections: kind (1 byte) | length (4) | body.
const (
	sectionHead = 5
	kindStatus  = 's' // unit.Status in JSON
	kindSummary = 'm' // batch.Summary of the capture in JSON
	kindRows    = '0' // and the number of the table: rows, each behind its length
)

// mostBlock is where a block of rows ends. One row more may follow.
// Source: bound, the memory of what passes between processes and steps
const mostBlock = 1 << 20

// writeResult writes what came of a capture.
func writeResult(w io.Writer, c *batch.Capture, r *unit.Result) error {
	var sum batch.Summary
	sum.Add(c, &r.Status, r.Aggregates)
	to := bufio.NewWriterSize(w, 64<<10)
	for _, x := range []struct {
		kind  byte
		value any
	}{{kindStatus, &r.Status}, {kindSummary, &sum}} {
		b, err := json.Marshal(x.value)
		if err != nil {
			return err
		}
		if err := section(to, x.kind, b); err != nil {
			return err
		}
	}
	for table, rows := range [][]unit.Row{r.Flows, r.Findings} {
		var block []byte
		for i := range rows {
			block = append(binary.AppendUvarint(block, uint64(len(rows[i].Cells))), rows[i].Cells...)
			if len(block) < mostBlock && i < len(rows)-1 {
				continue
			}
			if err := section(to, kindRows+byte(table), block); err != nil {
				return err
			}
			block = block[:0]
		}
	}
	return to.Flush()
}

func section(w io.Writer, kind byte, body []byte) error {
	if uint64(len(body)) > 1<<32-1 {
		return fmt.Errorf("a row has %d bytes: expected less than 4 GiB", len(body))
	}
	var head [sectionHead]byte
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(body)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// errDamaged is of a file that a process left incomplete.
var errDamaged = errors.New("what came of the capture is damaged")

// readSection reads a section. It returns io.EOF at the end.
func readSection(r io.Reader) (kind byte, body []byte, err error) {
	var head [sectionHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errDamaged
		}
		return 0, nil, err
	}
	body = make([]byte, binary.LittleEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, errDamaged
	}
	return head[0], body, nil
}

// Rows passes the rows of a block.
func Rows(block []byte, row func(cells []byte) error) error {
	for len(block) > 0 {
		n, used := binary.Uvarint(block)
		if used <= 0 || n > uint64(len(block)-used) {
			return errDamaged
		}
		if err := row(block[used : used+int(n)]); err != nil {
			return err
		}
		block = block[used+int(n):]
	}
	return nil
}
