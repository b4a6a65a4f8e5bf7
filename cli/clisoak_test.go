package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/cli/app"
)

// soakRuns is the default number of runs of TestCommandSoak.
// ACKSCOPE_CLISOAK=RUNS sets another.
const soakRuns = 60

// soakDeadline ends a run that hangs. A run takes a few milliseconds, and up to
// a hundred times that on a busy machine.
const soakDeadline = 60 * time.Second

// soakFree is the memory that a run may take whatever its input: tables, and
// what the collector has not freed. Above that, a run may take soakPerByte for
// each byte of its input. A packet of 60 bytes takes 2 KB with all that is kept
// of it.
const (
	soakFree    = 96 << 20
	soakPerByte = 400
)

// soakSeed is a valid file of one kind.
type soakSeed struct {
	name string
	data []byte
	args [][]string // FILE is the mutated file, CAPTURE a valid capture, OUT a new folder
}

// soakSeeds returns the seeds: captures of each protocol, schemas, profiles,
// keys, journals and baselines.
func soakSeeds(t *testing.T) (list []soakSeed, capture string) {
	t.Helper()
	root := repository(t)
	read := func(name string) []byte {
		path := filepath.Join(root, "testdata", name)
		if strings.HasSuffix(name, ".gz") {
			data, err := unzipped(path)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	reading := [][]string{
		{"flows", "FILE"},
		{"flows", "--json", "FILE"},
		{"packets", "FILE"},
		{"packets", "-V", "-x", "FILE"},
		{"packets", "--json", "FILE"},
		{"packets", "-T", "fields", "-e", "frame", "-e", "gaffer", "-e", "riptide.message_id", "FILE"},
		{"packets", "-T", "ek", "FILE"},
		{"events", "--json", "FILE"},
		{"events", "FILE"},
		{"messages", "FILE"},
		{"messages", "--json", "FILE"},
		{"autopsy", "FILE"},
		{"FILE"},
		{"overview", "--all", "-V", "--json", "FILE", "CAPTURE"},
		{"compare", "--fail-if", "worse or loss > +5%", "FILE", "CAPTURE"},
		{"compare", "--json", "CAPTURE", "FILE"},
		{"flows", "--fail-if", "arrival.p95 > 1s or stall > 1s", "FILE"},
		{"findings", "FILE"},
		{"findings", "--json", "FILE", "CAPTURE"},
		{"ledger", "FILE"},
		{"graph", "FILE"},
		{"graph", "-o", "-", "FILE"},
		{"report", "--format", "markdown", "FILE"},
		{"report", "-o", "-", "FILE"},
		{"state", "FILE"},
		{"state", "--json", "FILE"},
		{"replay", "FILE"},
		{"replay", "--matrix", "FILE"},
		{"replay", "--what-if", "resend=50ms", "FILE"},
		{"merge", "FILE", "CAPTURE"},
		{"merge", "FILE", "FILE"},
		{"guess", "FILE"},
		{"flows", "-Y", "flow.packets > 3", "FILE"},
		{"export", "jsonl", "-o", "-", "--table", "packets", "FILE"},
		{"batch", "-o", "OUT", "FILE"},
		{"batch", "--json", "-o", "OUT", "FILE", "CAPTURE"},
	}
	for _, name := range []string{
		"pcaps/linktype-qinq.pcap.gz", "pcaps/reliable-ipfrag.client.pcap.gz", "pcaps/article-connect.client.pcap.gz",
		"pcaps/yojimbo-server-kick.client.pcap.gz",
		"pcaps/u210_loss10.client.pcapng.gz", "hostile/inj.pcapng",
	} {
		data := read(name)
		const most = 24 << 10 // bytes of a seed: longer ones take longer and show no more
		list = append(list, soakSeed{name, data[:min(len(data), most)], reading})
	}
	table, err := tableOf([]string{"capture", "build"}, []string{"mutant", "1.4"})
	if err != nil {
		t.Fatal(err)
	}
	manifests := [][]string{
		{"batch", "-o", "OUT", "--manifest", "FILE"},
		{"batch", "--json", "-o", "OUT", "--manifest", "FILE", "--partition", "build"},
		{"batch", "-o", "OUT", "--manifest", "FILE", "CAPTURE", "--before", "build=1.4", "--after", "build=2"},
	}
	configured := func(flag string) [][]string {
		return [][]string{
			{"flows", flag, "FILE", "CAPTURE"},
			{"messages", "--json", flag, "FILE", "CAPTURE"},
			{"fields", flag, "FILE"},
			{"protocols", flag, "FILE"},
			{"batch", flag, "FILE", "-o", "OUT", "CAPTURE"},
		}
	}
	profile := []byte("protocol: gaffer\nname: mygame\nbase: article\nsettings:\n  byte_order: big\n  ports: " +
		"[7777]\n---\nprotocol: riptide\nname: b\nsettings: {dialect: \"2.1\"}\n---\n" +
		"protocol: srdp\nname: c\nsettings: {form: direct}\n")
	digits := strings.Repeat("60a1", 16)
	keys := []byte("servers:\n  - {protocol_id: 0x1122334455667788, private_key: " + digits +
		"}\nsessions:\n  - {protocol_id: 1, client_to_server: " + digits + ", server_to_client: " + digits + "}\n")
	list = append(list,
		soakSeed{
			"schema",
			[]byte(fmt.Sprintf(chatSchema, "text") +
				"  1: {name: B, fields: [{name: n, type: uint8}, {name: l, type: array, count: \"n + 1\", item: {type: bool}}]}\n"),
			configured("--schema"),
		},
		soakSeed{"evil.yaml", read("hostile/evil.yaml"), configured("--schema")},
		soakSeed{"evil2.yaml", read("hostile/evil2.yaml"), configured("--schema")},
		soakSeed{"profiles", profile, configured("--profiles")},
		soakSeed{"limits", []byte("loss: 3%\nrtt: 150ms\nstall: off\nbandwidth: 1Mbit/s\n"), configured("--thresholds")},
		soakSeed{"keys", keys, configured("--keys")},
		soakSeed{
			"journal",
			[]byte("{\"journal\":2,\"seed\":1,\"note\":{\"protocol\":\"gaffer:article\"}}\n{\"at\":0,\"host\":0,\"in\":\"wake\"}\n{\"end\":1}\n"),
			[][]string{{"simulate", "--play", "FILE"}, {"lab", "--play", "FILE"}},
		},
		soakSeed{"manifest", []byte("capture,build\nmutant,1.4\n\"none,\",\"2\"\"\"\n*.pcap,\n"), manifests},
		soakSeed{"manifest.parquet", table, manifests},
	)
	return list, filepath.Join(root, "testdata", "hostile", "inj.pcapng")
}

// mutated changes data in one to four places. It changes bits, bytes and
// lengths, and removes, repeats or moves ranges.
//
// Half of the captures keep their length, and only few of their bytes change:
// they are read to their end.
func mutated(rng *rand.Rand, data []byte, capture bool) []byte {
	data = bytes.Clone(data)
	kinds := 8
	if capture && rng.IntN(2) == 0 {
		kinds = 2
	}
	for range 1 + rng.IntN(4) {
		if len(data) == 0 {
			return []byte{0}
		}
		at := rng.IntN(len(data))
		n := rng.IntN(min(len(data)-at, 200) + 1)
		piece := bytes.Clone(data[at : at+n])
		switch rng.IntN(kinds) {
		case 0:
			data[at] ^= 1 << rng.IntN(8)
		case 1:
			data[at] = "\x00\xff[]{}:-?&*!|>'\"#%\n \t\x1b\u0080"[rng.IntN(23)]
		case 2:
			data = data[:at]
		case 3:
			for i := range min(n, 4) {
				data[at+i] = []byte{0, 0xff, 0x7f, 0x80}[rng.IntN(4)]
			}
		case 4:
			data = append(data[:at:at], data[at+n:]...)
		case 5:
			data = append(data[:at:at], append(bytes.Repeat(piece, 1+rng.IntN(40)), data[at:]...)...)
		case 6:
			to := rng.IntN(len(data))
			data = append(data[:to:to], append(piece, data[to:]...)...)
		case 7:
			clear(data[at : at+n])
		}
	}
	return data
}

// soaked is the result of a run.
type soaked struct {
	code           int
	out, complaint string
	peak           uint64 // the most bytes of heap above those at the start
	hung           bool
}

// soak runs a command line and watches its heap.
func soak(args []string) (r soaked) {
	done := make(chan struct{})
	runtime.GC()
	before := heapBytes()
	go func() {
		defer close(done)
		r.code, r.out, r.complaint = inProcess(args...)
	}()
	deadline := time.NewTimer(soakDeadline)
	defer deadline.Stop()
	watch := time.NewTicker(2 * time.Millisecond)
	defer watch.Stop()
	peak := before
	for {
		select {
		case <-done:
			r.peak = max(peak, heapBytes()) - before
			return r
		case <-watch.C:
			peak = max(peak, heapBytes())
		case <-deadline.C:
			return soaked{hung: true} // its goroutine goes on, but the test ends
		}
	}
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestCommandSoak runs commands over mutated captures, schemas, profiles, keys
// and journals. The number of a run repeats it. Every run must meet these
// conditions:
//
//   - It ends by itself with a known exit code.
//   - Its memory is proportional to its input.
//   - A failure prints a message.
//   - No control character of the file reaches the terminal.
//   - JSON consists of whole objects.
func TestCommandSoak(t *testing.T) {
	seeds, sound := soakSeeds(t)
	runs, first := soakRuns, 0
	if text := os.Getenv("ACKSCOPE_CLISOAK"); text != "" {
		number, from, _ := strings.Cut(text, "@") // 1@4711 is run 4711 alone
		var err error
		if runs, err = strconv.Atoi(number); err != nil {
			t.Fatalf("ACKSCOPE_CLISOAK=%s: expected RUNS or RUNS@FIRST", text)
		}
		first, _ = strconv.Atoi(from)
	}
	t.Chdir(t.TempDir())
	note := filepath.Join(os.TempDir(), "ackscope-clisoak-run") // names the run if the process crashes
	defer os.Remove(note)
	commands := map[string]bool{}
	panics, hangs, failed, worst, worstRun := 0, 0, 0, 0.0, 0
	for n := first; n < first+runs; n++ {
		rng := rand.New(rand.NewPCG(uint64(n), 17))
		seed := &seeds[n%len(seeds)]
		data := mutated(rng, seed.data, strings.Contains(seed.name, ".pcap"))
		line := seed.args[rng.IntN(len(seed.args))]
		args := make([]string, len(line))
		for i, word := range line {
			args[i] = strings.NewReplacer("FILE", "mutant", "CAPTURE", sound, "OUT", "out").Replace(word)
		}
		what := fmt.Sprintf("run %d (%s): ackscope %s", n, seed.name, strings.Join(line, " "))
		if os.RemoveAll("out") != nil || os.WriteFile("mutant", data, 0o600) != nil ||
			os.WriteFile(note, []byte(what+"\n"), 0o600) != nil {
			t.Fatal("no room for the mutant")
		}
		commands[line[0]] = true
		r := soak(args)
		if r.hung {
			hangs++
			t.Errorf("%s: not done after %v", what, soakDeadline)
			break // the run goes on, and would distort the memory of the next
		}
		input := len(data)
		if line[len(line)-1] == "CAPTURE" {
			info, err := os.Stat(sound)
			if err != nil {
				t.Fatal(err)
			}
			input += int(info.Size())
		}
		if each := (float64(r.peak) - soakFree) / float64(input); each > soakPerByte {
			t.Errorf("%s: took %d bytes for %d of input", what, r.peak, input)
		}
		if each := float64(r.peak) / float64(input); each > worst && input >= 4<<10 {
			worst, worstRun = each, n
		}
		// `batch` tells of a panic in a table, and of a worker that died.
		apart := line[0] == "batch" && (strings.Contains(r.out, "panic") || strings.Contains(r.out, "quarantined"))
		if strings.Contains(r.complaint, "a fault of ackscope itself") || apart {
			panics++
			t.Errorf("%s: panic: %s%s", what, r.out, r.complaint)
		}
		if r.code == app.ExitFailed {
			failed++
			if r.complaint == "" {
				t.Errorf("%s: failed without a message", what)
			}
		}
		if r.code < app.ExitDone || r.code > app.ExitFailed {
			t.Errorf("%s: exit %d", what, r.code)
		}
		if bad := forbidden(r.out); bad != "" {
			t.Errorf("%s: standard output has %s", what, bad)
		}
		if bad := forbidden(r.complaint); bad != "" {
			t.Errorf("%s: standard error has %s", what, bad)
		}
		if slices.Contains(line, "--json") {
			holdsObjects(t, what, r.out)
		}
	}
	t.Logf("runs %d, seeds %d, commands %d, refused with a message %d, panics %d, hangs %d, most memory for a byte of "+
		"input %.0f bytes (run %d, files of 4 KiB and more)",
		runs, len(seeds), len(commands), failed, panics, hangs, worst, worstRun)
}
