package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// shape is a type of draft-ietf-quic-qlog-main-schema, in a small part of CDDL.
// A key after "?" is optional; "*" allows any other keys. Each key has a
// function that checks its value.
type shape map[string]func(v any) error

func aText(v any) error {
	if _, ok := v.(string); !ok {
		return fmt.Errorf("expected text, found %v", v)
	}
	return nil
}

func aNumber(v any) error {
	if _, ok := v.(json.Number); !ok {
		return fmt.Errorf("expected a number, found %v", v)
	}
	return nil
}

func aUint(v any) error {
	if n, ok := v.(json.Number); !ok || !regexp.MustCompile(`^\d+$`).MatchString(n.String()) {
		return fmt.Errorf("expected an unsigned integer, found %v", v)
	}
	return nil
}

func aWordOf(words ...string) func(any) error {
	return func(v any) error {
		if s, ok := v.(string); !ok || !slices.Contains(words, s) {
			return fmt.Errorf("expected one of %q, found %v", words, v)
		}
		return nil
	}
}

func aListOf(least int, each func(any) error) func(any) error {
	return func(v any) error {
		list, ok := v.([]any)
		if !ok || len(list) < least {
			return fmt.Errorf("expected a list of at least %d, found %v", least, v)
		}
		for i, x := range list {
			if err := each(x); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return nil
	}
}

func (s shape) check(v any) error {
	o, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("expected an object, found %v", v)
	}
	for key, check := range s {
		name, optional := strings.CutPrefix(key, "?")
		x, ok := o[name]
		if !ok && !optional && key != "*" {
			return fmt.Errorf("%s is missing in %v", name, o)
		}
		if ok {
			if err := check(x); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for name := range o {
		if s[name] == nil && s["?"+name] == nil && s["*"] == nil {
			return fmt.Errorf("%s is no key of it", name)
		}
	}
	return nil
}

func anything(any) error { return nil }

// Event types and event schemas, by the chapter "Event Schemas" of the draft. A
// type is a namespace and a name, in the unreserved characters of URIs. The URI
// of a schema is absolute and contains the namespace. A private schema does not
// use the IETF's URN.
var (
	eventName = regexp.MustCompile(`^[A-Za-z0-9._~-]+:[A-Za-z0-9._~-]+$`)
	schemaURI = regexp.MustCompile(`^https://[a-z.]+/.*/(0[1-9]|1[0-2])20\d\d/([A-Za-z0-9._~-]+)$`)
)

func aTime(v any) error {
	s, _ := v.(string)
	_, err := time.Parse(time.RFC3339Nano, s)
	return err
}

var (
	rawInfo   = shape{"?length": aUint, "?payload_length": aUint, "?data": aText}
	ietfEvent = shape{
		"time": aNumber, "name": aText, "data": ietfData.check, "?tuple": aText, "?time_format": aText,
		"?group_id": aText, "?system_info": anything, "*": anything,
	}
	ietfData = shape{
		"frame": aUint, "certainty": aWordOf("unknown", "possible", "likely", "certain"),
		"?packet_number": aNumber, "?raw": rawInfo.check, "?trigger": aWordOf("duplicate", "stale", "rejected"),
		"?about_frame": aUint, "?by_packet_number": aUint, "?rtt": aNumber, "?rule": aText,
	}
	vantagePoint = shape{
		"?name": aText, "type": aWordOf("client", "server", "network", "unknown"),
		"?flow": aWordOf("client", "server", "unknown"),
	}
	commonFields = shape{
		"?tuple": aText, "?time_format": aWordOf("relative_to_epoch", "relative_to_previous_event"), "?group_id": aText,
		"*":               anything,
		"?reference_time": shape{"clock_type": aText, "epoch": aTime, "?wall_clock_time": aTime}.check,
	}
	ietfTrace = shape{
		"?title": aText, "?description": aText, "?common_fields": commonFields.check, "?vantage_point": vantagePoint.check,
		"event_schemas": aListOf(1, aText), "events": aListOf(0, ietfEvent.check),
	}
	ietfFile = shape{
		"file_schema":          aWordOf("urn:ietf:params:qlog:file:contained"),
		"serialization_format": aWordOf("application/qlog+json"), "?title": aText, "?description": aText,
		"?traces": aListOf(1, ietfTrace.check),
	}

	qvisHeader = shape{"packet_type": aWordOf("1RTT"), "?packet_number": aUint}
	qvisData   = shape{
		"?header": qvisHeader.check, "?raw": rawInfo.check,
		"?frames":     aListOf(1, shape{"frame_type": aWordOf("ack"), "acked_ranges": aListOf(1, aListOf(2, aUint))}.check),
		"?latest_rtt": aNumber,
	}
	qvisEvent = shape{
		"time": aNumber,
		"name": aWordOf("transport:packet_sent", "transport:packet_received", "transport:packet_dropped",
			"recovery:packet_lost", "recovery:metrics_updated"), "data": qvisData.check,
	}
	qvisTrace = shape{
		"?title": aText, "vantage_point": vantagePoint.check, "events": aListOf(1, qvisEvent.check),
		"common_fields": shape{
			"protocol_type": aListOf(1, aText), "time_format": aWordOf("relative"),
			"reference_time": aNumber,
		}.check,
	}
	qvisFile = shape{
		"qlog_version": aWordOf("0.3"), "qlog_format": aWordOf("JSON"), "?title": aText,
		"?description": aText, "traces": aListOf(1, qvisTrace.check),
	}
)

// Exports have the shapes of the draft and of what qvis loads. Their events are
// ordered by time, and as many as the events command lists.
func TestQlog(t *testing.T) {
	for _, path := range threeProtocols(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			acked := map[string]int{}
			for line := range strings.Lines(output(t, "events", "--json", path)) {
				var e struct {
					Flow        int
					Side, Event string
				}
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				if e.Event == "acked" {
					acked[fmt.Sprintf("flow %d, side %s", e.Flow, e.Side)]++
				}
			}
			for _, dialect := range []string{"ietf", "qvis"} {
				text := output(t, "export", "qlog", "--dialect", dialect, "-o", "-", path)
				d := json.NewDecoder(bytes.NewReader([]byte(text)))
				d.UseNumber()
				var file any
				if err := d.Decode(&file); err != nil {
					t.Fatalf("%s: %v", dialect, err)
				}
				whole := map[string]shape{"ietf": ietfFile, "qvis": qvisFile}[dialect]
				if err := whole.check(file); err != nil {
					t.Errorf("%s: %v", dialect, err)
					continue
				}
				if dialect == "qvis" && !strings.Contains(text[:1000], `"qlog_version"`) {
					t.Error("qlog_version is not within the first 1000 bytes, where qvis looks for it")
				}
				got := map[string]int{}
				for _, x := range file.(map[string]any)["traces"].([]any) {
					trace := x.(map[string]any)
					title, _, _ := strings.Cut(trace["title"].(string), ":")
					got[title] += checkTrace(t, dialect, trace)
				}
				for title, n := range acked {
					if got[title] != n {
						t.Errorf("%s: %s has %d acks, expected %d", dialect, title, got[title], n)
					}
				}
			}
		})
	}
}

// checkTrace checks what shapes cannot express, and counts acks.
func checkTrace(t *testing.T, dialect string, trace map[string]any) (acks int) {
	t.Helper()
	last, namespace := -1e300, ""
	if dialect == "ietf" {
		uri := trace["event_schemas"].([]any)[0].(string)
		m := schemaURI.FindStringSubmatch(uri)
		if m == nil {
			t.Fatalf("%q is no URI of a private schema", uri)
		}
		namespace = m[2]
	}
	for _, x := range trace["events"].([]any) {
		e := x.(map[string]any)
		at, err := e["time"].(json.Number).Float64()
		if err != nil || at < last {
			t.Fatalf("%s: time %v after %v (%v)", dialect, at, last, err)
		}
		last = at
		name, data := e["name"].(string), e["data"].(map[string]any)
		if !eventName.MatchString(name) || namespace != "" && !strings.HasPrefix(name, namespace+":") {
			t.Fatalf("%s: an event is named %q", dialect, name)
		}
		if strings.HasSuffix(name, ":packet_acked") || data["frames"] != nil {
			acks++
		}
	}
	return acks
}
