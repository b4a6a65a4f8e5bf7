package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/internal/testenv"
)

// thing is one object of a listing.
type thing map[string]any

func (x thing) num(key string) float64 { v, _ := x[key].(float64); return v }
func (x thing) word(key string) string { v, _ := x[key].(string); return v }

// nums returns the list of numbers at a key.
func (x thing) nums(key string) (out []float64) {
	list, _ := x[key].([]any)
	for _, v := range list {
		n, _ := v.(float64)
		out = append(out, n)
	}
	return out
}

// listed runs a listing command with --json.
func listed(t *testing.T, args ...string) (out []thing) {
	t.Helper()
	for line := range strings.Lines(output(t, append(args, "--json", "-q")...)) {
		var x thing
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%q: %v in %s", args, err, line)
		}
		out = append(out, x)
	}
	return out
}

// world holds the unfiltered listings of a capture. The test joins them by
// frame, so it depends on nothing but the listings.
type world struct {
	events, messages, findings, flows []thing
	frames                            map[float64]frameFacts
}

type frameFacts struct {
	length float64
	source string
	ttl    float64
}

func readWorld(t *testing.T, path string) *world {
	t.Helper()
	w := &world{
		events: listed(t, "events", path), messages: listed(t, "messages", path), findings: listed(t, "findings", path),
		flows:  listed(t, "flows", path),
		frames: map[float64]frameFacts{},
	}
	for line := range strings.Lines(output(t, "packets", "-T", "fields", "-e", "frame.number", "-e", "frame.len", "-e",
		"ip.ttl", "-e", "ip.src", path)) {
		var n float64
		var f frameFacts
		if _, err := fmt.Sscan(strings.ReplaceAll(line, "\t", " "), &n, &f.length, &f.ttl, &f.source); err == nil {
			w.frames[n] = f
		}
	}
	return w
}

// shown returns the frames in which a rule found something about a side.
func (w *world) shown(rule, side string) map[float64]bool {
	out := map[float64]bool{}
	for _, f := range w.findings {
		if f.word("rule") == rule && f.word("side") == side {
			for _, n := range f.nums("frames") {
				out[n] = true
			}
		}
	}
	return out
}

