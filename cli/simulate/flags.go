package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// Paths reads the flags of both directions.
func (f *Flags) Paths() (toB, toA sim.Path, err error) {
	loss, err1 := Pair(f.Loss, ParseShare)
	dup, err2 := Pair(f.Dup, ParseShare)
	delay, err3 := Pair(f.Delay, ParseDelay)
	jitter, err4 := Pair(f.Jitter, ParseDelay)
	burst, err5 := Pair(f.Burst, parseBurst)
	outage, err6 := Pair(f.Outage, parseOutage)
	bandwidth, err7 := Pair(f.Bandwidth, strconv.Atoi)
	for i, e := range []error{err1, err2, err3, err4, err5, err6, err7} {
		if e != nil {
			return toB, toA, fmt.Errorf("--%s: %w", [...]string{"loss", "dup", "delay", "jitter", "burst", "outage", "bandwidth"}[i], e)
		}
	}
	at := func(i int) sim.Path {
		return sim.Path{
			Delay: delay[i], Jitter: jitter[i], InOrder: f.InOrder, Loss: loss[i], Duplicate: dup[i],
			Bursts: burst[i], Outages: outage[i], Rate: max(bandwidth[i], 0),
		}
	}
	return at(0), at(1), nil
}

// Pair reads one value for both directions, or two with a slash between.
func Pair[T any](text string, parse func(string) (T, error)) (both [2]T, err error) {
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

// ParseShare reads a share such as 5% or 0.05.
func ParseShare(text string) (float64, error) {
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

// ParseDelay reads a time such as 20ms, 0 or more.
func ParseDelay(text string) (time.Duration, error) {
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
		if g.ToBad, err = ParseShare(into); err == nil {
			g.ToGood, err = ParseShare(out)
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
		d, err := ParseDelay(part)
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

// ParseRange reads LEAST-MOST, or one number for both, up to 16384.
func ParseRange(text string) (least, most int, err error) {
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

// Params are the parameters as truth files name them: milliseconds, percent.
func (f *Flags) Params() map[string]any {
	m := map[string]any{"seed": f.Seed, "dur": f.Duration.Seconds(), "loss": f.Loss, "delay": f.Delay, "jitter": f.Jitter, "dup": f.Dup}
	if rates, err := Pair(f.Rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }); err == nil {
		m["pps"], m["cpps"], m["spps"] = rates[0], rates[0], rates[1]
	}
	if f.EventTime {
		m["event"] = "1"
	}
	return m
}
