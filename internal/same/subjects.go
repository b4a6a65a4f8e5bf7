package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// subject is one capture, or one run without a capture.
type subject struct {
	name    string
	prepare func(n *net, dir string) (string, error) // makes the capture; nil if it exists
	capture string
	runs    []command
	state   bool // run state at ten frames, which needs the capture's length
}

// command is one run of the program. In its arguments CAPTURE is the capture,
// and OUT a file that the run writes. The file is hashed too.
type command struct {
	name string
	args []string
}

func cmd(name string, args ...string) command { return command{name, args} }

// onCapture are the runs over each capture.
var onCapture = []command{
	cmd("overview", "overview", "CAPTURE"),
	cmd("overview.json", "overview", "--json", "CAPTURE"),
	cmd("flows", "flows", "CAPTURE"),
	cmd("flows.json", "flows", "--json", "CAPTURE"),
	cmd("packets", "packets", "CAPTURE"),
	cmd("packets.tree", "packets", "-V", "-x", "-c", "40", "CAPTURE"),
	cmd("packets.json", "packets", "--json", "CAPTURE"),
	cmd("events", "events", "CAPTURE"),
	cmd("events.json", "events", "--json", "CAPTURE"),
	cmd("findings", "findings", "CAPTURE"),
	cmd("findings.json", "findings", "--json", "CAPTURE"),
	cmd("messages", "messages", "CAPTURE"),
	cmd("messages.json", "messages", "--json", "CAPTURE"),
	cmd("replay", "replay", "CAPTURE"),
	cmd("matrix.json", "replay", "--matrix", "--json", "CAPTURE"),
	cmd("report", "report", "-o", "OUT", "CAPTURE"),
	cmd("markdown", "report", "--format", "markdown", "CAPTURE"),
	cmd("ledger.json", "ledger", "--json", "CAPTURE"),
	cmd("autopsy", "autopsy", "CAPTURE"),
	cmd("export.flows", "export", "csv", "--table", "flows", "-o", "OUT", "CAPTURE"),
	cmd("export.pcapng", "export", "pcapng", "-o", "OUT", "CAPTURE"),
	cmd("export.qlog", "export", "qlog", "-o", "OUT", "CAPTURE"),
}

func (n *net) subjects() ([]subject, error) {
	var list []subject
	captures, err := filepath.Glob("testdata/pcaps/*.pcap*")
	if err != nil {
		return nil, err
	}
	if len(captures) == 0 {
		return nil, errors.New("no captures in testdata/pcaps: run it from the root of the repository")
	}
	for _, c := range captures {
		if strings.HasSuffix(c, ".replay") {
			continue
		}
		list = append(list, subject{name: filepath.Base(c), capture: c, runs: onCapture, state: true})
	}
	list = append(list, simulated()...)
	list = append(list, alone()...)
	if *only != "" {
		want, err := regexp.Compile(*only)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(s subject) bool { return !want.MatchString(s.name) })
	}
	return list, nil
}

// simulated returns the subjects whose captures are simulated: ten seeds of
// each protocol, over UDP, TCP and proxies. Some of them have faults.
func simulated() (list []subject) {
	kinds := []struct {
		name string
		args []string
	}{
		{"gaffer", []string{"--protocol", "gaffer:reliable"}},
		{"article", []string{"--protocol", "gaffer:article"}},
		{"messages", []string{"--protocol", "gaffer:article-messages", "--messages", "20"}},
		{"riptide", []string{"--protocol", "riptide:2.2.1"}},
		{"riptide-tcp", []string{"--protocol", "riptide:2.1.0:tcp"}},
		{"srdp", []string{"--protocol", "srdp", "--services", "any", "--clients", "3"}},
		{"srdp-proxied", []string{"--protocol", "srdp:proxied", "--services", "any"}},
		{"srdp-le", []string{"--protocol", "srdp:direct-le", "--services", "order", "--clients", "2"}},
	}
	faults := map[string][]string{
		"gaffer": {
			"", "ack-gaps", "", "sequence-skipped", "", "ack-bit-off-by-one", "", "stale-entry-kept", "",
			"fragments-reversed",
		},
		"riptide": {"", "window-shift", "", "ack-missing", "", "resend-early", "", "sequence-skipped", "", "rtt-doubled"},
		"srdp":    {"", "ack-missing", "", "resend-early", "", "id-skipped", "", "resend-changed", "", "ack-twice"},
	}
	for _, k := range kinds {
		for seed := range 10 {
			args := append([]string{"simulate"}, k.args...)
			args = append(args, "--seed", strconv.Itoa(seed+1), "--duration", "6s", "--loss",
				[]string{"0%", "5%", "20%", "40%", "10%/2%"}[seed%5],
				"--delay", "20ms", "--jitter", []string{"0ms", "5ms", "30ms"}[seed%3], "--dup", []string{"0%", "3%"}[seed%2],
				"--tap", []string{"a", "b", "between"}[seed%3])
			name := fmt.Sprintf("simulated-%s-%d", k.name, seed+1)
			if of := faults[k.name]; of != nil && of[seed] != "" {
				args = append(args, "--fault", of[seed])
			}
			list = append(list,
				subject{name: name, runs: onCapture, state: true, prepare: func(n *net, dir string) (string, error) {
					w := filepath.Join(dir, name+".pcapng")
					full := append(slices.Clone(args), "-w", w, "--truth", filepath.Join(dir, "truth.jsonl"), "--journal",
						filepath.Join(dir, "journal.jsonl"))
					out := n.output(dir, full, w, filepath.Join(dir, "truth.jsonl"), filepath.Join(dir, "journal.jsonl"))
					n.keep(name, "simulate", out)
					n.keep(name, "play", n.output(dir, []string{"simulate", "--play", filepath.Join(dir, "journal.jsonl")}))
					return w, nil
				}})
		}
	}
	return list
}

