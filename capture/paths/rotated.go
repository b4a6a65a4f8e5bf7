package paths

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// A row of files that a rotating capture wrote is recognised by the writers'
// names, and by the times of the frames:
//
//	match_00001_20261122101500.pcapng   dumpcap, tshark, ackscope -b: NUMBER_TIME
//	match_20261122101500_00001.pcapng   dumpcap -b nametimenum:2: TIME_NUMBER
//	match.pcap, match.pcap1, …          tcpdump -C; with -W match.pcap0, match.pcap1, …
//	match-2026-11-22_10:15:00.pcap      tcpdump -G, by strftime; also %s, the seconds since 1970
//
// .gz and .zst may follow, as tcpdump -z appends them. Most runs look at no such name, so the
// expressions are compiled when they are first asked.
var rowNames = sync.OnceValue(func() (n struct{ dumpcap, timeFirst, tcpdump, strftime *regexp.Regexp }) {
	n.dumpcap = regexp.MustCompile(`^(.*)_(\d{5,9})_(\d{14})(\.[^.]*)?$`)
	n.timeFirst = regexp.MustCompile(`^(.*)_(\d{14})_(\d{5,9})(\.[^.]*)?$`)
	n.tcpdump = regexp.MustCompile(`^(.*\.(?:pcap|pcapng|cap|ntar))(\d{0,9})$`)
	n.strftime = regexp.MustCompile(`^(.*?)((?:19|20)\d\d[-_.]?\d\d[-_.]?\d\d[-_.T ]?\d\d[-_.:h]?\d\d(?:[-_.:m]?\d\d)?` +
		`|1\d{9})(\D*)$`)
	return n
})

// rowSlack is how far two files of a row may overlap in time. When a writer
// begins the next file, it may not have read all packets of one interface.
//
// Source: dumpcap polls its interfaces with a timeout of 250 ms
// (CAP_READ_TIMEOUT in dumpcap.c).
const rowSlack = 250 * time.Millisecond

// rotatedFile is a file whose name fits a row.
type rotatedFile struct {
	path   string
	row    string // equal for the files of one row
	number int    // -1 if the name has none
	style  rotationStyle

	link        uint32
	first, last machine.Instant
}

// rotationStyle is how the names of a row continue.
type rotationStyle uint8

const (
	byNumber rotationStyle = iota // 1, 2, 3, …
	byRing                        // 1, 2, 3, …; the first number follows the last
	byTime                        // no number
)

// rotatedName parses a name. It returns false for a name that no rotating
// writer uses.
func rotatedName(path string) (f rotatedFile, ok bool) {
	f = rotatedFile{path: path, number: -1}
	bare, packed := path, ""
	for _, ending := range []string{".gz", ".zst"} {
		if strings.HasSuffix(path, ending) {
			bare, packed = strings.TrimSuffix(path, ending), ending
		}
	}
	folder, name := filepath.Split(bare)
	number := func(digits string) int {
		n, _ := strconv.Atoi(digits) // nine digits at most
		return n
	}
	key := func(parts ...string) string { return folder + "\x00" + strings.Join(parts, "\x00") + "\x00" + packed }
	names := rowNames()
	if m := names.dumpcap.FindStringSubmatch(name); m != nil {
		f.row, f.number, f.style = key("number", m[1], m[4]), number(m[2]), byNumber
	} else if m := names.timeFirst.FindStringSubmatch(name); m != nil {
		f.row, f.number, f.style = key("time", m[1], m[4]), number(m[3]), byNumber
	} else if m := names.strftime.FindStringSubmatch(name); m != nil {
		f.row, f.style = key("strftime", m[1], m[3]), byTime
	} else if m := names.tcpdump.FindStringSubmatch(name); m != nil {
		f.row, f.number, f.style = key("tcpdump", m[1]), 0, byRing
		if m[2] != "" {
			f.number = number(m[2])
		}
	} else {
		return f, false
	}
	return f, true
}

// Row returns a text that is equal for files whose names fit one row. It returns "" for a name that
// no rotating writer uses.
func Row(path string) string {
	f, ok := rotatedName(path)
	if !ok {
		return ""
	}
	return f.row
}

// RotatedRows groups paths. The files of a row form one group, ordered by time;
// every other file is a group of its own. A group has the position of its first
// file. Files are read only if their names fit a row.
func RotatedRows(paths []string) (groups [][]string) {
	rows, known := map[string][]rotatedFile{}, map[string]bool{}
	for _, path := range paths {
		f, ok := rotatedName(path)
		if !ok || known[path] {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue // opening it will report the problem
		}
		known[path] = true
		rows[f.row] = append(rows[f.row], f)
	}
	partOf := map[string][]string{} // by path
	for _, files := range rows {
		if len(files) < 2 {
			continue
		}
		for _, part := range contiguous(files) {
			for _, path := range part {
				partOf[path] = part
			}
		}
	}
	grouped := map[string]bool{} // paths that are in a group
	for _, path := range paths {
		group := partOf[path]
		if len(group) < 2 {
			groups = append(groups, []string{path})
			continue
		}
		if grouped[path] {
			continue
		}
		for _, p := range group {
			grouped[p] = true
		}
		groups = append(groups, group)
	}
	return groups
}

// contiguous splits the files of a row where one does not continue the other.
func contiguous(files []rotatedFile) (parts [][]string) {
	readable := files[:0]
	for _, f := range files {
		if f.survey() {
			readable = append(readable, f)
		}
	}
	files = readable
	if len(files) == 0 {
		return nil
	}
	slices.SortStableFunc(files, func(x, y rotatedFile) int {
		return cmp.Or(cmp.Compare(x.first, y.first), cmp.Compare(x.last, y.last), cmp.Compare(x.number, y.number))
	})
	lowest, highest, longest := files[0].number, files[0].number, time.Duration(0)
	for i := range files {
		f := &files[i]
		lowest, highest, longest = min(lowest, f.number), max(highest, f.number), max(longest, f.last.Sub(f.first))
	}
	part := []string{files[0].path}
	for i := 1; i < len(files); i++ {
		if !goesOn(&files[i-1], &files[i], lowest, highest, longest) {
			parts, part = append(parts, part), nil
		}
		part = append(part, files[i].path)
	}
	return append(parts, part)
}

// goesOn reports whether y continues x.
func goesOn(x, y *rotatedFile, lowest, highest int, longest time.Duration) bool {
	pause := y.first.Sub(x.last)
	if x.link != y.link || pause < -rowSlack {
		return false
	}
	switch x.style {
	case byRing: // tcpdump -W starts again at the first number
		if x.number == highest && y.number == lowest && highest > lowest {
			return true
		}
	case byTime:
		// A pause as long as a whole file is longer than one period of -G: it was
		// another run of the program.
		return pause <= longest
	case byNumber:
	}
	return y.number == x.number+1
}

// survey reads the file's link type and the times of its first and last frames.
// It returns false if the file has no frame, or cannot be read to its end.
func (f *rotatedFile) survey() bool {
	in, err := capture.Open([]string{f.path}, capture.Options{})
	if err != nil {
		return false
	}
	defer in.Close()
	var fr capture.Frame
	for n := 0; ; n++ {
		if err := in.Next(&fr); err != nil {
			var cut *capture.CutError // the file may still be growing
			return n > 0 && (errors.Is(err, io.EOF) || errors.As(err, &cut))
		}
		if n == 0 {
			f.link, f.first, f.last = fr.LinkType, fr.At, fr.At
		}
		f.first, f.last = min(f.first, fr.At), max(f.last, fr.At)
	}
}
