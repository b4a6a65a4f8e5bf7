package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/internal/testenv"
)

// threeProtocols returns captures of three protocols, one of them over TCP.
func threeProtocols(t *testing.T) []string {
	t.Helper()
	srdp := filepath.Join(t.TempDir(), "srdp.pcapng")
	output(t, "simulate", "--protocol", "srdp", "--seed", "4", "--loss", "15%", "--duration", "2s", "--tap",
		"a", "-w", srdp)
	names := []string{"reliable-ipfrag.client.pcap.gz"}
	switch {
	case testing.Short():
		names = nil
	case testenv.Required():
		names = append(names, "u210_loss10.client.pcapng.gz", "tpy200_clean.client.pcap.gz")
	}
	paths := []string{srdp}
	for _, name := range names {
		paths = append(paths, testenv.Capture(t, name))
	}
	return paths
}

// many marks a rule among the findings of a frame when it has more findings
// than it names.
const many = "many "

// factsOf collects what events and findings say of each frame. The keys are the
// fields of the script.
func factsOf(t *testing.T, path string) map[string]map[uint64][]string {
	t.Helper()
	facts := map[string]map[uint64][]string{"acked_in": {}, "resend_of": {}, "finding": {}}
	add := func(key string, frame uint64, value string) {
		if frame != 0 && !slices.Contains(facts[key][frame], value) {
			facts[key][frame] = append(facts[key][frame], value)
		}
	}
	var e struct {
		Event              string
		Frame, About_frame uint64 //nolint:revive // the key of events --json
		By_frame           uint64 //nolint:revive // the key of events --json
	}
	for line := range strings.Lines(output(t, "events", "--json", path)) {
		e.About_frame, e.By_frame = 0, 0
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		switch e.Event {
		case "acked":
			by := e.By_frame
			if by == 0 {
				by = e.Frame
			}
			add("acked_in", e.About_frame, strconv.FormatUint(by, 10))
		case "resent":
			if e.About_frame != 0 {
				add("resend_of", e.Frame, strconv.FormatUint(e.About_frame, 10))
			}
		}
	}
	var f struct {
		Rule   string
		Count  int
		Frames []uint64
	}
	for line := range strings.Lines(output(t, "findings", "--json", path)) {
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		for _, frame := range f.Frames {
			add("finding", frame, f.Rule)
		}
		if f.Count > len(f.Frames) {
			add("finding", ^uint64(0), many+f.Rule)
		}
	}
	return facts
}

// With the script, tshark shows the fields that ackscope shows, and the facts
// of events and packets.
func TestWiresharkScript(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	seen := 0
	for _, path := range threeProtocols(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "it.lua")
			output(t, "export", "wireshark", "-o", script, path)
			keys := []string{"acked_in", "resend_of", "finding"}
			own := strings.Fields("gaffer.sequence gaffer.ack gaffer.ack_bits riptide.message_id riptide.last " +
				"riptide.ack_bits srdp.packet_id srdp.ack srdp.flags")
			args := []string{
				"-X", "lua_script:" + script, "-r", path, "-T", "fields", "-E", "aggregator=;", "-e",
				"frame.number",
			}
			ours := []string{"packets", "-T", "fields", "-E", "aggregator=;", "-e", "frame.number"}
			for _, k := range keys {
				args = append(args, "-e", "ackscope."+k)
			}
			for _, k := range own {
				args, ours = append(args, "-e", k), append(ours, "-e", k)
			}
			facts := factsOf(t, path)
			fields := map[string][]string{}
			for line := range strings.Lines(output(t, append(ours, path)...)) {
				cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				for i, k := range own {
					if v := cells[i+1]; v != "" {
						fields[cells[0]+k] = append(fields[cells[0]+k], strings.Split(v, ";")...)
					}
				}
			}
			frames := 0
			for line := range strings.Lines(string(testenv.Output(t, tshark, args...))) {
				frames++
				cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				frame, err := strconv.ParseUint(cells[0], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				for i, k := range keys {
					got := slices.DeleteFunc(strings.Split(cells[i+1], ";"), func(s string) bool { return s == "" })
					want := facts[k][frame]
					slices.Sort(got)
					got = slices.DeleteFunc(got, func(rule string) bool {
						return !slices.Contains(want, rule) && slices.Contains(facts[k][^uint64(0)], many+rule)
					})
					slices.Sort(want)
					if got = slices.Compact(got); !slices.Equal(got, want) {
						t.Fatalf("frame %d: ackscope.%s is %q, expected %q", frame, k, got, want)
					}
					seen += len(got)
				}
				for i, k := range own {
					got := slices.DeleteFunc(strings.Split(cells[len(keys)+1+i], ";"), func(s string) bool { return s == "" })
					if want := fields[cells[0]+k]; !slices.EqualFunc(got, want, sameNumber) {
						t.Fatalf("frame %d: %s is %q, expected %q", frame, k, got, want)
					}
					seen += len(got)
				}
			}
			if frames == 0 {
				t.Error("tshark shows no frame")
			}
		})
	}
	if seen < 300 {
		t.Errorf("%d values were compared, expected 300 at least", seen)
	}
}

