package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ackscope/ackscope/internal/testenv"
)

var update = flag.Bool("update", false, "write the golden files of the scripts anew")

func TestMain(m *testing.M) {
	// `batch` starts its workers as the program that runs: here, this test.
	if len(os.Args) > 1 && os.Args[1] == "batch" {
		os.Exit(Main(known, os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){"ackscope": func() { os.Exit(Main(known, os.Args[1:])) }})
}

// TestScripts runs the scripts of testdata/script with the real command. $PCAPS
// is the folder of the repository's captures.
func TestScripts(t *testing.T) {
	pcaps := filepath.Dir(testenv.Capture(t, "README.md"))
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PCAPS", pcaps)
			e.Setenv("TERM", "dumb")
			e.Setenv("TZ", "UTC")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "live":
				return runtime.GOOS == "linux" && os.Geteuid() == 0, nil
			case "short":
				return testing.Short(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"jsonl":   jsonLines,
			"lines":   countLines,
			"gunzip":  gunzipCapture,
			"cut":     cutFile,
			"send":    sendDatagrams,
			"parquet": writeTable,
			"table":   readTable,
			"hold":    holdFile,
		},
	})
}

// exits CODE COMMAND... runs a command that must end with the code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		text := err.Error()
		if n, parseErr := strconv.Atoi(text[strings.LastIndexByte(text, ' ')+1:]); parseErr == nil {
			got = n
		} else {
			ts.Fatalf("%s: %v", args[1], err)
		}
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit %d, expected %s", got, args[0])
	}
}

// jsonl [KEY...] checks that standard output is JSON Lines: one object a line,
// each with the keys.
func jsonLines(ts *testscript.TestScript, neg bool, keys []string) {
	out := ts.ReadFile("stdout")
	n := 0
	for line := range strings.Lines(out) {
		n++
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			ts.Fatalf("line %d is no JSON object: %v\n%s", n, err, line)
		}
		for _, k := range keys {
			if _, ok := o[k]; !ok {
				ts.Fatalf("line %d has no %q: %s", n, k, line)
			}
		}
	}
	if n == 0 || neg {
		ts.Fatalf("%d lines of JSON", n)
	}
}

// lines N checks that standard output has so many lines.
func countLines(ts *testscript.TestScript, neg bool, args []string) {
	n := strings.Count(ts.ReadFile("stdout"), "\n")
	if len(args) != 1 || neg != (strconv.Itoa(n) != args[0]) {
		ts.Fatalf("%d lines, expected %v", n, args)
	}
}

// gunzip CAPTURE FILE unpacks one of the repository's captures.
func gunzipCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gunzip CAPTURE FILE")
	}
	b, err := unzipped(filepath.Join(ts.Getenv("PCAPS"), args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
}

// cut FILE BYTES OUT copies the start of a file.
func cutFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: cut FILE BYTES OUT")
	}
	b := []byte(ts.ReadFile(args[0]))
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n > len(b) {
		ts.Fatalf("%s has %d bytes", args[0], len(b))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b[:n], 0o600))
}

// listens waits until a capture has bound its socket.
func listens(ts *testscript.TestScript) {
	for range 200 {
		sockets, err := os.ReadFile("/proc/net/packet")
		ts.Check(err)
		for line := range strings.Lines(string(sockets)) {
			// Columns 4 to 6 are protocol, interface and running: a bound socket has
			// all protocols.
			if f := strings.Fields(line); len(f) > 5 && f[3] == "0003" && f[5] == "1" {
				time.Sleep(50 * time.Millisecond)
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("no capture has begun after 10 s")
}

// send N sends so many datagrams to a closed port of this host. It sends the
// first when a capture has begun.
func sendDatagrams(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: send N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	// The socket is not connected, so the port's ICMP errors do not reach it.
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	ts.Check(err)
	defer conn.Close()
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}
	listens(ts)
	for i := range n {
		_, err := conn.WriteTo(fmt.Appendf(nil, "datagram %d", i), to)
		ts.Check(err)
		time.Sleep(10 * time.Millisecond)
	}
}
