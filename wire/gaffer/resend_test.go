package gaffer_test

import (
	"strings"
	"testing"
	"time"

	wire "github.com/ackscope/ackscope/wire/gaffer"
)

const ms = time.Millisecond

func TestParseResend(t *testing.T) {
	for text, want := range map[string]wire.Resend{
		"50ms":                    {After: 50 * ms},
		"0.1s":                    {After: 100 * ms},
		"1m0s":                    {After: time.Minute},
		"1rtt":                    {Policy: wire.ResendRTT, After: 100 * ms, Times: 1},
		"1.5rtt":                  {Policy: wire.ResendRTT, After: 100 * ms, Times: 1.5},
		"backoff(100ms, x2, 1s)":  {Policy: wire.ResendBackoff, After: 100 * ms, Times: 2, Most: time.Second},
		"backoff(50ms,x1.5,50ms)": {Policy: wire.ResendBackoff, After: 50 * ms, Times: 1.5, Most: 50 * ms},
		"backoff(100ms, x2)":      {Policy: wire.ResendBackoff, After: 100 * ms, Times: 2},
	} {
		got, err := wire.ParseResend(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, expected %+v", text, got, err, want)
		}
		if again, err := wire.ParseResend(got.String()); err != nil || again != got {
			t.Errorf("%s: %s read again is %+v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"":                        `expected a time such as 50ms, a multiple of the round trip such as 1.5rtt, or backoff(100ms, x2, 1s), found ""`,
		"50":                      `found "50"`,
		"soon":                    "a multiple of the round trip",
		"0s":                      "expected 1ms to 1m0s, found 0s",
		"-1s":                     "found -1s",
		"2m":                      "found 2m0s",
		"rtt":                     `expected a number such as 1.5, found ""`,
		"NaNrtt":                  `found "NaN"`,
		"0x1p3rtt":                `found "0x1p3"`,
		"0.05rtt":                 "expected 0.1 to 100, found 0.05",
		"101rtt":                  "found 101",
		"backoff":                 `found "backoff"`,
		"backoff(":                `expected backoff(FIRST, xFACTOR, MOST) such as backoff(100ms, x2, 1s), found "backoff("`,
		"backoff(1s)":             "expected backoff(FIRST",
		"backoff(1s,x2,3s,4s)":    "expected backoff(FIRST",
		"backoff(a, x2, 1s)":      `backoff: first wait: expected a time such as 50ms, found "a"`,
		"backoff(100ms, 2, 1s)":   `backoff: factor: expected x and a number such as x2, found "2"`,
		"backoff(100ms, x.5, 1s)": "backoff: factor: expected 1 to 100, found .5",
		"backoff(100ms, x2, b)":   `backoff: longest wait: expected a time such as 50ms, found "b"`,
		"backoff(1s, x2, 100ms)":  "backoff: longest wait: expected at least the first wait, 1s, found 100ms",
	} {
		if r, err := wire.ParseResend(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, expected an error with %s", text, r, err, want)
		}
	}
}

// TestResendWait: the waits of each policy, by the number of the latest send.
func TestResendWait(t *testing.T) {
	for text, want := range map[string][]time.Duration{
		"50ms":                   {50 * ms, 50 * ms, 50 * ms, 50 * ms, 50 * ms},
		"1.5rtt":                 {60 * ms, 60 * ms, 60 * ms, 60 * ms, 60 * ms},
		"backoff(100ms, x2, 1s)": {100 * ms, 200 * ms, 400 * ms, 800 * ms, time.Second},
		"backoff(100ms, x2)":     {100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms},
	} {
		r, err := wire.ParseResend(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if got := r.Wait(i+1, 40*ms); got != w {
				t.Errorf("%s: %v after send %d, expected %v", text, got, i+1, w)
			}
		}
		if r.Policy == wire.ResendRTT && r.Wait(1, 0) != wire.ResendUsual {
			t.Errorf("%s: %v without an RTT, expected %v", text, r.Wait(1, 0), wire.ResendUsual)
		}
		if got := r.Wait(1<<30, time.Hour); got < 0 {
			t.Errorf("%s: %v after very many sends", text, got)
		}
	}
}

// FuzzResend: what is read is in range, and reads the same once written.
func FuzzResend(f *testing.F) {
	for _, text := range []string{"50ms", "1.5rtt", "backoff(100ms, x2, 1s)", "backoff(1ms,x1)", "1e3s", "99.99rtt"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := wire.ParseResend(text)
		if err != nil {
			return
		}
		if r.After < wire.ResendLeast || r.After > wire.ResendMost || r.Times < 0 || r.Times > wire.ResendTimesMost {
			t.Errorf("%q: %+v is out of range", text, r)
		}
		if again, err := wire.ParseResend(r.String()); err != nil || again != r {
			t.Errorf("%q: %s read again is %+v, %v", text, r, again, err)
		}
	})
}
