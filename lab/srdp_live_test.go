package lab_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// srdpLine is a line of the log of an end that uses SRDP.
type srdpLine struct {
	T        float64
	Endpoint string
	Event    string
	Seq      uint32
	Role     string // of start
	Addr     string // of start and stream
}

// srdpEvent is a line of `events --json`.
type srdpEvent struct {
	Time      time.Time
	Protocol  string
	Addr      string
	Peer      string
	Event     string
	Sequence  uint32
	Certainty string
}

// srdpMessage is a line of `messages --json`.
type srdpMessage struct {
	Time      time.Time
	From, To  string
	MessageID uint32 `json:"message_id"`
	Attempts  int
	Acked     bool
	AckedMS   float64 `json:"acked_ms"`
	Certainty string
}

func decodeLines[T any](t *testing.T, text []byte) (list []T) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var v T
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
}

// srdpRun is a run of SRDP: the ends' logs, and what ackscope reports of the
// capture.
type srdpRun struct {
	*run
	lines    []srdpLine
	events   []srdpEvent
	messages []srdpMessage
}

func readSRDP(t *testing.T, r *run) *srdpRun {
	t.Helper()
	text, err := os.ReadFile(r.truth())
	if err != nil {
		t.Fatal(err)
	}
	return &srdpRun{
		run: r, lines: decodeLines[srdpLine](t, text),
		events:   decodeLines[srdpEvent](t, testenv.Output(t, r.program, "events", "--json", r.capture())),
		messages: decodeLines[srdpMessage](t, testenv.Output(t, r.program, "messages", "--json", r.capture())),
	}
}

// seen holds the times of one kind of fact about packets, by id and in order.
type seen map[uint32][]float64

func (s seen) add(seq uint32, at float64) { s[seq] = append(s[seq], at) }

func (s seen) total() (n int) {
	for _, times := range s {
		n += len(times)
	}
	return n
}

var srdpKinds = []string{"sent", "resent", "received", "duplicate", "acked", "acked_again"}

// checkGivenUp checks what the near ends had given up by the end of the
// capture, in runs with a limit of copies. The capture shows that nothing more
// came.
func (r *srdpRun) checkGivenUp(ends map[string]string, complain func(string, ...any)) {
	for addr, endpoint := range ends {
		want, _ := r.logged(endpoint, "gave_up")
		acked, _ := r.logged(endpoint, "acked")
		for _, e := range r.events {
			if e.Addr == addr && e.Event == "gave_up" && e.Certainty == "certain" && len(want[e.Sequence]) == 0 {
				complain("%s: %d given up, certain: the log does not say so", endpoint, e.Sequence)
			}
		}
		for _, m := range r.messages {
			if m.From == addr && m.Acked && len(want[m.MessageID]) > 0 && len(acked[m.MessageID]) == 0 {
				complain("%s message %d: acked, the log says given up", endpoint, m.MessageID)
			}
		}
	}
}

// logged returns what an end logged of a kind, and when it stopped.
func (r *srdpRun) logged(endpoint, kind string) (facts seen, over float64) {
	facts = seen{}
	for _, l := range r.lines {
		if l.Endpoint != endpoint {
			continue
		}
		over = max(over, l.T)
		if l.Event == kind {
			facts.add(l.Seq, l.T)
		}
	}
	return facts, over
}

// check returns one sentence for each kind of fact that is wrong.
func (r *srdpRun) check() (faults []string) {
	complain := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	ends := map[string]string{} // those that speak SRDP at the tap, by address
	for _, l := range r.lines {
		if l.Event == "start" && !(l.Role == "proxy" && r.forwards()) {
			ends[l.Addr] = l.Endpoint
		}
	}
	for addr, endpoint := range ends {
		if r.streams(endpoint) {
			continue // it has no SRDP at the tap: the proxy has
		}
		for _, kind := range srdpKinds {
			want, over := r.logged(endpoint, kind)
			got := seen{}
			for _, e := range r.events {
				if e.Addr != addr || e.Event != kind || r.stream(e.Peer) {
					continue
				}
				// No end reads what arrives at the very end, or after it.
				if at := seconds(e.Time); at < over-0.02 || len(got[e.Sequence]) < len(want[e.Sequence]) {
					got.add(e.Sequence, at)
				}
			}
			if kind == "resent" {
				r.hurried(endpoint, want, got)
			}
			if fault := compare(want, got); fault != "" {
				complain("%s %s: %s", endpoint, kind, fault)
			}
		}
	}
	r.checkFar(ends, complain)
	r.checkMessages(ends, complain)
	r.checkGivenUp(ends, complain)
	slices.Sort(faults)
	return faults
}

