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
		{
			"sensor --site eu --name a -r ../../../testdata/pcaps/linktype-raw12.pcap.gz --vantage c",
			"--vantage \"c\": expected a, b",
		},
		{"sensor --site eu --name a -r x -i y", "expected -i INTERFACE or -r FILE"},
		{"sensor --site eu --name a -r x --spool-size 1x", "--spool-size"},
		{"sensor --site eu --name a -r x --memory 1MiB", "--memory 1MiB: expected 64 MiB at least"},
		{"sensor --site eu --name a -r x --max-flows -1", "--max-flows"},
		{"sensor --site eu --name a -r x -Z 4711:4712", "-Z is for live captures"},
		{"sensor --site eu --name a -r x --no-host", "--no-host is for live captures"},
		{"sensor --site eu --name a -i lo -i lo", "expected each interface once"},
		{"sensor --site eu --name a -i lo -f nonsense", "nonsense"},
		{"sensor --site eu --name a -i lo -B 4096", "-B 4096"},
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
