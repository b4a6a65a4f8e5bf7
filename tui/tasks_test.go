package tui

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ackscope/ackscope/internal/testenv"
)

// taskShows are expressions for what the screen shows at the end of each task of docs/tui.md.
var taskShows = []string{
	`▸ packets(?s:.*)frame 3491`,
	`▸ state(?s:.*)A thinks B has packets up to 152`,
	`▸ packets(?s:.*)the sender learned that frame 300 arrived`,
	`loss so far(?s:.*)of packets`,
	`messages of flow 1 by wait(?s:.*)held back`,
	`▸ packets(?s:.*)\d+ packets carry it`,
	`[1-9]\d* of 2,332 packets(?s:.*)✗ lost`,
	`A  10\.20\.2\.1:39422 +riptide@2\.1\.0 +consistent`,
	`(?i)a client that leaves`,
	`copied: ackscope findings -Y 'flow == 1 && finding.rule ==`,
}

// The ten tasks of docs/tui.md can be done with the keys that stand there, and with so many.
func TestTUITasks(t *testing.T) {
	program := testenv.Ackscope(t)
	text, err := os.ReadFile("../docs/tui.md")
	if err != nil {
		t.Fatal(err)
	}
	task := regexp.MustCompile("(?m)^\\| ([^|]+) \\| `([^`|]+)` \\| ([^|]+) \\| (\\d+) \\|$")
	rows := task.FindAllStringSubmatch(string(text), -1)
	if len(rows) != len(taskShows) {
		t.Fatalf("docs/tui.md has %d tasks, expected %d", len(rows), len(taskShows))
	}
	for i, row := range rows {
		t.Run(row[1], func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t, "120", "40")
			path := testenv.Capture(t, row[2])
			x.run(program + " tui " + path)
			x.see(`overview +[\d,]+ packets(?s:.*)code +[AB] `)
			pressed := 0
			for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[3], -1) {
				if typed := strings.Trim(key[1], `"`); typed != key[1] {
					x.typed(typed)
					pressed += utf8.RuneCountInString(typed)
				} else {
					x.keys(key[1])
					pressed++
				}
				still(x)
			}
			x.see(taskShows[i])
			if want, _ := strconv.Atoi(row[4]); pressed != want {
				t.Errorf("%d keys are pressed, and the document says %d", pressed, want)
			}
		})
	}
}

// still waits until the screen does not change any more: a person presses a key when they see what
// the last one did.
func still(x *testTerminal) {
	x.t.Helper()
	was := ""
	for same := 0; same < 3; {
		is := x.do("capture-pane", "-p")
		if is == was {
			same++
		} else {
			same = 0
		}
		was = is
	}
}
