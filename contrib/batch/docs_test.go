package batch_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/contrib/batch/command"
)

// foreign are options in the README that are of other programs: docker, the job server, `ackscope batch`.
var foreign = []string{"--rm", "--share", "--baseline", "--fail-on"}

// TestDocs: the README and the compose file name options that there are, and the version of Beam.
func TestDocs(t *testing.T) {
	var help bytes.Buffer
	for _, name := range []string{"run", "worker"} {
		if code := command.Run(t.Context(), []string{name, "--help"}, &help, &help); code != 0 {
			t.Fatal(help.String())
		}
	}
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	readme, compose := read("README.md"), read(filepath.Join("flink", "compose.yaml"))
	_, submit, ok := strings.Cut(compose, "submit:\n")
	if !ok {
		t.Fatal("the compose file has no service that submits")
	}
	found := 0
	for _, option := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(readme+submit, -1) {
		found++
		if !slices.Contains(foreign, option) && !regexp.MustCompile(option+`[ \[]`).MatchString(help.String()) {
			t.Errorf("there is no option %s", option)
		}
	}
	if found < 40 {
		t.Errorf("only %d options were looked at", found)
	}
	beam := regexp.MustCompile(`beam/sdks/v2 v([0-9.]+)`).FindStringSubmatch(read("go.mod"))
	for name, text := range map[string]string{"README.md": readme, "compose.yaml": compose} {
		for _, x := range regexp.MustCompile(`job_server:(\S+?)[\s`+"`]").FindAllStringSubmatch(text, -1) {
			if x[1] != beam[1] {
				t.Errorf("%s has a job server %s, and go.mod Beam %s", name, x[1], beam[1])
			}
		}
		if !strings.Contains(text, "job_server:"+beam[1]) {
			t.Errorf("%s names no job server of Beam %s", name, beam[1])
		}
	}
}