// alone returns the runs that need no capture, or one certain capture: help,
// filters, formats, what-if, merge, and errors.
func alone() (list []subject) {
	const gaffer, riptide = "testdata/pcaps/reliable-loss10.client.pcap.gz", "testdata/pcaps/u210_loss10.client.pcapng.gz"
	add := func(name string, runs ...command) { list = append(list, subject{name: name, runs: runs}) }
	var helps []command
	for _, c := range []string{
		"", "anonymise", "autopsy", "batch", "capture", "compare", "events", "explain", "export", "export csv",
		"export jsonl", "export parquet", "export pcapng", "export qlog", "export wireshark", "fields", "findings", "flows",
		"graph", "guess", "lab", "lab gaffer", "lab riptide", "lab srdp", "ledger", "merge", "messages", "overview",
		"packets", "protocols", "reduce", "replay", "report", "schema", "simulate", "state", "tui", "web",
	} {
		helps = append(helps, command{"help." + strings.ReplaceAll(c, " ", "."), append(strings.Fields(c), "--help")})
	}
	add("help", helps...)
	add("lists",
		cmd("fields", "fields"), cmd("fields.json", "fields", "--json"), cmd("explain", "explain"),
		cmd("explain.json", "explain", "--json"),
		cmd("protocols", "protocols"), cmd("protocols.gaffer", "protocols", "gaffer"),
		cmd("protocols.riptide", "protocols", "riptide"), cmd("protocols.srdp", "protocols", "srdp"),
		cmd("schema", "schema"), cmd("faults", "simulate", "--fault", "list"), cmd("completion", "completion", "bash"))
	filters := []string{
		"gaffer.ack_bits == 0x3fff", "flow.rtt > 60ms", "rel.lost", "rel.acked && frame.len > 100",
		"gaffer.sequence in {900..910}", "udp.port == 30000 || tcp",
		"flow.side == \"a\" && rel.rtt > 70ms", "finding.rule == \"loss-burst\"", "message.hol > 10ms",
		"frame.number % 7 == 3", "not (rel.lost or rel.duplicate)", "gaffer.ack_bits & 0x1 == 0",
	}
	var filtered []command
	for i, f := range filters {
		for _, c := range []string{"packets", "events", "messages"} {
			filtered = append(filtered, cmd(fmt.Sprintf("%s.%d", c, i), c, "-Y", f, gaffer),
				cmd(fmt.Sprintf("%s.riptide.%d", c, i), c, "-Y", f, riptide))
		}
	}
	add("filters", filtered...)
	add("formats",
		cmd("fields", "packets", "-T", "fields", "-e", "frame.number", "-e", "gaffer.sequence", "-E", "header=y", gaffer),
		cmd("json", "packets", "-T", "json", "-c", "20", gaffer), cmd("ek", "packets", "-T", "ek", "-c", "20", riptide),
		cmd("tabs", "packets", "-T", "tabs", gaffer),
		cmd("graph.timeseq", "graph", gaffer), cmd("graph.rtt", "graph", "-k", "rtt", gaffer),
		cmd("graph.window", "graph", "-k", "window", riptide), cmd("graph.bandwidth", "graph", "-k", "bandwidth", riptide),
		cmd("graph.svg", "graph", "-k", "rtt", "-o", "-", gaffer), cmd("diff", "state", "--diff", "300", "301", gaffer),
		cmd("state.json", "state", "--at", "300", "--json", gaffer),
		cmd("parquet", "export", "parquet", "--table", "events", "-o", "OUT", gaffer),
		cmd("wireshark", "export", "wireshark", "-o", "OUT", gaffer),
		cmd("merge", "merge", gaffer, "testdata/pcaps/reliable-loss10.server.pcap.gz"),
		cmd("merge.json", "merge", "--json", gaffer, "testdata/pcaps/reliable-loss10.server.pcap.gz"),
		cmd("whatif.gaffer", "replay", "--what-if", "resend=50ms", gaffer),
		cmd("whatif.riptide", "replay", "--what-if", "resend=50ms", riptide), cmd("guess", "guess", riptide),
		cmd("write", "packets", "-Y", "gaffer.sequence < 40", "-w", "OUT", gaffer))
	add("errors",
		cmd("nofile", "flows", "testdata/none.pcap"), cmd("nocapture", "flows", "go.mod"), cmd("nocommand", "flow"),
		cmd("noflag", "flows", "--nothing"),
		cmd("filter", "packets", "-Y", "gaffer.sequence ==", gaffer),
		cmd("field", "packets", "-Y", "gaffer.sequnce == 1", gaffer), cmd("frame", "state", "--at", "99999999", gaffer),
		cmd("flow", "state", "--flow", "77", gaffer), cmd("decode", "flows", "-d", "udp.port==1", gaffer),
		cmd("vantage", "flows", "--vantage", "c", gaffer), cmd("rule", "explain", "no-such-rule"),
		cmd("fault", "simulate", "--fault", "nothing"), cmd("protocol", "simulate", "--protocol", "gaffer:nothing"),
		cmd("whatif", "replay", "--what-if", "x=1", gaffer), cmd("reduce", "reduce", "--keep", "stale-entry", gaffer, "OUT"))
	return list
}