// sameNumber compares values that may be hexadecimal of any width.
func sameNumber(a, b string) bool {
	x, errX := strconv.ParseUint(a, 0, 64)
	y, errY := strconv.ParseUint(b, 0, 64)
	return a == b || errX == nil && errY == nil && x == y
}

// A script that is used with another capture says so, and shows nothing of its
// own.
func TestWiresharkScriptOfAnotherCapture(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	script := filepath.Join(t.TempDir(), "it.lua")
	output(t, "export", "wireshark", "-o", script, testenv.Capture(t, "u210_loss10.client.pcapng.gz"))
	out := string(testenv.Output(t, tshark, "-X", "lua_script:"+script, "-r",
		testenv.Capture(t, "yojimbo-clean.client.pcap.gz"), "-c", "40",
		"-T", "fields", "-e", "frame.number", "-e", "ackscope.flow", "-e", "_ws.expert.message"))
	refused := 0
	for line := range strings.Lines(out) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.Contains(cells[2], "another capture") {
			refused++
			if cells[1] != "" {
				t.Errorf("frame %s: a flow is shown beside %q", cells[0], cells[2])
			}
		}
	}
	if refused < 10 {
		t.Errorf("%d of 40 frames were refused, expected nearly all:\n%s", refused, out)
	}
}

// Lua reads every text back unchanged.
func TestLuaStrings(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	hostile := []string{
		`"]] os.exit(1) --`, "\\\n\r\t\x00\x01\x7f\xff", `\" .. os.execute("false") .. \"`, "]==]", "é\u2028", "\x1b[31m",
		"\\065", strings.Repeat("\\", 9) + `"`, "9\x009",
	}
	var script strings.Builder
	for _, s := range hostile {
		fmt.Fprintf(&script,
			"io.write((string.gsub(%s, '.', function(c) return string.format('%%02x', c:byte()) end)), '\\n')\n",
			export.AppendLua(nil, s))
	}
	path := filepath.Join(t.TempDir(), "it.lua")
	if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := string(testenv.Output(t, tshark, "-X", "lua_script:"+path, "-r",
		testenv.Capture(t, "yojimbo-clean.client.pcap.gz"), "-c", "1", "-T", "fields", "-e", "frame.number"))
	for _, s := range hostile {
		if !strings.Contains(out, fmt.Sprintf("%x\n", s)) {
			t.Errorf("%q was read otherwise:\n%s", s, out)
		}
	}
}

// tshark shows the facts as comments, and the frames are unchanged.
func TestPcapngComments(t *testing.T) {
	testenv.Grid(t, "tshark over every capture that has findings")
	tshark := testenv.Need(t, "tshark")
	seen := 0
	for _, path := range threeProtocols(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "told.pcapng")
			output(t, "export", "pcapng", "-o", out, path)
			same := []string{
				"-T", "fields", "-e", "frame.number", "-e", "frame.time_epoch", "-e", "frame.len", "-e",
				"frame.encap_type", "-e", "frame.cap_len", "-e", "udp.payload", "-e", "tcp.payload",
			}
			diffLines(t, "frames", string(testenv.Output(t, tshark, append([]string{"-r", path}, same...)...)),
				string(testenv.Output(t, tshark, append([]string{"-r", out}, same...)...)))
			facts := factsOf(t, path)
			for line := range strings.Lines(
				string(testenv.Output(t, tshark, "-r", out, "-T", "fields", "-e", "frame.number", "-e", "frame.comment"))) {
				number, comments, _ := strings.Cut(line, "\t")
				frame, err := strconv.ParseUint(number, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				for key, form := range map[string]string{
					"acked_in": " was acked in frame %s", "resend_of": "resend of frame %s (",
					"finding": " %s of ",
				} {
					for _, value := range facts[key][frame] {
						seen++
						if want := fmt.Sprintf(form, value); !strings.Contains(comments, want) {
							t.Fatalf("frame %d: %q is not in its comments: %s", frame, want, comments)
						}
					}
				}
				if n := strings.Count(comments, "was acked in"); n < len(facts["acked_in"][frame]) ||
					n > 0 && len(facts["acked_in"][frame]) == 0 {
					t.Fatalf("frame %d: %d comments name acks, expected %d: %s", frame, n, len(facts["acked_in"][frame]), comments)
				}
			}
		})
	}
	if seen < 100 {
		t.Errorf("%d facts were looked for, expected 100 at least", seen)
	}
}