// forwards reports whether the proxy only forwards.
func (r *srdpRun) forwards() bool { return slices.Contains(r.args, "udp") }

// streams reports whether an end uses a stream.
func (r *srdpRun) streams(endpoint string) bool {
	return slices.ContainsFunc(r.lines, func(l srdpLine) bool { return l.Endpoint == endpoint && l.Event == "stream" })
}

// stream reports whether an address is that of the client's end of a stream. A
// proxy's address is that of both its streams and its datagrams.
func (r *srdpRun) stream(addr string) bool {
	return slices.ContainsFunc(r.lines, func(l srdpLine) bool { return l.Event == "stream" && l.Addr == addr })
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// hurried leaves out copies that were not found and that an end sent directly
// behind another copy. A machine that halted does so. At the tap, such a copy
// looks like one that the network made.
func (r *srdpRun) hurried(endpoint string, want, got seen) {
	const hurry = 0.01
	sent, _ := r.logged(endpoint, "sent")
	for seq, times := range want {
		copies := append(slices.Clone(sent[seq]), times...)
		slices.Sort(copies)
		for i := 1; i < len(copies) && len(got[seq]) < len(want[seq]); i++ {
			if copies[i]-copies[i-1] < hurry {
				want[seq] = slices.DeleteFunc(want[seq], func(at float64) bool { return at == copies[i] })
			}
		}
	}
}

// compare pairs the facts of each id in order of time. The log is later than
// the frame, by the time that the kernel and the program take. It is earlier
// only by the precision of its own timestamps.
func compare(want, got seen) string {
	missing, extra, off := 0, 0, 0
	var example uint32
	for seq, times := range want {
		missing += max(0, len(times)-len(got[seq]))
		for i, t := range times[:min(len(times), len(got[seq]))] {
			if d := t - got[seq][i]; d < -0.1 || d > 0.5 {
				off++
			}
		}
		if len(times) != len(got[seq]) {
			example = seq
		}
	}
	for seq, times := range got {
		if n := len(times) - len(want[seq]); n > 0 {
			extra, example = extra+n, seq
		}
	}
	if missing+extra+off == 0 {
		return ""
	}
	return fmt.Sprintf("%d in the log, %d found: missing %d, extra %d, such as of %d; off in time %d", want.total(),
		got.total(), missing, extra, example, off)
}

// checkFar compares what is certain about an end away from the tap with that
// end's log. It needs a run with one client, whose far end is the other one.
func (r *srdpRun) checkFar(ends map[string]string, complain func(string, ...any)) {
	if len(ends) != 2 {
		return
	}
	told := 0
	for _, kind := range []string{"received", "acked"} {
		logs := map[string]seen{}
		for _, endpoint := range ends {
			logs[endpoint], _ = r.logged(endpoint, kind)
		}
		for _, e := range r.events {
			if _, near := ends[e.Addr]; near || e.Event != kind || e.Certainty != "certain" {
				continue
			}
			told++
			at := seconds(e.Time)
			if !slices.ContainsFunc(mapValues(logs), func(log seen) bool {
				return len(log[e.Sequence]) > 0 && log[e.Sequence][0] <= at+0.005
			}) {
				complain("far %s of %d, certain at %.4f: no log has it by then", kind, e.Sequence, at)
			}
		}
	}
	if told == 0 {
		complain("nothing certain is told of a far end: expected what the near end's acknowledgements prove")
	}
}

func mapValues(m map[string]seen) (list []seen) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// checkMessages compares copies, acknowledgements and deliveries with the logs.
func (r *srdpRun) checkMessages(ends map[string]string, complain func(string, ...any)) {
	counted := map[string]int{}
	for _, m := range r.messages {
		if endpoint, near := ends[m.From]; near && !r.streams(endpoint) && !r.stream(m.To) {
			sent, _ := r.logged(endpoint, "sent")
			again, _ := r.logged(endpoint, "resent")
			acked, over := r.logged(endpoint, "acked")
			counted[endpoint]++
			if n := len(sent[m.MessageID]) + len(again[m.MessageID]); m.Attempts != n {
				complain("%s message %d: %d copies, expected the log's %d", endpoint, m.MessageID, m.Attempts, n)
			}
			late := seconds(m.Time)+m.AckedMS/1e3 > over-0.001 // no end read that
			if m.Acked != (len(acked[m.MessageID]) > 0) && !late {
				complain("%s message %d: acked %v, the log says otherwise", endpoint, m.MessageID, m.Acked)
			}
		}
	}
	for _, endpoint := range ends {
		if sent, _ := r.logged(endpoint, "sent"); !r.streams(endpoint) && counted[endpoint] != sent.total() {
			complain("%s: %d messages, expected the %d of its log", endpoint, counted[endpoint], sent.total())
		}
	}
}

// checkSRDP compares a run with the logs of its ends.
func (r *run) checkSRDP(t *testing.T) []string {
	faults := r.finished(t)
	s := readSRDP(t, r)
	again := 0
	for _, l := range s.lines {
		if l.Event == "resent" {
			again++
		}
	}
	if again < 10 {
		t.Errorf("%d packets were sent again: 30 %% of loss does not show", again)
	}
	faults = append(faults, s.check()...)
	if len(faults) == 0 && r.name == "srdp-direct" {
		s.catches(t)
	}
	return faults
}

// catches plants faults in ackscope's results for a good run. The oracle must
// detect every one of them.
func (r *srdpRun) catches(t *testing.T) {
	ends := map[string]bool{}
	for _, l := range r.lines {
		if l.Event == "start" {
			ends[l.Addr] = true
		}
	}
	pick := func(events []srdpEvent, kind string, near bool) *srdpEvent {
		for i := range events {
			e := &events[i]
			if e.Event == kind && ends[e.Addr] == near && e.Certainty == "certain" {
				return e
			}
		}
		t.Fatalf("no event %s, certain, near %v", kind, near)
		return nil
	}
	for _, fault := range []struct {
		name   string
		plant  func(*srdpRun)
		expect string
	}{
		{"a receipt left out", func(p *srdpRun) { pick(p.events, "received", true).Event = "gone" }, "missing 1"},
		{
			"a receipt too many", func(p *srdpRun) { p.events = append(p.events, *pick(p.events, "received", true)) },
			"extra 1",
		},
		{
			"a duplicate taken for a receipt", func(p *srdpRun) { pick(p.events, "duplicate", true).Event = "received" },
			"duplicate",
		},
		{"a copy taken for a packet", func(p *srdpRun) { pick(p.events, "resent", true).Event = "sent" }, "resent"},
		{"an ack of another packet", func(p *srdpRun) { pick(p.events, "acked", true).Sequence += 1000 }, "acked"},
		{"an ack a second early", func(p *srdpRun) {
			e := pick(p.events, "acked", true)
			e.Time = e.Time.Add(-time.Second)
		}, "off in time 1"},
		{
			"a far receipt of what never was", func(p *srdpRun) { pick(p.events, "received", false).Sequence = 30000 },
			"no log has it",
		},
		{"a far receipt before the fact", func(p *srdpRun) {
			e := pick(p.events, "received", false)
			e.Time = e.Time.Add(-time.Second)
		}, "no log has it"},
		{"copies not counted", func(p *srdpRun) { p.messages[3].Attempts++ }, "copies"},
		{"an ack not told", func(p *srdpRun) { p.messages[3].Acked = !p.messages[3].Acked }, "the log says otherwise"},
		{"a message left out", func(p *srdpRun) { p.messages = p.messages[1:] }, "messages, expected"},
	} {
		planted := *r
		planted.events, planted.messages = slices.Clone(r.events), slices.Clone(r.messages)
		// Plant only in those of the near end: the oracle does not check the
		// others.
		planted.messages = slices.DeleteFunc(planted.messages, func(m srdpMessage) bool { return !ends[m.From] })
		whole := slices.DeleteFunc(slices.Clone(r.messages), func(m srdpMessage) bool { return ends[m.From] })
		fault.plant(&planted)
		planted.messages = append(planted.messages, whole...)
		if faults := strings.Join(planted.check(), "\n"); !strings.Contains(faults, fault.expect) {
			t.Errorf("%s is not caught: %q, expected one that says %q", fault.name, faults, fault.expect)
		}
	}
}
