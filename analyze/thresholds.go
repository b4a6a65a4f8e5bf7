package analyze

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Thresholds are the limits from which on steady trouble is a finding. DefaultThresholds has
// the usual ones with their sources; --thresholds and --set change them. A limit that is
// switched off is +Inf, or the longest time.
type Thresholds struct {
	Loss      float64       // share of a side's packets that the network lost, 0..1
	RTT       time.Duration // the mean round trip, and the median one
	Jitter    time.Duration // mean difference of successive round trips
	Stall     time.Duration // the longest silence of a side that usually sends
	Idle      time.Duration // the silence of both sides from which on a NAT may have forgotten them
	Resends   float64       // share of messages that were sent again, 0..1
	Bandwidth float64       // payload bytes of one side in its busiest second
}

// Thresholds returns the limits that the session's rules compare with.
func (s *Session) Thresholds() Thresholds { return s.thresholds }

// DefaultThresholds returns the limits that hold where the user gives none.
func DefaultThresholds() Thresholds {
	return Thresholds{
		// Source: ITU-T G.1010 (2001), table I.1, asks for less than 3 % loss where people talk.
		Loss: 0.03,
		// Source: our choice. ITU-T G.114 (2003) says that below 150 ms most applications
		// seem to answer at once. It means the delay one way; tasks that need quick answers may
		// suffer below 100 ms already. We apply it to the round trip, since a player's action and
		// its answer take one. Games differ: first-person games suffer most, and strategy games
		// least, by M. and K. Claypool, "Latency and player actions in online games", 2006.
		RTT: 150 * time.Millisecond,
		// Source: measured. Recordings of clean networks stay below 5 ms beyond the peer's wait,
		// and one whose delay varies by 80 ms each way has 26 ms. Acks hide a part: the first
		// of several answers counts. For voice, "End-to-End QoS Network Design" (Cisco Press
		// 2004) asks for less than 30 ms on average one way.
		Jitter: 20 * time.Millisecond,
		// Source: our choice, twice the time for which a client of Valve's Source engine guesses
		// movements without packets: cl_extrapolate_amount is 0.25 s.
		Stall: 500 * time.Millisecond,
		// Source: the shortest time after which home gateways forget a UDP port, by S. Hätönen et
		// al., "An experimental study of home gateway characteristics", 2010. RFC 4787 (2007),
		// REQ-5, asks for 2 minutes or more.
		Idle: 30 * time.Second,
		// Source: measured. On a network without loss, Riptide sent up to 49 % of its messages
		// again, since its timer is as short as the round trip. From 50 % on, the median
		// message costs two packets or more.
		Resends: 0.50,
		// Source: FCC, Sixth Broadband Deployment Report (2010): broadband has 4 Mbit/s
		// downstream and 1 Mbit/s upstream, which is 125 kB/s.
		Bandwidth: 125e3,
	}
}

// Threshold describes one of the limits.
type Threshold struct {
	Name string // as in --set and in files
	Rule string // the rule that it is the limit of; several with commas
	Doc  string // one sentence
	kind kind
}

type kind uint8

const (
	kindShare kind = iota
	kindTime
	kindRate
)

// what says what values of a kind look like.
func (k kind) what() string {
	return [...]string{"a share such as 3%", "a time such as 150ms", "a rate such as 125kB/s or 1Mbit/s"}[k]
}

// ThresholdList lists the limits.
var ThresholdList = []Threshold{
	{"loss", steadyLoss.ID, "Share of a side's packets that the network lost.", kindShare},
	{"rtt", steadyRTT.ID, "Mean round trip; half of the round trips must reach it too.", kindTime},
	{"jitter", steadyJitter.ID, "Mean difference of successive round trips.", kindTime},
	{"stall", stalled.ID + ", " + silenceAtTap.ID, "Longest silence of a side that usually sends.", kindTime},
	{"idle", natIdle.ID, "Silence of both sides after which one sends in vain.", kindTime},
	{"resends", resendShare.ID, "Share of a side's reliable messages that were sent more than once.", kindShare},
	{"bandwidth", bandwidth.ID, "Payload of a side in its busiest second.", kindRate},
}

// thresholdOff switches a limit off.
const thresholdOff = "off"

// number and time return where a limit is stored: one of them is nil.
func (t *Thresholds) field(name string) (*float64, *time.Duration) {
	switch name {
	case "loss":
		return &t.Loss, nil
	case "rtt":
		return nil, &t.RTT
	case "jitter":
		return nil, &t.Jitter
	case "stall":
		return nil, &t.Stall
	case "idle":
		return nil, &t.Idle
	case "resends":
		return &t.Resends, nil
	case "bandwidth":
		return &t.Bandwidth, nil
	}
	return nil, nil
}

// Set changes one limit: Set("loss", "3%"), Set("stall", "off"). The error says what was
// expected. It quotes neither the value nor an unknown name.
func (t *Thresholds) Set(name, value string) error {
	for i := range ThresholdList {
		if x := &ThresholdList[i]; x.Name == name {
			number, duration := t.field(name)
			if !x.kind.parse(value, number, duration) {
				return fmt.Errorf("%s: expected %s, or off", name, x.kind.what())
			}
			return nil
		}
	}
	return fmt.Errorf("expected one of %s", strings.Join(thresholdNames(), ", "))
}

func thresholdNames() (names []string) {
	for i := range ThresholdList {
		names = append(names, ThresholdList[i].Name)
	}
	return names
}

// parse stores the value of a limit. It returns false if the value is of another kind, and
// then stores nothing.
func (k kind) parse(value string, number *float64, duration *time.Duration) bool {
	if k == kindTime {
		d, err := time.ParseDuration(value)
		if value == thresholdOff {
			d, err = math.MaxInt64, nil
		}
		if err != nil || d < 0 {
			return false
		}
		*duration = d
		return true
	}
	if value == thresholdOff {
		*number = math.Inf(1)
		return true
	}
	units := rateUnits
	if k == kindShare {
		units = shareUnits
	}
	for _, u := range units {
		text, ok := strings.CutSuffix(value, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if v *= u.size; err != nil || !(v >= 0) || math.IsInf(v, 0) || k == kindShare && v > 1 {
			return false
		}
		*number = v
		return true
	}
	return false
}

type unit struct {
	name string
	size float64
}

// A unit that ends another one's name stands behind it.
var (
	shareUnits = []unit{{"%", 0.01}}
	rateUnits  = []unit{{"kB/s", 1e3}, {"MB/s", 1e6}, {"B/s", 1}, {"kbit/s", 125}, {"Mbit/s", 125e3}}
)

// Text returns the value of a limit as Set takes it.
func (t *Thresholds) Text(x *Threshold) string {
	number, duration := t.field(x.Name)
	switch {
	case duration != nil && *duration == math.MaxInt64, number != nil && math.IsInf(*number, 1):
		return thresholdOff
	case duration != nil:
		return duration.String()
	case x.kind == kindShare:
		return strconv.FormatFloat(100**number, 'g', 6, 64) + "%"
	}
	return strconv.FormatFloat(*number/1e3, 'f', -1, 64) + "kB/s"
}
