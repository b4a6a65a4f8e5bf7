package collect

import (
	"slices"

	"github.com/ackscope/ackscope/contrib/fleet/message"
)

// seen knows which rows of a partition are in its files. The hub drops a row that comes again, but it knows only
// the ids of rows that it still has. When a server starts again, it has forgotten those that were collected.
//
// A sensor sends its rows in order, but for some that it has to send again. So for each epoch a few spans of numbers
// are enough. A new collector reads them from the files.
type seen map[string]*spans // by sensor and epoch

const (
	// mostEpochs bounds the epochs. Beyond it any one is forgotten.
	// Source: bound, 262,144 epochs take some 50 MB
	mostEpochs = 1 << 18
	// mostSpans bounds the spans of an epoch: four times the rows that a sensor may have on their way.
	mostSpans = 4096
)

// spans are the numbers that were seen: all up to floor, and those of the list.
type spans struct {
	floor uint64
	list  []span // in order, with gaps between them
	lacks uint64 // numbers up to floor that never came
}

type span struct{ from, to uint64 } // both belong to it

// add adds a row. It returns false if that was seen before, or is so late that its span was given up.
func (s seen) add(id message.ID) bool {
	key := id.Sensor + "." + id.Epoch
	x := s[key]
	if x == nil {
		if len(s) >= mostEpochs {
			for old := range s { // any of them
				delete(s, old)
				break
			}
		}
		x = &spans{}
		s[key] = x
	}
	return x.add(id.Seq)
}

// read adds the rows of a file.
func (s seen) read(path string) error {
	type row struct {
		Sensor string `parquet:"sensor"`
		Epoch  string `parquet:"epoch"`
		Seq    uint64 `parquet:"seq"`
	}
	return ReadFile(path, rowsAtOnce, func(x *row) error {
		s.add(message.ID{Sensor: x.Sensor, Epoch: x.Epoch, Seq: x.Seq})
		return nil
	})
}

const rowsAtOnce = 1024 // that are read into memory

func (x *spans) add(n uint64) bool {
	if n <= x.floor {
		return false
	}
	// i is the first span that ends at n-1 or later.
	i, _ := slices.BinarySearchFunc(x.list, n, func(s span, n uint64) int {
		if s.to+1 < n {
			return -1
		}
		return 1
	})
	switch {
	case i < len(x.list) && x.list[i].from <= n && n <= x.list[i].to:
		return false
	case i < len(x.list) && x.list[i].to+1 == n:
		x.list[i].to = n
		if i+1 < len(x.list) && x.list[i+1].from == n+1 {
			x.list[i].to = x.list[i+1].to
			x.list = slices.Delete(x.list, i+1, i+2)
		}
	case i < len(x.list) && x.list[i].from == n+1:
		x.list[i].from = n
	default:
		x.list = slices.Insert(x.list, i, span{n, n})
	}
	for len(x.list) > 0 && (x.list[0].from == x.floor+1 || len(x.list) > mostSpans) {
		x.lacks += x.list[0].from - x.floor - 1
		x.floor = x.list[0].to
		x.list = slices.Delete(x.list, 0, 1)
	}
	return true
}

// missing returns how many numbers below the largest never came.
func (x *spans) missing() uint64 {
	n, last := x.lacks, x.floor
	for _, s := range x.list {
		n += s.from - last - 1
		last = s.to
	}
	return n
}

// missing returns how many rows never came, of all epochs, as far as later ones show it.
func (s seen) missing() (n uint64) {
	for _, x := range s {
		n += x.missing()
	}
	return n
}
