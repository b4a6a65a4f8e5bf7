package riptide

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// sent is one send of the log, with the message on the wire that it became.
type sent struct {
	line  *truthLine
	from  machine.Side
	codec wire.Codec
	m     wire.Message
	b     []byte
}

// pairSends finds the first copy of each send of the endpoints at the tap, by kind, ids and time.
// The result missing lists the sends without a message, and extra the messages without a send.
func pairSends(t testing.TB, path string, flows []*flow, tr *truth) (pairs []sent, missing, extra []string) {
	t.Helper()
	near := "client"
	if strings.Contains(filepath.Base(path), ".server.") {
		near = "server"
	}
	loopback := strings.Contains(path, "ipv6_lo")
	type key struct {
		endpoint, peer string
		mode           string
		id, seq        int
	}
	type copyOf struct {
		at float64
		sent
		used, again bool
	}
	copies := map[key][]*copyOf{}
	first, last := math.Inf(1), math.Inf(-1)
	for _, f := range flows {
		v := classify(f.datagrams)
		if v.Config == nil {
			t.Fatalf("%s: %s", path, v.Reason)
		}
		s := v.Config.Profile.(*Settings)
		seen := map[[3]uint64]float64{}
		for i := range f.datagrams {
			d := &f.datagrams[i]
			at := float64(d.At) / 1e9
			first, last = min(first, at), max(last, at)
			e := tr.endpoint(f.addrs[d.From])
			if !strings.HasPrefix(e, near) && !(loopback && e == "server") {
				continue
			}
			c := copyOf{at: at, sent: sent{from: d.From, codec: s.Senders[d.From].Codec, b: d.Bytes}}
			if err := c.codec.Parse(d.Bytes, d.Length, &c.m); err != nil || !c.m.Type.User() {
				continue
			}
			k := key{endpoint: e, mode: strings.ToLower(c.m.Type.String()), id: int(c.m.MessageID), seq: int(c.m.Sequence)}
			switch c.m.Type {
			case wire.Notify:
				k.id = -1
			case wire.Unreliable:
				k.seq = -1
			case wire.Reliable:
				id := [3]uint64{uint64(d.From), uint64(c.m.Sequence), uint64(len(d.Bytes))}
				if before, is := seen[id]; is && at-before < 60 {
					c.again = true
				}
				seen[id] = at
			}
			if e == "server" {
				k.peer = f.addrs[d.From.Other()].String()
			}
			copies[k] = append(copies[k], &c)
		}
	}
	for i := range tr.lines {
		l := &tr.lines[i]
		if l.Event != "send" || !strings.HasPrefix(l.Endpoint, near) && !(loopback && l.Endpoint == "server") {
			continue
		}
		k := key{endpoint: l.Endpoint, mode: l.Mode, id: -1, seq: -1}
		if l.MessageID != nil && l.Mode != "notify" {
			k.id = int(*l.MessageID)
		}
		if l.Seq != nil && l.Mode != "unreliable" {
			k.seq = int(*l.Seq)
		}
		if l.Endpoint == "server" {
			k.peer = tr.remote(l)
		}
		var found *copyOf
		for _, c := range copies[k] {
			if !c.used && c.at >= l.T-0.005 && c.at <= l.T+0.25 {
				found = c
				break
			}
		}
		if found == nil {
			if l.T < first { // a capture that begins in the middle: its resent messages
				for _, c := range copies[k] {
					c.again = c.again || l.Mode == "reliable" && c.at > l.T
				}
			} else if l.T < last-0.005 { // the file may end between the call and its packet
				missing = append(missing, fmt.Sprintf("%s %s %s id %d seq %d to %q at %f", l.Endpoint, tr.version[l.Endpoint],
					k.mode, k.id, k.seq, k.peer, l.T))
			}
			continue
		}
		found.used = true
		found.line = l
		pairs = append(pairs, found.sent)
	}
	for k, list := range copies {
		for _, c := range list {
			if !c.used && !c.again {
				extra = append(extra, fmt.Sprintf("%s %s %s id %d seq %d to %q at %f", k.endpoint, tr.version[k.endpoint], k.mode,
					k.id, k.seq, k.peer, c.at))
			}
		}
	}
	slices.Sort(extra)
	return pairs, missing, extra
}

