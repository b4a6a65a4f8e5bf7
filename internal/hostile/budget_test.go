package hostile

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// floodFile writes a capture of so many forged packets of a kind.
func floodFile(t *testing.T, kind func(*forger, uint32) []byte, packets int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flood.pcap")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &forger{rng: rand.New(rand.NewPCG(1, 2))}
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d) // nanoseconds
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint32(b, 1<<16)
	b = binary.LittleEndian.AppendUint32(b, 1)
	for n := range packets {
		frame := kind(f, uint32(n))
		at := time.Duration(n) * 10 * time.Microsecond
		b = binary.LittleEndian.AppendUint32(b, uint32(1_700_000_000+at/time.Second))
		b = binary.LittleEndian.AppendUint32(b, uint32(at%time.Second))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
		if b = append(b, frame...); len(b) > 1<<20 || n == packets-1 {
			if _, err := out.Write(b); err != nil {
				t.Fatal(err)
			}
			b = b[:0]
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// budgetMost is the most resident memory of a command with --memory 64MiB. It
// adds the program itself, and what the system keeps of files.
const budgetMost = 64<<20 + 32<<20

// TestBudget reads floods from files within --memory. ACKSCOPE_FLOODS sets the
// number of flows; `make memory` uses a million, of three kinds.
func TestBudget(t *testing.T) {
	testenv.Grid(t, "files of 20,000 flows under every command")
	flows, all := 20000, os.Getenv("ACKSCOPE_FLOODS") != ""
	if n, err := strconv.Atoi(os.Getenv("ACKSCOPE_FLOODS")); err == nil {
		flows = n
	}
	ackscope := testenv.Ackscope(t)
	early := regexp.MustCompile(`warning: ([0-9,]+) flows? ended early to keep within --memory 64MiB`)
	refuses := regexp.MustCompile(`^(state|graph|merge|reduce|anonymise|events -Y)|what-if`) // commands that refuse, since their tables do not fit
	dir := t.TempDir()
	share := filepath.Join(dir, "share.pcapng")
	for _, x := range []struct {
		name string
		make func(*forger, uint32) []byte
		each int // packets of a flow
	}{
		{"spoofed", (*forger).spoofed, 1},
		{"spoofed game", (*forger).spoofedGame, 5},
		{"answered", (*forger).answered, 2},
	} {
		if !all && x.name != "spoofed game" {
			continue
		}
		path := sync.OnceValue(func() string { return floodFile(t, x.make, flows*x.each) })
		for _, command := range []string{
			"flows", "flows --json", "findings", "findings --json", "events", "messages", "autopsy",
			"ledger", "ledger --json", "graph --flow 1", "replay", "replay --what-if resend=50ms",
			"report --format markdown -o " + filepath.Join(dir, "report.md"),
			"report -o " + filepath.Join(dir, "report.html"),
			"export csv --table flows -o -", "export jsonl --table findings -o -", "export pcapng -o -",
			"packets -Y gaffer", "packets -Y flow.rtt>1ms", "events -Y frame.len>100",
			"state --at 1", "state --flow 1 --at 1", "reduce --keep stale-entry IN " + filepath.Join(dir, "least.pcapng"),
			"merge IN IN", "anonymise IN " + share,
		} {
			t.Run(x.name+" "+command, func(t *testing.T) {
				args := strings.Fields(strings.ReplaceAll(command, "IN", path()))
				if !strings.Contains(command, "IN") {
					args = append(args, path())
				}
				cmd := exec.Command(ackscope, append(args, "--memory", "64MiB")...)
				var out countingWriter
				var trouble bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &trouble
				err := cmd.Run()
				peak := testenv.Peak(cmd.ProcessState)
				t.Logf("| %s | %s | %d MiB | %d kB printed | %v | %s",
					x.name, command, peak>>20, out.n>>10, err, strings.TrimSpace(trouble.String()))
				if peak > budgetMost {
					t.Errorf("%d MiB resident, expected at most %d", peak>>20, budgetMost>>20)
				}
				code := cmd.ProcessState.ExitCode()
				if code != 0 && (code != 2 || !refuses.MatchString(command)) {
					t.Errorf("exit %d: %s", code, trouble.String())
				}
				if _, err := os.Lstat(share); err == nil || strings.HasPrefix(command, "anonymise") && code != 2 {
					t.Errorf("exit %d, %v: a capture without the flows that did not fit was written", code, err)
				}
				if command == "flows --json" && out.lines != flows {
					t.Errorf("%d rows, expected one for each of %d flows", out.lines, flows)
				}
				switch strings.Fields(command)[0] {
				case "flows", "findings", "ledger":
					if !early.MatchString(trouble.String()) {
						t.Errorf("no message about discarded flows: %q", trouble.String())
					}
				}
			})
		}
	}
}

// countingWriter counts the bytes and lines of the output.
type countingWriter struct{ n, lines int }

func (w *countingWriter) Write(b []byte) (int, error) {
	w.n += len(b)
	w.lines += bytes.Count(b, []byte{'\n'})
	return len(b), nil
}
