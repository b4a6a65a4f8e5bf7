package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// paths reads the flags of both directions.
func (f *simulateFlags) paths() (toB, toA sim.Path, err error) {
	loss, err1 := pair(f.loss, parseShare)
	dup, err2 := pair(f.dup, parseShare)
	delay, err3 := pair(f.delay, parseDelay)
	jitter, err4 := pair(f.jitter, parseDelay)
	burst, err5 := pair(f.burst, parseBurst)
	outage, err6 := pair(f.outage, parseOutage)
	bandwidth, err7 := pair(f.bandwidth, strconv.Atoi)
	for i, e := range []error{err1, err2, err3, err4, err5, err6, err7} {
		if e != nil {
			return toB, toA, fmt.Errorf("--%s: %w", [...]string{"loss", "dup", "delay", "jitter", "burst", "outage", "bandwidth"}[i], e)
		}
	}
	at := func(i int) sim.Path {
		return sim.Path{
			Delay: delay[i], Jitter: jitter[i], InOrder: f.inOrder, Loss: loss[i], Duplicate: dup[i],
			Bursts: burst[i], Outages: outage[i], Rate: max(bandwidth[i], 0),
		}
	}
	return at(0), at(1), nil
}

// pair reads one value for both directions, or two with a slash between.
func pair[T any](text string, parse func(string) (T, error)) (both [2]T, err error) {
	first, second, two := strings.Cut(text, "/")
	if both[0], err = parse(first); err != nil {
		return both, err
	}
	if !two {
		both[1] = both[0]
		return both, nil
	}
	both[1], err = parse(second)
	return both, err
}

func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q: expected 0%% to 100%%", text)
	}
	return v, nil
}

func parseDelay(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: expected a time such as 20ms", text)
	}
	return d, nil
}

func parseBurst(text string) (g sim.Gilbert, err error) {
	if text == "" {
		return g, nil
	}
	into, out, ok := strings.Cut(text, ",")
	if ok {
		if g.ToBad, err = parseShare(into); err == nil {
			g.ToGood, err = parseShare(out)
		}
	}
	if !ok || err != nil {
		return g, fmt.Errorf("%q: expected INTO,OUT such as 1%%,20%%", text)
	}
	return g, nil
}

func parseOutage(text string) ([]sim.Outage, error) {
	if text == "" {
		return nil, nil
	}
	var parts []time.Duration
	for part := range strings.SplitSeq(text, ",") {
		d, err := parseDelay(part)
		if err != nil {
			return nil, err
		}
		parts = append(parts, d)
	}
	if len(parts) < 2 || len(parts) > 3 {
		return nil, fmt.Errorf("%q: expected AT,FOR[,EVERY] such as 4s,500ms", text)
	}
	o := sim.Outage{From: machine.Instant(parts[0]), For: parts[1]}
	if len(parts) == 3 {
		o.Every = parts[2]
	}
	return []sim.Outage{o}, nil
}

func parseRange(text string) (least, most int, err error) {
	a, b, ok := strings.Cut(text, "-")
	if !ok {
		b = a
	}
	least, err1 := strconv.Atoi(a)
	most, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || least < 0 || most < least || most > 16384 {
		return 0, 0, fmt.Errorf("%q: expected LEAST-MOST within 0-16384", text)
	}
	return least, most, nil
}