// remote returns the address of the client in a line of the server. Ids are reused, so the client
// is the last one that connected before that line.
func (tr *truth) remote(l *truthLine) string {
	if l.Remote != "" {
		return l.Remote
	}
	found := ""
	for _, k := range tr.connected[l.ClientID] {
		if found == "" || k.T <= l.T+0.05 {
			found = k.Remote
		}
	}
	return found
}

// readValue reads one value of the type in the log.
func readValue(r *wire.Reader, v *truthValue, counted bool, n int) (any, error) {
	element, array := strings.CutSuffix(v.Type, "[]")
	one := func() (any, error) {
		switch element {
		case "byte":
			return r.Uint(8)
		case "ushort":
			return r.Uint(16)
		case "uint":
			return r.Uint(32)
		case "ulong":
			return r.Uint(64)
		case "sbyte":
			return r.Int(8)
		case "short":
			return r.Int(16)
		case "int":
			return r.Int(32)
		case "long":
			return r.Int(64)
		case "float":
			return r.Float(32)
		case "double":
			return r.Float(64)
		case "bool":
			b, _, err := r.Bool()
			return b, err
		case "string":
			b, err := r.Text(nil)
			return string(b), err
		case "varlong":
			return r.VarInt()
		case "varulong":
			return r.VarUint()
		case "bits":
			return r.Raw(v.Width)
		case "vec2", "vec3", "quat":
			out := make([]any, map[string]int{"vec2": 2, "vec3": 3, "quat": 4}[element])
			for i := range out {
				f, err := r.Float(32)
				if err != nil {
					return nil, err
				}
				out[i] = f
			}
			return out, nil
		}
		return nil, fmt.Errorf("no type %q", v.Type)
	}
	if !array {
		return one()
	}
	if counted {
		var err error
		if n, err = r.Length(); err != nil {
			return nil, err
		}
	}
	if element == "bool" {
		bools, err := r.Bools(nil, n)
		out := make([]any, len(bools))
		for i, b := range bools {
			out[i] = b
		}
		return out, err
	}
	out := []any{}
	for range n {
		x, err := one()
		if err != nil {
			return out, err
		}
		out = append(out, x)
	}
	return out, nil
}

// equal compares a value with the log's.
func equal(got any, want *truthValue) bool {
	if want.Bits != "" {
		raw, err := hex.DecodeString(want.Bits)
		if err != nil {
			return false
		}
		var bits uint64
		for _, b := range raw {
			bits = bits<<8 | uint64(b)
		}
		f, is := got.(float64)
		w := math.Float64frombits(bits)
		if len(raw) == 4 {
			w = float64(math.Float32frombits(uint32(bits)))
		}
		return is && (f == w || math.IsNaN(f) && math.IsNaN(w))
	}
	var w any
	d := json.NewDecoder(strings.NewReader(string(want.Value)))
	d.UseNumber()
	if d.Decode(&w) != nil {
		return false
	}
	return same(got, w)
}

func same(got, want any) bool {
	switch g := got.(type) {
	case []any:
		w, is := want.([]any)
		if !is || len(g) != len(w) {
			return false
		}
		for i := range g {
			if !same(g[i], w[i]) {
				return false
			}
		}
		return true
	case bool:
		if w, is := want.(bool); is {
			return g == w
		}
		return want == json.Number(map[bool]string{false: "0", true: "1"}[g])
	case uint64:
		return want == json.Number(strconv.FormatUint(g, 10))
	case int64:
		return want == json.Number(strconv.FormatInt(g, 10))
	case string:
		return want == g
	case float64:
		if s, is := want.(string); is {
			return s == "NaN" && math.IsNaN(g) || s == "Infinity" && math.IsInf(g, 1) || s == "-Infinity" && math.IsInf(g, -1)
		}
		n, is := want.(json.Number)
		w, err := n.Float64()
		return is && err == nil && (g == w || math.Abs(g-w) <= 1e-6*math.Abs(w) || math.Abs(g-w) < 1e-44)
	}
	return false
}