// Filters can combine an event, a message or a finding with its frame. They
// pass what a join of the unfiltered listings contains.
func TestFiltersMix(t *testing.T) {
	mixed := []struct {
		command, filter string
		want            func(*world, thing) bool
	}{
		{"events", "rel.acked && frame.len > 60", func(w *world, x thing) bool {
			return x.word("event") == "acked" && w.frames[x.num("frame")].length > 60
		}},
		{"events", "rel.side == a && ip.src == SRC", func(w *world, x thing) bool {
			return x.word("side") == "a" && w.frames[x.num("frame")].source == w.source()
		}},
		{"events", "not rel.sent && not ip.ttl == 63 and frame.number > 40", func(w *world, x thing) bool {
			return x.word("event") != "sent" && w.frames[x.num("frame")].ttl != 63 && x.num("frame") > 40
		}},
		{"events", "rel.certainty == likely && flow == 1 && frame.len < 80", func(w *world, x thing) bool {
			return x.word("certainty") == "likely" && x.num("flow") == 1 && w.frames[x.num("frame")].length < 80
		}},
		{"messages", "message.delivered == yes && frame.len > 70", func(w *world, x thing) bool {
			return x.word("delivered") == "yes" && w.frames[x.num("frame")].length > 70
		}},
		{"messages", "message.sends > 1 && message.mode == reliable", func(_ *world, x thing) bool {
			return x.num("attempts") > 1 && x.word("mode") == "reliable"
		}},
		{"messages", "message.side == b && ip.src == SRC", func(w *world, x thing) bool {
			return x.word("side") == "b" && w.frames[x.num("frame")].source == w.source()
		}},
		{"findings", "finding.severity == note && frame.len > 60", func(w *world, x thing) bool {
			return x.word("severity") == "note" &&
				slices.ContainsFunc(x.nums("frames"), func(n float64) bool { return w.frames[n].length > 60 })
		}},
		{"findings", "finding.certainty == likely && ip.src == SRC", func(w *world, x thing) bool {
			return x.word("certainty") == "likely" &&
				slices.ContainsFunc(x.nums("frames"), func(n float64) bool { return w.frames[n].source == w.source() })
		}},
		{"findings", "flow.packets_a > 10 && frame.number < 100", func(_ *world, x thing) bool {
			return slices.ContainsFunc(x.nums("frames"), func(n float64) bool { return n < 100 })
		}},
		{"flows", "flow.packets > 100 && frame.len > 60", func(*world, thing) bool { return true }},
		{"flows", "flow.packets > 100 && frame.len > 6000", func(*world, thing) bool { return false }},
		{"flows", "flow.packets > 100000 && frame.len > 60", func(*world, thing) bool { return false }},
		{"flows", "finding.severity == note && ip.src == SRC", func(w *world, _ thing) bool {
			return slices.ContainsFunc(w.findings, func(x thing) bool { return x.word("severity") == "note" })
		}},
		{"flows", "flow.packets_b > 50 && ip.dst == SRC", func(*world, thing) bool { return true }},
		{
			"flows", "finding.rule == capture-duplicate",
			func(w *world, _ thing) bool { return len(w.shown("capture-duplicate", "a")) > 0 },
		},
	}
	captures := []string{
		"u210_loss10.client.pcapng.gz", "yojimbo-clean.client.pcap.gz", "reliable-loss10.client.pcap.gz",
		"t210_clean.client.pcap.gz",
	}
	if testing.Short() {
		captures = captures[:1]
	}
	passed := map[string]int{}
	for _, name := range captures {
		path := testenv.Capture(t, name)
		w := readWorld(t, path)
		all := map[string][]thing{"events": w.events, "messages": w.messages, "findings": w.findings, "flows": w.flows}
		for _, c := range mixed {
			text := strings.ReplaceAll(c.filter, "SRC", w.source())
			if len(all[c.command]) == 0 {
				continue
			}
			var want []thing
			for _, x := range all[c.command] {
				if c.want(w, x) {
					want = append(want, x)
				}
			}
			got := listed(t, c.command, "-Y", text, path)
			passed[c.command] += len(got)
			if !slices.EqualFunc(got, want, func(x, y thing) bool {
				return maps.EqualFunc(x, y, func(v, u any) bool { return fmt.Sprint(v) == fmt.Sprint(u) })
			}) {
				t.Errorf("%s: %s -Y %q: %d passed, by the join it is %d", name, c.command, text, len(got), len(want))
			}
		}
	}
	for _, command := range []string{"events", "messages", "findings", "flows"} {
		if passed[command] == 0 {
			t.Errorf("%s: no filter passed anything: the comparison shows nothing", command)
		}
	}
}

// source returns the address of the first flow's a.
func (w *world) source() string {
	host, _, _ := strings.Cut(w.flows[0].word("a"), ":")
	return host
}

