package yamlfile

import (
	"errors"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	got := ""
	set := func(name, value string) error {
		if value == "bad" {
			return errors.New("expected a good one")
		}
		got += name + "=" + value + ";"
		return nil
	}
	for _, c := range []struct{ src, want, err string }{
		{"", "", ""},
		{"# nothing\n", "", ""},
		{"loss: 3%\n", "loss=3%;", ""},
		{"# first\nrtt: 150ms # here\n\nstall: \"1s\"\n", "rtt=150ms;stall=1s;", ""},
		{"{n: 1, x: 2.5, on: true}", "n=1;x=2.5;on=true;", ""},
		{"rtt: 1ms\nstall: bad\n", "", `line 2: expected a good one`},
		{"rtt: 1ms\nrtt: 2ms\n", "", "line 2: a setting stands twice"},
		{"rtt: 1ms\nstall:\n  - 2\n", "", `line 2: expected one plain value`},
		{"rtt:\n", "", `line 1: expected one plain value`},
		{"rtt: &a 1ms\n", "", `line 1: expected one plain value`},
		{"- 1\n", "", "line 1: expected settings (name: value)"},
		{"hello", "", "line 1: expected settings (name: value)"},
		{"a: 1\n---\nb: 2\n", "", "expected one document, found 2"},
		{"a: [\n", "", "line 1: this is not YAML"},
	} {
		got = ""
		err := Settings([]byte(c.src), "x.yaml", set)
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%q: %q, %v, expected %q", c.src, got, err, c.want)
		case c.err != "" && (err == nil || err.Error() != "x.yaml: "+c.err):
			t.Errorf("%q: %v, expected %s", c.src, err, c.err)
		}
	}
}

// TestSettingsQuotesNoKey: the file may be a key that was given by mistake.
func TestSettingsQuotesNoKey(t *testing.T) {
	const key = "Tr0ub43bffcbff"
	refuse := func(string, string) error { return errors.New("expected another") }
	for _, src := range []string{"key: " + key + "\n", key + ": 1\n", key, "- " + key} {
		if err := Settings([]byte(src), "x.yaml", refuse); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", src, err)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte("loss: 3%\n"))
	f.Add([]byte("a: &x 1\nb: *x\n"))
	f.Add([]byte("? a\n: !"))
	f.Fuzz(func(_ *testing.T, src []byte) {
		_ = Settings(src, "x", func(string, string) error { return nil }) // must return
	})
}
