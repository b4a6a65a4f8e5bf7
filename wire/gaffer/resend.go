package gaffer

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ResendPolicy says when a message that is not yet acked goes into another packet. The
// article names all three policies.
type ResendPolicy uint8

const (
	ResendFixed   ResendPolicy = iota // a fixed time after the last send
	ResendRTT                         // a multiple of the round trip time
	ResendBackoff                     // longer after each send
)

// Resend is the wait between two sends of one message. The zero value means that no
// policy is set. As text it is "50ms", "1.5rtt" or "backoff(100ms, x2, 1s)".
//
// Source: "Reliable Ordered Messages", Glenn Fiedler, 2016.
type Resend struct {
	Policy ResendPolicy
	After  time.Duration // the fixed time; the first wait of a back-off; the wait while no RTT is known
	Times  float64       // multiple of the RTT; growth factor of the back-off
	Most   time.Duration // bound of the back-off; 0 for none
}

const (
	// ResendUsual is the article's time between two sends of a message. It is also the wait
	// of a multiple of the RTT while no RTT is known.
	// Source: law, the article "Reliable Ordered Messages": a message is sent again after 0.1 s
	ResendUsual = 100 * time.Millisecond
	// ResendLeast and ResendMost bound the times of a policy.
	// Source: bound, the times of a resend policy
	ResendLeast, ResendMost = time.Millisecond, time.Minute
	// ResendTimesLeast and ResendTimesMost bound the multiple of the RTT and the growth
	// factor of a back-off.
	// Source: bound, the factors of a resend policy
	ResendTimesLeast, ResendTimesMost = 0.1, 100.
)

// resendForms names all forms of a policy, for errors.
const resendForms = "a time such as 50ms, a multiple of the round trip such as 1.5rtt, or backoff(100ms, x2, 1s)"

// Wait returns the time from a message's latest send to the next one. The latest send
// was number sends, from 1. The RTT is the sender's own, 0 if it has none yet.
func (r *Resend) Wait(sends int, rtt time.Duration) time.Duration {
	switch r.Policy {
	case ResendRTT:
		if rtt > 0 {
			return time.Duration(r.Times * float64(rtt))
		}
	case ResendBackoff:
		w := float64(r.After) * math.Pow(r.Times, float64(sends-1))
		if r.Most > 0 {
			w = min(w, float64(r.Most))
		}
		return time.Duration(min(w, float64(math.MaxInt64/2)))
	}
	return r.After
}

// IsSet reports whether a policy is set.
func (r *Resend) IsSet() bool { return *r != Resend{} }

// String returns the policy as ParseResend reads it. It returns "" if none is set.
func (r Resend) String() string {
	times := strconv.FormatFloat(r.Times, 'f', -1, 64)
	switch {
	case !r.IsSet():
		return ""
	case r.Policy == ResendRTT:
		return times + "rtt"
	case r.Policy == ResendBackoff && r.Most == 0:
		return fmt.Sprintf("backoff(%v, x%s)", r.After, times)
	case r.Policy == ResendBackoff:
		return fmt.Sprintf("backoff(%v, x%s, %v)", r.After, times, r.Most)
	}
	return r.After.String()
}

// ParseResend reads a policy: "50ms", "1.5rtt" or "backoff(100ms, x2, 1s)". The last part
// of a back-off may be left out: its waits then grow without a bound. Its error says what
// was expected, what was found, and in which part.
func ParseResend(text string) (r Resend, err error) {
	if list, ok := strings.CutPrefix(text, "backoff("); ok {
		r, err = parseBackoff(list)
	} else if times, ok := strings.CutSuffix(text, "rtt"); ok {
		r = Resend{Policy: ResendRTT, After: ResendUsual}
		r.Times, err = parseTimes(times, ResendTimesLeast)
	} else if r.After, err = parseWait(text); errors.Is(err, errForm) {
		err = fmt.Errorf("expected %s, found %q", resendForms, text)
	}
	if err != nil {
		return Resend{}, err
	}
	return r, nil
}

// parseBackoff reads what follows "backoff(".
func parseBackoff(list string) (r Resend, err error) {
	list, ok := strings.CutSuffix(list, ")")
	parts := strings.Split(list, ",")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return r, fmt.Errorf("expected backoff(FIRST, xFACTOR, MOST) such as backoff(100ms, x2, 1s), found %q",
			"backoff("+list)
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	r.Policy = ResendBackoff
	if r.After, err = parseWait(parts[0]); err != nil {
		return r, fmt.Errorf("backoff: first wait: %w", err)
	}
	times, ok := strings.CutPrefix(parts[1], "x")
	if !ok {
		return r, fmt.Errorf("backoff: factor: expected x and a number such as x2, found %q", parts[1])
	}
	if r.Times, err = parseTimes(times, 1); err != nil {
		return r, fmt.Errorf("backoff: factor: %w", err)
	}
	if len(parts) == 3 {
		if r.Most, err = parseWait(parts[2]); err != nil {
			return r, fmt.Errorf("backoff: longest wait: %w", err)
		}
		if r.Most < r.After {
			return r, fmt.Errorf("backoff: longest wait: expected at least the first wait, %v, found %v", r.After, r.Most)
		}
	}
	return r, nil
}

// errForm is the error of parseWait for a text that is no time.
var errForm = errors.New("expected a time such as 50ms")

func parseWait(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w, found %q", errForm, text)
	case d < ResendLeast || d > ResendMost:
		return 0, fmt.Errorf("expected %v to %v, found %v", ResendLeast, ResendMost, d)
	}
	return d, nil
}

func parseTimes(text string, least float64) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || strings.Trim(text, "0123456789.") != "":
		return 0, fmt.Errorf("expected a number such as 1.5, found %q", text)
	case v < least || v > ResendTimesMost:
		return 0, fmt.Errorf("expected %g to %g, found %s", least, ResendTimesMost, text)
	}
	return v, nil
}

// UnmarshalText and MarshalText let profile files use the words of a policy.

// UnmarshalText reads a policy. An empty text means that none is set.
func (r *Resend) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*r = Resend{}
		return nil
	}
	*r, err = ParseResend(string(text))
	return err
}

// MarshalText returns String.
func (r Resend) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
