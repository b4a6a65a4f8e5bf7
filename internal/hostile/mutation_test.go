package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	deadline  = 60 * time.Second // these files take a fraction of a second
	memory    = 300 << 20        // bytes resident; an undamaged file takes a tenth
	mutations = 12               // of each capture; ACKSCOPE_MUTATIONS sets another number
)

// seeds are small captures of different formats, byte orders, link types and
// dialects.
var seeds = []string{
	"linktype-bigendian-nsec.pcap.gz",
	"linktype-qinq.pcap.gz",
	"linktype-null-be.pcap.gz",
	"reliable-ipv6.server.pcapng.gz",
	"reliable-ipfrag.client.pcap.gz",
	"article-connect.client.pcap.gz",
	"crc32-clean.client.pcap.gz",
	"reliable-loss10.server.pcap.gz",
	"yojimbo-server-kick.client.pcap.gz",
	"plain-be-loss20-reorder.client.pcapng.gz",
}

var commands = [][]string{
	{"flows", "--json"},
	{"packets", "--json"},
	{"events", "--json"},
	{"findings", "--json"},
	{"flows"},
	{"packets", "-V", "-x"},
	{"findings"},
	{"packets", "--json", "-V", "-x"},
	{"state"},
	{"state", "--json"},
	{"packets", "-T", "fields", "-e", "frame", "-e", "ip.addr", "-e", "udp", "-Y", "frame[-1] != 00 || malformed"},
}

func TestMutatedCaptures(t *testing.T) {
	program := testenv.Ackscope(t)
	count := mutations
	if v, err := strconv.Atoi(os.Getenv("ACKSCOPE_MUTATIONS")); err == nil {
		count = v
	} else if testing.Short() {
		count = 3
	}
	for s, name := range seeds {
		t.Run(name, func(t *testing.T) {
			sound := testenv.Unpacked(t, testenv.Capture(t, name))
			for i := range count {
				// The name of the test and i are the seed of a mutation: they reproduce
				// it.
				rng := rand.New(rand.NewPCG(uint64(s), uint64(i)))
				data, what := mutate(rng, sound)
				if i%6 == 5 {
					data, what = damage(rng, zip(t, data)), what+", compressed, the stream damaged"
				}
				path := filepath.Join(t.TempDir(), "mutant.pcap")
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				args := commands[i%len(commands)]
				if fault := try(t, program, append(args, path)...); fault != "" {
					kept := filepath.Join(os.TempDir(), fmt.Sprintf("ackscope-mutant-%d-%d.pcap", s, i))
					if err := os.WriteFile(kept, data, 0o600); err == nil {
						fault += " (kept as " + kept + ")"
					}
					t.Errorf("mutation %d (%s), ackscope %s: %s", i, what, strings.Join(args, " "), fault)
				}
			}
		})
	}
}

// TestWhatIsNoCapture: a file that is no capture is refused with one line that
// names it.
func TestWhatIsNoCapture(t *testing.T) {
	program := testenv.Ackscope(t)
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"empty":      nil,
		"short":      {0xd4, 0xc3},
		"text":       []byte("frame,time\n1,2\n"),
		"zeros":      make([]byte, 4096),
		"empty gzip": zip(t, nil),
		"text gzip":  zip(t, []byte("nothing here")),
		"modified":   {0x34, 0xcd, 0xb2, 0xa1, 2, 0, 4, 0},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range commands {
			refused(t, program, name, append(args, path)...)
		}
	}
	refused(t, program, "nowhere", "flows", filepath.Join(dir, "nowhere"))
	refused(t, program, filepath.Base(dir), "flows", dir)
}

func refused(t *testing.T, program, name string, args ...string) {
	t.Helper()
	r := start(t, program, args...)
	if r.code != 2 {
		t.Errorf("%s: ackscope %s: exit %d, expected 2; it said %q", name, args[0], r.code, r.complaint)
	}
	if !strings.Contains(r.complaint, name) || strings.Count(strings.TrimSpace(r.complaint), "\n") > 2 {
		t.Errorf("%s: ackscope %s says %q, expected a line or two that name the file", name, args[0], r.complaint)
	}
	if r.output != "" {
		t.Errorf("%s: ackscope %s printed %q", name, args[0], r.output)
	}
}

