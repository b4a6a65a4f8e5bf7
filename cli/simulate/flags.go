package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// Flags are the settings of one simulated flow that all or some protocols
// share. A flag of a path takes one value, or two values with a slash between:
// from a to b, and from b to a.
type Flags struct {
	Protocol  string
	Seed      uint64
	Loss      string
	Burst     string
	Delay     string
	Jitter    string
	InOrder   bool
	Dup       string
	Outage    string
	Bandwidth string
	Duration  time.Duration
	Rate      string
	Payload   string
	Refuse    string
	First     string
	EventTime bool
	Messages  float64
	Clients   int
	Slots     int // of the server; 0 for the usual number
	Resend    string
	Fault     string
	Faulty    string
	Tap       string
	Write     string
	Journal   string
	Truth     string
	play      string

	begin map[string]beginner // by protocol, with its own flags
	set   *pflag.FlagSet
}

// beginner prepares a run. Its errors are about the flags.
type beginner = func(a *app.App, f *Flags) (Run, error)

// Register adds the flags with their defaults: those of the first protocol.
func (f *Flags) Register(p *pflag.FlagSet, protocols Simulators) {
	p.StringVar(&f.Protocol, "protocol", protocols.usual(), "what the endpoints speak: "+protocols.forms())
	p.Uint64Var(&f.Seed, "seed", 1, "seed of the run")
	p.StringVar(&f.Loss, "loss", "0%", "share of datagrams that are lost")
	p.StringVar(&f.Burst, "burst", "",
		"loss in bursts: `INTO,OUT`, the chance for each datagram that a burst begins, and that it ends")
	p.StringVar(&f.Delay, "delay", "20ms", "time that a datagram takes one way")
	p.StringVar(&f.Jitter, "jitter", "0ms", "random extra delay, from 0 to this")
	p.BoolVar(&f.InOrder, "in-order", false, "keep the order of datagrams whatever the jitter")
	p.StringVar(&f.Dup, "dup", "0%", "share of datagrams that arrive twice")
	p.StringVar(&f.Outage, "outage", "", "times in which everything is lost: `AT,FOR[,EVERY]`, such as 4s,500ms,4s")
	p.StringVar(&f.Bandwidth, "bandwidth", "0", "limit of the first link in bits a second, 0 for none")
	p.DurationVar(&f.Duration, "duration", 20*time.Second, "how long both sides send; the run lasts a second more")
	p.StringVar(&f.Rate, "rate", "60", "packets a second, one each frame")
	p.StringVar(&f.Payload, "payload", "16-200", "payload bytes of a packet: `LEAST-MOST`")
	p.StringVar(&f.Refuse, "refuse", "0%", "share of packets that the receiving application refuses")
	p.StringVar(&f.First, "first", "0", "sequence number of the first packet")
	p.BoolVar(&f.EventTime, "event-clock", false, "the endpoints read their clock at every arrival, not once a frame")
	p.Float64Var(&f.Messages, "messages", 0,
		"messages a second that each side sends, of the types in the profile's schema or --schema")
	p.IntVar(&f.Clients, "clients", 1, protocols.taking("clients")+"clients of the server; the capture has all of them")
	p.IntVar(&f.Slots, "slots", 0, protocols.taking("slots")+
		"clients that the server takes at a time, 0 for the usual number")
	p.StringVar(&f.Resend, "resend", "", protocols.taking("resend")+
		"when a message that is not acked goes out again, instead of the usual: a time such as `50ms`")
	p.StringVar(&f.Fault, "fault", "", "plant a fault in an endpoint: `NAME`, or list for all names (of one "+
		"protocol, with --protocol)")
	p.StringVar(&f.Faulty, "faulty", "a", "which endpoint has the fault: `a|b|both`")
	p.StringVar(&f.Tap, "tap", "a", "where the capture is taken: `a|b|between`, or a share of the way from a to b")
	p.StringVarP(&f.Write, "write", "w", "",
		"write the capture to `FILE.pcapng` (or FILE.pcap, the classic format), - for standard output")
	p.StringVar(&f.Journal, "journal", "", "`FILE` for the journal, - for standard output")
	p.StringVar(&f.Truth, "truth", "", "`FILE` for the truth, - for standard output")
	p.StringVar(&f.play, "play", "", "run a journal `FILE` again and check that every byte is the same")
	f.begin, f.set = map[string]beginner{}, p
	for _, x := range protocols {
		f.begin[x.Name] = x.Begin(p)
	}
}

// Paths parses the flags of the paths in both directions.
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
			return toB, toA,
				fmt.Errorf("--%s: %w", [...]string{"loss", "dup", "delay", "jitter", "burst", "outage", "bandwidth"}[i], e)
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

// Pair parses one value for both directions, or two values with a slash
// between.
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

// ParseNumber parses a number.
func ParseNumber(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// ParseShare parses a share such as 5% or 0.05.
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

// ParseDelay parses a time such as 20ms. It must not be negative.
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

// ParseRange parses LEAST-MOST, or one number for both, up to 16384.
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

// Params returns the parameters by their names in truth files.
func (f *Flags) Params() map[string]any {
	m := map[string]any{
		"seed": f.Seed, "dur": f.Duration.Seconds(), "loss": f.Loss, "delay": f.Delay, "jitter": f.Jitter,
		"dup": f.Dup,
	}
	if rates, err := Pair(f.Rate, ParseNumber); err == nil {
		m["pps"], m["cpps"], m["spps"] = rates[0], rates[0], rates[1]
	}
	if f.EventTime {
		m["event"] = "1"
	}
	return m
}
