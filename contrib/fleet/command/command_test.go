package command

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestRefusals gives wrong flags. Each error must say what was expected.
func TestRefusals(t *testing.T) {
	for _, x := range []struct{ args, want string }{
		{"sensor --site EU --name a", "site: expected"},
		{"sensor --site eu --name ../x", "sensor: expected"},
		{"sensor --site eu --name a", "expected -i INTERFACE or -r FILE"},
		{"sensor --site eu --name a -r x -i y", "expected -i INTERFACE or -r FILE"},
		{"sensor --site eu --name a -r x --spool-size 1x", "--spool-size"},
		{"collect", "expected -o DIR"},
		{"collect -o x --key /nonexistent", "/nonexistent"},
		{"fetch", "expected --tables DIR"},
		{"hub --access /nonexistent", "hub key"},
		{"hub key", "expected --site NAME or --operator"},
		{"hub key --site eu --operator", "expected --site NAME or --operator"},
		{"demo --for 1s", "expected at least"},
	} {
		var out bytes.Buffer
		code := Run(context.Background(), strings.Fields(x.args), &out, &out)
		if code != exitError || !strings.Contains(out.String(), x.want) {
			t.Errorf("%s: expected exit code 2 and %q, found %d and %q", x.args, x.want, code, out.String())
		}
	}
}
