package ring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
)

// What blocks of a pcapng file take beside what they hold, at most.
// Source: the writer of package capture
const (
	headBytes       = 256  // of a file: the section with its comment
	interfaceBytes  = 1024 // an interface with usual names
	statisticsBytes = 104  // five counts of an interface
	blockBytes      = 48   // of a frame, and of a sample
)

// frameBytes returns the most that a frame takes in a file.
func frameBytes(f *capture.Frame) int64 { return int64(len(f.Data)+len(f.Options)) + blockBytes }

// sampleBytes returns the most that a sample takes in a file.
func sampleBytes(s *host.Sample) int64 {
	return int64(len(s.Append(nil))+len(s.Text())) + blockBytes
}

// writing is the file that the ring writes now.
type writing struct {
	file  *file
	to    *outfile.File
	out   *capture.Writer
	began time.Time
	ids   map[[2]int]int // (file, interface) to the written id
	keys  [][2]int       // by id
}

// tail returns what the end of the file takes, with one more interface.
func (x *writing) tail() int64 { return int64(len(x.keys)+1)*statisticsBytes + interfaceBytes }

// runWords begin the comment that says which run wrote a file.
const runWords = "ackscope ring: run "

// begin creates the next file, and makes room for it.
func (r *Ring) begin() error {
	now := r.options.Now()
	path := r.row.Next(now)
	f := &file{
		Kept: Kept{Bytes: r.options.FileBytes}, number: uint64(r.row.number), path: path,
		told: told{known: true, run: r.run},
	}
	r.files = append(r.files, f)
	r.shelf.Add(&f.Kept)
	err := r.prune()
	var to *outfile.File
	if err == nil {
		to, err = r.options.Outputs.Row(path, outfile.Payload)
	}
	if err != nil {
		r.forget(f)
		return err
	}
	f.path, f.Made = to.Path(), []outfile.Made{to.Made()}
	x := &writing{file: f, to: to, began: now, ids: map[[2]int]int{}}
	r.open = x
	x.out, err = capture.NewWriter(to, capture.WriterOptions{
		Application: "ackscope", FlushEvery: flushEvery,
		Comments: []string{fmt.Sprintf("%s%s, file %d", runWords, r.run, f.number)},
	})
	return err
}

// forget takes a file off the list that does not exist.
func (r *Ring) forget(f *file) {
	r.files = slices.DeleteFunc(r.files, func(x *file) bool { return x == f })
	r.shelf.take(slices.Index(r.shelf.kept, &f.Kept))
}

// write writes a frame.
func (x *writing) write(r *Ring, f *capture.Frame) error {
	key := [2]int{f.Ref.File(), f.Interface}
	id, ok := x.ids[key]
	if !ok {
		in := r.options.Interface(key[0], key[1])
		in.LinkType, in.Statistics, in.OffsetSeconds = f.LinkType, nil, 0
		var err error
		if id, err = x.out.AddInterface(in); err != nil {
			return err
		}
		x.ids[key], x.keys = id, append(x.keys, key)
	}
	copied := *f
	copied.Interface, copied.Ref = id, machine.Ref(0)
	if err := x.out.WriteFrame(&copied); err != nil {
		return err
	}
	x.file.add(f.At)
	return nil
}

// end ends the open file, with the counts of its interfaces.
func (r *Ring) end() error {
	x := r.open
	if x == nil {
		return nil
	}
	r.open = nil
	for id, st := range r.counts(x) {
		x.out.SetStatistics(id, st)
		r.base[x.keys[id][1]] = plus(r.base[x.keys[id][1]], st)
	}
	err := errors.Join(x.out.Close(), x.to.Commit())
	x.file.ended = r.options.Now()
	r.shelf.resize(&x.file.Kept, x.out.Written())
	for _, p := range r.pins {
		p.hold(x.file)
	}
	return err
}

// counts returns the open file's part of the counts, by id. It is empty if they are not known.
func (r *Ring) counts(x *writing) map[int]capture.Statistics {
	list := map[int]capture.Statistics{}
	if r.options.Counts == nil {
		return list
	}
	all, err := r.options.Counts()
	if err != nil {
		return list // the capture itself reports the error, and a cut says that the counts are not known
	}
	for id, key := range x.keys {
		if key[1] < len(all) {
			list[id] = minus(all[key[1]], r.base[key[1]])
		}
	}
	return list
}

// plus and minus add and subtract what an interface counted. Counts that went back begin anew.
func plus(a, b capture.Statistics) capture.Statistics {
	return capture.Statistics{
		Received: a.Received + b.Received, Dropped: a.Dropped + b.Dropped,
		FilterAccepted: a.FilterAccepted + b.FilterAccepted,
		OSDropped:      a.OSDropped + b.OSDropped, Delivered: a.Delivered + b.Delivered, Known: b.Known,
	}
}

func minus(a, b capture.Statistics) capture.Statistics {
	less := func(x, y uint64) uint64 {
		if y > x {
			return x
		}
		return x - y
	}
	return capture.Statistics{
		Received: less(a.Received, b.Received), Dropped: less(a.Dropped, b.Dropped),
		FilterAccepted: less(a.FilterAccepted, b.FilterAccepted), OSDropped: less(a.OSDropped, b.OSDropped),
		Delivered: less(a.Delivered, b.Delivered), Known: a.Known,
	}
}

// ringName are the names of the ring's files: the number, and a part that Outputs.Row may add.
var ringName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^ring_(\d{5,15})_\d{14}(?:_[0-9a-f]{16})?\.pcapng$`)
})

// mostNumber bounds the numbers that are taken over, so that those that follow fit the names.
// Source: choice, a file every second for three million years
const mostNumber = 100_000_000_000_000

// adopt takes over the files of an earlier run. Links, folders and other names are left alone.
func (r *Ring) adopt() error {
	entries, err := os.ReadDir(r.folder)
	if err != nil {
		return fmt.Errorf("ring: %w", err)
	}
	for _, e := range entries {
		m := ringName().FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			if e.Name() != lockName {
				r.status.Foreign++
			}
			continue
		}
		path := filepath.Join(r.folder, e.Name())
		info, err := e.Info()
		if err != nil {
			continue // it is gone by now
		}
		made, err := outfile.Existing(path)
		if err != nil {
			continue
		}
		number, _ := strconv.ParseUint(m[1], 10, 64) // fifteen digits at most
		if number >= mostNumber {
			r.status.Foreign++
			continue
		}
		r.files = append(r.files, &file{
			Kept: Kept{Made: []outfile.Made{made}, Bytes: info.Size()}, path: path, number: number, ended: info.ModTime(),
		})
	}
	slices.SortFunc(r.files, func(x, y *file) int {
		if x.number != y.number {
			if x.number < y.number {
				return -1
			}
			return 1
		}
		return strings.Compare(x.path, y.path)
	})
	for _, f := range r.files {
		r.shelf.Add(&f.Kept)
		r.row.number = int(f.number)
	}
	return nil
}
