package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Owners tells which process holds a socket. A process's open files can be read by its own user and by root. So
// Survey looks while there are privileges, and later sockets may have no known owner.
type Owners struct {
	proc    string
	known   map[uint64]Owner // by inode
	refused bool             // the open files of some process could not be read
	short   bool             // the last survey ended before it saw all processes
	next    time.Time        // before then, nothing is surveyed again
}

const (
	// maxOwners bounds the sockets whose owner is kept.
	maxOwners = 4096
	// surveyFirst is how long the first survey of the processes takes at most, before anything is captured, and
	// surveyMost a later one.
	// Source: choice, a short wait; a tenth of the time between two samples
	surveyFirst, surveyMost = 2 * time.Second, 100 * time.Millisecond
	// surveyRest is how long no further survey is made, as a multiple of the last one's time.
	// Source: choice, one processor in fifty
	surveyRest = 50
)

// NewOwners returns an empty list, of the processes that a folder of proc(5) shows.
func NewOwners(proc string) *Owners { return &Owners{proc: proc, known: map[uint64]Owner{}} }

// Survey looks which process holds which socket, before anything is captured.
func (o *Owners) Survey() { o.survey(surveyFirst) }

func (o *Owners) survey(most time.Duration) {
	began := time.Now()
	entries, _ := os.ReadDir(o.proc) // those read before an error
	o.refused, o.short = false, false
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if time.Since(began) > most {
			o.short = true
			break
		}
		o.process(pid)
	}
	o.next = time.Now().Add(surveyRest * time.Since(began))
}

// process notes the sockets of one process.
func (o *Owners) process(pid int) {
	folder := filepath.Join(o.proc, strconv.Itoa(pid))
	files, err := os.ReadDir(filepath.Join(folder, "fd"))
	if errors.Is(err, fs.ErrPermission) {
		o.refused = true
	}
	var own Owner
	for _, f := range files {
		target, err := os.Readlink(filepath.Join(folder, "fd", f.Name()))
		number, ok := strings.CutPrefix(target, "socket:[")
		if err != nil || !ok {
			continue
		}
		inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
		if err != nil || len(o.known) >= maxOwners {
			continue
		}
		if own.PID == 0 {
			own = describe(folder, pid)
		}
		if _, ok := o.known[inode]; !ok { // a child inherits it
			o.known[inode] = own
		}
	}
}

// describe reads a process's name and control group.
func describe(folder string, pid int) Owner {
	x := Owner{PID: pid}
	name, _ := os.ReadFile(filepath.Join(folder, "comm")) // it may have ended
	x.Name = clip(strings.TrimSpace(string(name)))
	groups, _ := os.ReadFile(filepath.Join(folder, "cgroup"))
	for line := range strings.Lines(string(groups)) {
		// "0::/system.slice/game.service" of version 2, or "4:memory:/docker/…" of version 1
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && (x.Group == "" || parts[0] == "0") && parts[2] != "/" {
			x.Group = clip(parts[2])
		}
	}
	return x
}

// name sets the owners of sockets.
func (o *Owners) name(sockets []Socket) {
	surveyed := false
	for i := range sockets {
		x := &sockets[i]
		own, ok := o.known[x.Inode]
		if !ok && !surveyed && !time.Now().Before(o.next) {
			o.forget(sockets)
			o.survey(surveyMost)
			surveyed = true
			own, ok = o.known[x.Inode]
		}
		switch {
		case ok:
			x.Owner = own
		case o.refused:
			x.Owner.Why = "the open files of other users' processes may not be read"
		case o.short:
			x.Owner.Why = "there are too many processes to look at them all"
		default:
			x.Owner.Why = "no process that is visible here holds the socket"
		}
	}
}

// forget makes room by dropping the owners of sockets that are not of interest.
func (o *Owners) forget(sockets []Socket) {
	if len(o.known) < maxOwners {
		return
	}
	kept := map[uint64]Owner{}
	for i := range sockets {
		if own, ok := o.known[sockets[i].Inode]; ok {
			kept[sockets[i].Inode] = own
		}
	}
	o.known = kept
}

// Text returns the list as text, for Adopt. The process that captures gives up its privileges by beginning again, and
// passes itself the list so.
func (o *Owners) Text() string {
	const most = 64 << 10 // Linux takes variables of 128 KiB
	var b strings.Builder
	for inode, x := range o.known {
		if b.Len() > most {
			break
		}
		for _, field := range []string{strconv.FormatUint(inode, 10), strconv.Itoa(x.PID), x.Name} {
			b.WriteString(strings.Map(oneLine, field))
			b.WriteByte('\t')
		}
		b.WriteString(strings.Map(oneLine, x.Group))
		b.WriteByte('\n')
	}
	return b.String()
}

func oneLine(r rune) rune {
	if r < ' ' {
		return -1
	}
	return r
}

// Adopt adds what Text returned. It skips lines that it cannot read.
func (o *Owners) Adopt(text string) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 || len(o.known) >= maxOwners {
			continue
		}
		inode, err := strconv.ParseUint(f[0], 10, 64)
		pid, err2 := strconv.Atoi(f[1])
		if err == nil && err2 == nil && pid > 0 {
			o.known[inode] = Owner{PID: pid, Name: clip(f[2]), Group: clip(f[3])}
		}
	}
}
