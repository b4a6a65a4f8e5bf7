package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// tasks are the headings of docs/tasks.md.
var tasks = []string{
	"My players rubber-band",
	"Messages come late",
	"Network or code?",
	"Which version is it?",
	"Is the new build worse?",
	"Alert in CI",
	"What did the client know at frame N?",
}

// mostCommands is how many commands a task takes at most.
const mostCommands = 3

// TestTasks: docs/tasks.md answers each task by one to three commands. TestConsole runs them.
func TestTasks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.Module(t), "docs", "tasks.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		found = append(found, title)
		commands := 0
		rewrite(body, func(command, was string) string {
			commands += strings.Count(command, "ackscope ")
			return was
		})
		if commands < 1 || commands > mostCommands {
			t.Errorf("%q takes %d commands, expected 1 to %d", title, commands, mostCommands)
		}
	}
	if !slices.Equal(found, tasks) {
		t.Errorf("docs/tasks.md has the tasks %q, expected %q", found, tasks)
	}
}
