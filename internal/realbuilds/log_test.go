package realbuilds

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// logLine is one line of the log of an endpoint of `reliable`.
type logLine struct {
	T       float64 `json:"t"` // seconds since the epoch of the capture
	Event   string  `json:"event"`
	Seq     uint32  `json:"seq"`
	Hex     string  `json:"hex"`     // of sent: the first bytes of the datagram
	Differs int     `json:"differs"` // of sent: an unmodified library would have sent something else
}

// endpointLog is what one endpoint did.
type endpointLog struct {
	sent  []logLine
	times map[logged][]float64
	end   float64 // of the last line
}

// logged is a kind of event about one packet.
type logged struct {
	event string
	seq   uint32
}

// readLogs returns the logs of a run's endpoints, by role; nil where the run has
// none that count packets.
func readLogs(t testing.TB, folder, name string) map[string]*endpointLog {
	t.Helper()
	logs := map[string]*endpointLog{}
	for _, who := range []string{client, server} {
		path := filepath.Join(testenv.Module(t), "testdata", "pcaps", folder, name+"."+who+".log.gz")
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		} else if err != nil {
			t.Fatal(err)
		}
		l, err := parseLog(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if l == nil {
			return nil
		}
		logs[who] = l
	}
	return logs
}

// parseLog reads a log. It returns nil for one that does not tell of packets: the
// text that Riptide prints, and logs of messages.
func parseLog(f *os.File) (*endpointLog, error) {
	packets := false
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	l := &endpointLog{times: map[logged][]float64{}}
	for s := bufio.NewScanner(z); s.Scan(); {
		if text := s.Bytes(); len(text) == 0 || text[0] != '{' {
			return nil, nil
		}
		var x logLine
		if err := json.Unmarshal(s.Bytes(), &x); err != nil {
			return nil, err
		}
		if x.Event == "sent" {
			l.sent = append(l.sent, x)
		}
		packets = packets || x.Event == "received"
		k := logged{x.Event, x.Seq}
		l.times[k] = append(l.times[k], x.T)
		l.end = max(l.end, x.T)
	}
	if !packets {
		return nil, nil
	}
	return l, nil
}

const (
	// stamp is how far the clocks of a frame and of a log line may be apart.
	stamp = 0.005
	// read is how long a datagram may wait in the socket. The longest frame of these runs is 0.2 s.
	read = 1
)

// denies returns why the log of an endpoint denies a fact that is called certain,
// or "". near says whether the tap stood at the endpoint. A fact of a far endpoint
// is shown by a frame that passes later. So is one of a near endpoint if the log
// has it before begins: the frame that brought it is missing.
func (l *endpointLog) denies(f *fact, near bool, begins float64) string {
	at := float64(f.At) / 1e9
	if f.Certainty != machine.Certain || near && at > l.end-0.1 {
		return "" // after its end it reads nothing more
	}
	happened := func(event string, from int) bool {
		for _, t := range l.times[logged{event, f.Sequence}][from:] {
			if t < at+stamp && (!near || t < begins) || near && t > at-stamp && t < at+read {
				return true
			}
		}
		return false
	}
	received := l.times[logged{"received", f.Sequence}]
	switch {
	case f.Kind == machine.EventReceived && !happened("received", 0),
		f.Kind == machine.EventAcked && !happened("acked", 0):
		return fmt.Sprintf("frame %d: %s %d, certain, and the log has no such line", f.Ref.Frame(), f.Kind, f.Sequence)
	case f.Kind == machine.EventDuplicate && near && len(received) > 1 && happened("received", 1):
		return fmt.Sprintf("frame %d: packet %d refused as a duplicate, certain, and the log has it received again",
			f.Ref.Frame(), f.Sequence)
	}
	return ""
}

// denied returns what the logs deny of the facts about a capture: one sentence for
// each endpoint and kind of fact. Of what was before begins (seconds), the capture
// may lack the frames.
func denied(x *saying, logs map[string]*endpointLog, tap string, begins float64) (list []string) {
	type kind struct {
		who  string
		kind machine.EventKind
	}
	first, count := map[kind]string{}, map[kind]int{}
	var kinds []kind
	for i := range x.facts {
		f := &x.facts[i]
		who := role(isClient(f.flow.Addr(f.Side)))
		why := logs[who].denies(f, who == tap, begins)
		if why == "" {
			continue
		}
		k := kind{who, f.Kind}
		if count[k]++; count[k] == 1 {
			first[k] = why
			kinds = append(kinds, k)
		}
	}
	for _, k := range kinds {
		list = append(list, fmt.Sprintf("the log of the %s denies %d facts, such as in %s", k.who, count[k], first[k]))
	}
	return list
}
