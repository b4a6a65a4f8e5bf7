package tui

import (
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// q goes back to where one came from: to the finding or the message that led to a
// packet, past views that stand beside each other, and at last to the flows.
func TestBack(t *testing.T) {
	m := openModel(t, "u210_falseack.server.pcapng.gz")
	screenOf(t, m, 160, 50)
	for _, c := range []struct {
		keys string
		want []view // after each q
	}{
		{"<Enter>", []view{viewFlows}},
		{"Fj<Enter>", []view{viewFindings, viewFlows}},
		{"<Enter>M<Enter>", []view{viewMessages, viewPackets, viewFlows}},
		{"<Enter>SLTMFAR", []view{viewPackets, viewFlows}},
		{"<Enter>S<Enter>", []view{viewState, viewPackets, viewFlows}},
		{"SL", []view{viewFlows}},
		{"<Enter>100G200G", []view{viewFlows}},
		{"<Enter><Tab>", []view{viewPackets, viewFlows}},
	} {
		m.store.Lock()
		m.goTo(location{view: viewFlows, entry: -1})
		m.back, m.packet.pane = nil, paneList
		m.store.Unlock()
		for _, key := range strings.SplitAfter(strings.ReplaceAll(c.keys, "<", "\x00<"), "\x00") {
			press(m, strings.TrimSuffix(key, "\x00"))
			screenOf(t, m, 100, 30) // keys act on what is drawn
		}
		for _, want := range c.want {
			press(m, "q")
			if m.view != want || want == viewFindings && m.flow != 0 {
				t.Errorf("%s, then q: in %s of flow %d, expected %s", c.keys, viewNames[m.view], m.flow, viewNames[want])
				break
			}
		}
		if m.quit {
			t.Errorf("%s: it left", c.keys)
		}
	}
}

// Places of the screen: the head of a column sorts, what stands beside a table or
// below it is not a row of it, and under the help nothing is opened.
func TestMousePlaces(t *testing.T) {
	m := openModel(t, "u210_falseack.server.pcapng.gz")
	screenOf(t, m, 160, 50)
	m.store.Lock()
	head := m.flows.heads[slices.IndexFunc(m.flows.heads, func(h flowHead) bool { return flowColumns[h.column].name == "RTT ms" })]
	m.click(head.from, 2)
	if flowColumns[m.flows.sort].name != "RTT ms" || !m.flows.reverse {
		t.Errorf("a click on the head of RTT sorts by %s", flowColumns[m.flows.sort].name)
	}
	if m.click(head.to-1, 2); m.flows.reverse {
		t.Error("a second click does not turn the order around")
	}
	m.help = true
	if m.doubleClick(5, 4); m.view != viewFlows {
		t.Error("a click on the help opened a flow")
	}
	m.help = false
	m.doubleClick(5, 30) // below the only flow there is
	m.store.Unlock()
	press(m, "F")
	screenOf(t, m, 160, 24)
	m.store.Lock()
	m.click(10, 5)
	if m.findings.list.Cursor != 2 {
		t.Errorf("the third row was clicked, the cursor is at row %d", m.findings.list.Cursor)
	}
	m.click(120, 8)
	m.wheel(120, 8, 3)
	if m.findings.list.Cursor != 2 || m.text.List.Top != 3 {
		t.Errorf("beside the list: cursor at row %d, text from line %d; expected 2, 3", m.findings.list.Cursor, m.text.List.Top)
	}
	m.store.Unlock()
}

// While a capture is read, many flows are ordered anew only now and then; a key that
// asks for another order is heeded at once, and at the end all is in order.
func TestOrderWhileReading(t *testing.T) {
	file, err := os.Open(testenv.Capture(t, "reliable-two-clients.server.pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	pipe := &gate{data: data, more: make(chan int, 3)}
	pipe.more <- len(data) / 2
	in, err := capture.Open([]string{"-"}, capture.Options{Keep: capture.KeepAll, Stdin: pipe})
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(in, analyze.Options{Registry: driven().registry}, true)
	s.Start()
	t.Cleanup(func() { _ = s.Stop() })
	await(t, s, func() bool { return len(s.Flows()) > 1 })
	m := NewModel(s, Options{Table: driven().table, Theme: "dark"})
	table := &m.flows
	s.Lock()
	table.settle(m)
	want := slices.Clone(table.order)
	if len(want) < 2 {
		t.Fatalf("%d flows", len(want))
	}
	turned := slices.Clone(want)
	slices.Reverse(turned)
	table.order = slices.Clone(turned) // as it was some packets ago
	table.cost, table.made = time.Hour, time.Now()
	version := s.Version()
	s.Unlock()
	pipe.more <- len(data) / 4
	await(t, s, func() bool { return s.Version() > version })
	s.Lock()
	if table.settle(m); s.Settled() || !slices.Equal(table.order, turned) {
		t.Error("ordered anew though that would take most of the time")
	}
	m.Key("i")
	if table.settle(m); !slices.Equal(table.order, turned) || table.version != s.Version() {
		t.Error("the order that was asked for is not shown at once")
	}
	table.order = slices.Clone(want)
	table.cost, table.made = time.Hour, time.Now()
	s.Unlock()
	close(pipe.more)
	await(t, s, s.Settled)
	s.Lock()
	defer s.Unlock()
	turned = slices.Clone(s.Flows())
	slices.Reverse(turned)
	if table.settle(m); !slices.Equal(table.order, turned) {
		t.Error("at the end of the capture it is not in order")
	}
	table.reverse = false
	for i := range flowColumns {
		table.sort = i
		table.settle(m)
		for j := range table.order[1:] {
			x, y := flowColumns[i].key(m, table.order[j]), flowColumns[i].key(m, table.order[j+1])
			if x.compare(&y) > 0 {
				t.Errorf("by %s: flow %d before %d", flowColumns[i].name, table.order[j].ID, table.order[j+1].ID)
			}
		}
	}
}

// gate is a pipe that gives so many bytes more of its data for each number that it is
// sent, and all once that is over.
type gate struct {
	data []byte
	more chan int
	left int
}

func (g *gate) Read(p []byte) (int, error) {
	if len(g.data) == 0 {
		return 0, io.EOF
	}
	for g.left == 0 {
		n, ok := <-g.more
		if g.left = n; !ok {
			g.left = len(g.data)
		}
	}
	n := copy(p[:min(len(p), g.left)], g.data)
	g.data, g.left = g.data[n:], g.left-n
	return n, nil
}

// However small the screen, the list is there.
func TestTinyScreens(t *testing.T) {
	m := openModel(t, "u210_falseack.server.pcapng.gz")
	screenOf(t, m, 80, 24)
	for _, c := range []struct{ keys, want string }{{"", "▶ 1"}, {"<Enter>", "▶    1"}, {"M", "▶2"}, {"F", " E riptide"}, {"R", "▶   1"}} {
		press(m, c.keys)
		screenOf(t, m, 40, 8)
		if got := textOf(screenOf(t, m, 24, 8)); !strings.Contains(got, c.want) {
			t.Errorf("after %q the screen lacks %q:\n%s", c.keys, c.want, got)
		}
	}
}

// Behind a command Tab puts what can stand there, in turn.
func TestArgumentsComplete(t *testing.T) {
	m := openModel(t, "reliable-loss10.client.pcap.gz")
	screenOf(t, m, 80, 24)
	for keys, want := range map[string]string{
		":theme l<Tab>": "theme light", ":sort never<Tab>": "sort never acked", ":sort <Tab><Tab><Backtab>": "sort #", ":set n<Tab>": "set nofollow",
		":columns number gaffer.seq<Tab>": "columns number gaffer.sequence", ":columns num<Tab>": "columns number", ":filter gaffer.seq<Tab>": "filter gaffer.sequence",
		":the<Tab>": "theme", ":replay reliable@>=1<Tab>": "replay reliable@>=1.3", ":w x<Tab>": "w x",
	} {
		press(m, keys)
		if got := m.prompt.line.String(); got != want {
			t.Errorf("%s: %q, expected %q", keys, got, want)
		}
		press(m, "<Esc>")
	}
}

// Of a line that is broken nothing is lost, and no part is too wide.
func TestWrapLine(t *testing.T) {
	for _, line := range append(helpLines(), "", "short", "  a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9", strings.Repeat("x", 100), "\x1b[33m"+strings.Repeat("word ", 40)+"\x1b[0mend") {
		for _, width := range []int{20, 37, 78} {
			parts := draw.WrapLine(line, width)
			var words []string
			for _, part := range parts {
				if n := draw.TextWidth(draw.StripStyles(part)); n > width && strings.Contains(strings.TrimSpace(draw.StripStyles(part)), " ") {
					t.Errorf("%q is %d columns wide, of %d", part, n, width)
				}
				words = append(words, strings.Fields(draw.StripStyles(part))...)
			}
			if want := strings.Fields(draw.StripStyles(line)); !slices.Equal(words, want) {
				t.Errorf("%q became %q", want, words)
			}
		}
	}
}

// Where no round trip is known, as of an encrypted flow, the ladder says so in its
// title, and not across the name of the selected packet.
func TestFlatLadder(t *testing.T) {
	m := openModel(t, "yojimbo-clean.client.pcap.gz")
	screenOf(t, m, 120, 24)
	press(m, "<Enter>50GL")
	lines := strings.Split(textOf(screenOf(t, m, 120, 24)), "\n")
	if !strings.Contains(lines[2], "flat: the way's length is not known") || !strings.Contains(lines[3], "50 encrypted payload, counter") {
		t.Errorf("the ladder begins with\n%s\n%s", lines[2], lines[3])
	}
}