// The cause of a resend is known at the finding and at the events and messages
// that it counts. It is also known at the flow, and at the packet that settled
// it.
func TestResendCause(t *testing.T) {
	path := testenv.Capture(t, "u210_loss10.client.pcapng.gz")
	for cause, rule := range map[string]string{
		"ack_late": "riptide-resent-late-ack", "ack_lost": "riptide-resent-ack-lost",
		"timer_below_rtt": "riptide-resent-timer-below-rtt", "loss": "riptide-resent-loss",
	} {
		text := fmt.Sprintf("rel.resend.cause == %q", cause)
		count := 0.0
		for _, f := range listed(t, "findings", path) {
			if f.word("rule") == rule {
				count += f.num("count")
			}
		}
		if count == 0 {
			t.Errorf("%s: the capture has none", rule)
		}
		resent := 0
		for _, e := range listed(t, "events", "-Y", text+" && rel.resend", path) {
			if e.word("event") != "resent" {
				t.Errorf("%s: %v is no resend", text, e)
			}
			resent++
		}
		if float64(resent) != count {
			t.Errorf("%s: %d resent events, the findings count %v", text, resent, count)
		}
		if got := listed(t, "messages", "-Y", text, path); float64(len(got)) != count {
			t.Errorf("%s: %d messages, the findings count %v", text, len(got), count)
		}
		for _, x := range listed(t, "findings", "-Y", text, path) {
			if x.word("rule") != rule {
				t.Errorf("%s: finding %v", text, x)
			}
		}
		if got := listed(t, "flows", "-Y", text, path); len(got) != 1 {
			t.Errorf("%s: %d flows", text, len(got))
		}
		if got := listed(t, "packets", "-Y", text, path); len(got) == 0 || float64(len(got)) > count {
			t.Errorf("%s: %d packets settled %v", text, len(got), count)
		}
	}
}

// A filter that makes no sense for a listing is refused, and the error shows
// the position.
func TestFiltersRefused(t *testing.T) {
	path := testenv.Capture(t, "u210_loss10.client.pcapng.gz")
	for _, c := range []struct{ command, filter, say string }{
		{"events", "rel.acked && message.hol > 1ms", "column 14: message.hol is not asked about events"},
		{"messages", "rel.lost", "column 1: rel.lost is not asked about messages"},
		{"findings", "flow == 1 && (udp || rel.dup)", "column 22: rel.dup is not asked about findings"},
		{"findings", "message", "message is not asked about findings"},
	} {
		var out, complaint bytes.Buffer
		if code := runKnown([]string{c.command, "-Y", c.filter, path},
			app.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint}); code != app.ExitFailed {
			t.Errorf("%s -Y %q: exit %d", c.command, c.filter, code)
		}
		if !strings.Contains(complaint.String(), c.say) || !strings.Contains(complaint.String(), "^") || out.Len() > 0 {
			t.Errorf("%s -Y %q: %s", c.command, c.filter, complaint.String())
		}
	}
}

// Completion of -Y, help and `fields` use one table.
func TestFieldsInOnePlace(t *testing.T) {
	complete := output(t, "__complete", "packets", "-Y", "udp && !(riptide.ack_f")
	if !strings.Contains(complete, "udp && !(riptide.ack_flag\t2.1: the Ack answers another id than the newest.") {
		t.Errorf("completion gave %q", complete)
	}
	names, dashed := map[string]bool{}, []string(nil)
	for _, x := range listed(t, "fields") {
		names[x.word("name")] = true
		if strings.Contains(x.word("name"), "-") {
			dashed = append(dashed, x.word("name"))
		}
		if x.word("doc") == "" && !strings.HasPrefix(x.word("name"), "gaffer.packet.") {
			t.Errorf("%s has no sentence", x.word("name"))
		}
	}
	if len(dashed) == 0 {
		t.Error("no field has a dash in its name")
	}
	output(t, "events", "-Y", strings.Join(dashed, "-1 == 2 or "), testenv.Capture(t, "article-connect.client.pcap.gz"))
	for _, prefix := range []string{"", "rel.", "message.", "frame.t"} {
		for line := range strings.Lines(output(t, "__complete", "events", "-Y", prefix)) {
			if name, _, ok := strings.Cut(line, "\t"); ok && !names[name] {
				t.Errorf("completion gives %s, which `fields` does not list", name)
			}
		}
	}
	for _, command := range []string{"packets", "events", "messages", "findings", "flows"} {
		if !strings.Contains(output(t, command, "--help"), "see ackscope fields") {
			t.Errorf("%s --help does not say where the fields are", command)
		}
	}
}