// counted reports whether a message writes its arrays with their length; message 25 does not.
func counted(l *truthLine) bool {
	return l.MessageID == nil || *l.MessageID != 25 || l.Mode == "notify"
}

func elements(v *truthValue) int {
	var list []json.RawMessage
	if json.Unmarshal(v.Value, &list) != nil {
		return 0
	}
	return len(list)
}

// TestValues reads every value of every message from an endpoint at the tap, in every capture. It
// compares the values with the endpoint's own log. It counts what a library has left off the wire.
func TestValues(t *testing.T) {
	total, values, faults := 0, 0, map[string]int{}
	for _, path := range captures(t, riptideRuns...) {
		tr := truthOf(t, path)
		pairs, missing, extra := pairSends(t, path, flowsOf(t, path), tr)
		name := filepath.Base(path)
		report(t, name, "missing", excuse(missing, path, faults))
		report(t, name, "extra", excuse(extra, path, faults))
		for _, p := range pairs {
			total++
			r := p.codec.Values(p.b, &p.m)
			version := tr.version[p.line.Endpoint]
			fault := ""
			for i := range p.line.Values {
				v := &p.line.Values[i]
				switch {
				case strings.HasPrefix(version, "2.1.") && (v.Type == "short[]" || v.Type == "ushort[]"):
					fault = "short arrays of 2.1.0 to 2.1.2: length only"
					n, err := r.Length()
					if err != nil || n != elements(v) {
						t.Errorf("%s: %s %d elements, %v; want %d", name, v.Type, n, err, elements(v))
					}
					continue
				case version == "pytide-2.1.0-alpha" && v.Type == "bool[]":
					fault = "bool arrays of Pytide 2.1.0-alpha: not counted"
				}
				if strings.HasPrefix(fault, "bool") {
					break
				}
				got, err := readValue(&r, v, counted(p.line), elements(v))
				if err != nil || !equal(got, v) {
					t.Errorf("%s %s %s id %v: value %d is %v (%v), log %s", name, p.line.Endpoint, p.line.Mode, p.m.MessageID, i, got,
						err, v.Value)
					break
				}
				values++
			}
			if fault != "" {
				faults[fault]++
			}
			if !r.Whole() && !strings.HasPrefix(fault, "bool") {
				t.Errorf("%s %s id %d: %d bits left", name, p.line.Mode, p.m.MessageID, r.Left())
			}
		}
	}
	t.Logf("%d messages, %d values equal to the logs; left off the wire or not logged: %v", total, values, faults)
	if total < 22_000 {
		t.Errorf("only %d messages compared", total)
	}
}

func report(t *testing.T, name, what string, list []string) {
	t.Helper()
	if len(list) > 0 {
		t.Errorf("%s: %d %s, such as %v", name, len(list), what, list[:min(3, len(list))])
	}
}

// excuse removes the lines that have no counterpart for a documented reason. It counts them by that
// reason.
func excuse(list []string, path string, faults map[string]int) (rest []string) {
	for _, s := range list {
		reason := ""
		switch run := runOf(path); {
		case strings.HasPrefix(s, "server ") && strings.Contains(s, " id 31 "):
			reason = "relayed inside the library: not logged"
		case run == "u210_rwrap":
			reason = "lines left out of the log on purpose"
		case strings.HasPrefix(s, "server 2.1.0 reliable id 32"):
			reason = "broadcasts of 2.1.0: ids OR-ed together"
		case run == "upy_three" && strings.HasPrefix(s, "server ") && strings.Contains(s, " id 32 "):
			reason = "a client whose Welcome was never taken: the log does not say its address"
		case strings.Contains(s, " pytide-2.0.0 reliable "):
			reason = "reliable messages that Pytide 2.0.0 never put on the wire"
		case run == "upy_default" && strings.Contains(s, " seq 17 "):
			reason = "the send that dropped the connection"
		default:
			rest = append(rest, s)
			continue
		}
		faults[reason]++
	}
	return rest
}
