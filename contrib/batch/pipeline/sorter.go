package pipeline

import (
	"bufio"
	"cmp"
	"errors"
	"os"
	"slices"

	"github.com/ackscope/ackscope/contrib/batch/place"
)

// sorter returns values by their names. The values wait in a temporary file. So the memory holds
// the names and places alone, about 200 bytes for each.
type sorter struct {
	file *os.File
	to   *bufio.Writer
	list []sorted
	at   int64
}

// sorted is where a value is.
type sorted struct {
	name   string
	number int // of those with the same name
	at     int64
	length int
}

func newSorter() (*sorter, error) {
	file, err := place.Temporary()
	if err != nil {
		return nil, err
	}
	return &sorter{file: file, to: bufio.NewWriterSize(file, 64<<10)}, nil
}

// add adds a value.
func (s *sorter) add(name string, number int, value []byte) error {
	s.list = append(s.list, sorted{name, number, s.at, len(value)})
	s.at += int64(len(value))
	_, err := s.to.Write(value)
	return err
}

// each passes the values by name and number. The value holds until each goes on.
func (s *sorter) each(pass func(name string, value []byte) error) error {
	if err := s.to.Flush(); err != nil {
		return err
	}
	slices.SortFunc(s.list, func(x, y sorted) int {
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.number, y.number))
	})
	var buf []byte
	for i := range s.list {
		x := &s.list[i]
		buf = slices.Grow(buf[:0], x.length)[:x.length]
		if _, err := s.file.ReadAt(buf, x.at); err != nil {
			return err
		}
		if err := pass(x.name, buf); err != nil {
			return err
		}
	}
	return nil
}

// close adds an error of closing to another one.
func (s *sorter) close(err *error) { *err = errors.Join(*err, s.file.Close()) }
