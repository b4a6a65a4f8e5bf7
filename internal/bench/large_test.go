//go:build unix

package bench

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/traffic"
)

const (
	frameBytes = 166 // of the synthetic traffic, on average, with the header of the record
	roomBytes  = 2   // a file and its compressed form take less than so many times its size
	interrupts = 5   // how often Ctrl-C is tried
)

// TestLarge runs `flows` over a capture of ACKSCOPE_LARGE bytes (make large): through a pipe, from a file, and from a
// file that zstd compressed. It prints wall time, speed and memory, and how soon Ctrl-C ends the program. Memory must
// not grow with the capture: a tenth of it takes as much.
func TestLarge(t *testing.T) {
	size, err := strconv.ParseFloat(os.Getenv("ACKSCOPE_LARGE"), 64)
	if err != nil || size < 1e9 {
		t.Skip("ACKSCOPE_LARGE is no number of bytes, 1e9 at least")
	}
	program := testenv.Ackscope(t)
	o := traffic.Options{Packets: int(size / frameBytes), Flows: 64, Loss: 0.05, Seed: 1}

	tenth := o
	tenth.Packets /= 10
	from := piped(t, tenth, program, false)
	least := from.anonymous
	show(t, "pipe, a tenth", size/10, from)
	show(t, "pipe", size, hold(t, least, piped(t, o, program, false)))
	for range interrupts {
		piped(t, o, program, true)
	}

	dir := t.TempDir()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil || float64(disk.Bavail)*float64(disk.Bsize) < roomBytes*size {
		t.Skipf("no room in %s for the file: %v", dir, err)
	}
	path := filepath.Join(dir, "large.pcap")
	f, err := os.Create(path)
	if err == nil {
		err = traffic.Write(f, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	zstd := testenv.Need(t, "zstd")
	for _, name := range []string{"file", "zstd"} {
		if name == "zstd" {
			if out, err := exec.Command(zstd, "-q", "-1", "--rm", path).CombinedOutput(); err != nil {
				t.Fatalf("zstd: %v\n%s", err, out)
			}
			path += ".zst"
		}
		show(t, name, size, hold(t, least, start(t, 0, nil, program, "flows", path).watch().end(t)))
		for range interrupts {
			interrupt(t, start(t, 0, nil, program, "flows", path))
		}
	}
}

// piped runs the program at a pipe that gets the traffic as it is made. It interrupts the program if asked to.
func piped(t *testing.T, o traffic.Options, program string, stopped bool) (u usage) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		written <- traffic.Write(w, o)
		_ = w.Close()
	}()
	p := start(t, 0, io.Reader(r), program, "flows", "-")
	_ = r.Close() // the program has its own
	if stopped {
		interrupt(t, p)
		<-written
		return u
	}
	u = p.watch().end(t)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	return u
}

// interrupt sends what Ctrl-C sends while the program reads, and prints how soon it ends.
func interrupt(t *testing.T, p *process) {
	t.Helper()
	time.Sleep(500 * time.Millisecond)
	begun := time.Now()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := p.Wait()
	t.Logf("Ctrl-C: ended after %.1f ms: %v", float64(time.Since(begun))/float64(time.Millisecond), err)
	if err == nil {
		t.Error("the program ended before it was interrupted")
	}
}

// hold fails if more memory was used than for a tenth of the capture. A collection that comes late takes some.
func hold(t *testing.T, least int64, u usage) usage {
	t.Helper()
	if u.anonymous > least*3/2 {
		t.Errorf("%d MiB of anonymous memory, but %d MiB for a tenth of the packets", u.anonymous>>20, least>>20)
	}
	return u
}

func show(t *testing.T, what string, size float64, u usage) {
	t.Helper()
	t.Logf("%-14s %6.1f GB  wall %6.1f s  CPU %6.1f s  %5.0f MB/s  peak %4.0f MiB, anonymous %4.0f MiB", what, size/1e9,
		u.wall.Seconds(), u.cpu.Seconds(), size/1e6/u.wall.Seconds(), float64(u.peak)/mebibyte, float64(u.anonymous)/mebibyte)
}