// try describes what is wrong with a run over a damaged capture. It returns ""
// for nothing.
func try(t *testing.T, program string, args ...string) string {
	t.Helper()
	r := start(t, program, args...)
	switch {
	case r.timeout:
		return fmt.Sprintf("not done after %v", deadline)
	case strings.Contains(r.complaint, "goroutine ") || strings.Contains(r.complaint, "panic"):
		return "crashed: " + r.complaint
	case r.code != 0 && r.code != 2:
		return fmt.Sprintf("exit %d, expected 0 or 2; it said %q", r.code, r.complaint)
	case r.code == 2 && r.complaint == "":
		return "exit 2 without a message"
	case r.peak > memory:
		return fmt.Sprintf("took %d MiB, expected less than %d", r.peak>>20, memory>>20)
	}
	if args[1] != "--json" {
		return ""
	}
	for i, l := range strings.Split(strings.TrimSuffix(r.output, "\n"), "\n") {
		if l != "" && !json.Valid([]byte(l)) {
			return fmt.Sprintf("line %d is no JSON: %.100s", i+1, l)
		}
	}
	return ""
}

type result struct {
	code              int
	timeout           bool
	peak              int64
	output, complaint string
}

func start(t *testing.T, program string, args ...string) (r result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		t.Fatal(err)
	}
	r.timeout = ctx.Err() != nil
	r.output, r.complaint = out.String(), complaint.String()
	if cmd.ProcessState != nil {
		r.code = cmd.ProcessState.ExitCode()
		r.peak = testenv.Peak(cmd.ProcessState)
	}
	return r
}

// mutate changes a capture in one to three ways.
func mutate(rng *rand.Rand, sound []byte) (data []byte, what string) {
	data = bytes.Clone(sound)
	for n := 1 + rng.IntN(3); n > 0; n-- {
		var did string
		switch rng.IntN(8) {
		case 0:
			bits := 1 + rng.IntN(64)
			for range bits {
				data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
			}
			did = fmt.Sprintf("%d bits flipped", bits)
		case 1: // near the start: file, section and interface headers
			at := rng.IntN(min(len(data), 200))
			data[at] = byte(rng.Uint32())
			did = fmt.Sprintf("byte %d of the headers", at)
		case 2:
			data = data[:1+rng.IntN(len(data))]
			did = fmt.Sprintf("cut at %d", len(data))
		case 3: // a value that may be a length
			if at := rng.IntN(len(data)) &^ 3; at+4 <= len(data) {
				v := []uint32{0, 1, 0xffff, 0x7fffffff, 0xffffffff, 0xf0000000, 1 << 24, rng.Uint32()}[rng.IntN(8)]
				binary.LittleEndian.PutUint32(data[at:], v)
				did = fmt.Sprintf("%#x at %d", v, at)
			}
		case 4:
			from, n := stretch(rng, data)
			clear(data[from : from+n])
			did = fmt.Sprintf("%d zeros at %d", n, from)
		case 5:
			from, n := stretch(rng, data)
			data = append(data[:from+n:from+n], data[from:]...)
			did = fmt.Sprintf("%d bytes at %d repeated", n, from)
		case 6:
			from, n := stretch(rng, data)
			data = append(data[:from:from], data[from+n:]...)
			did = fmt.Sprintf("%d bytes at %d left out", n, from)
		case 7: // two words swapped
			a, b := rng.IntN(len(data))&^3, rng.IntN(len(data))&^3
			if max(a, b)+4 <= len(data) {
				x, y := binary.LittleEndian.Uint32(data[a:]), binary.LittleEndian.Uint32(data[b:])
				binary.LittleEndian.PutUint32(data[a:], y)
				binary.LittleEndian.PutUint32(data[b:], x)
				did = fmt.Sprintf("words at %d and %d swapped", a, b)
			}
		}
		if len(data) == 0 {
			data = sound[:1]
		}
		if what != "" && did != "" {
			what += ", "
		}
		what += did
	}
	return data, what
}

func stretch(rng *rand.Rand, data []byte) (from, n int) {
	from = rng.IntN(len(data))
	return from, rng.IntN(min(len(data)-from, 2000) + 1)
}

func damage(rng *rand.Rand, data []byte) []byte {
	if rng.IntN(2) == 0 {
		return data[:1+rng.IntN(len(data))]
	}
	data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
	return data
}

func zip(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
