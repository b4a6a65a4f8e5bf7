package rebinding

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// pause puts a silence of both sides before the nth datagram of a client. The server speaks for
// some time before the client does again: what the client sends until then is missing.
func pause(list []datagram, client netip.AddrPort, nth int, silence, server time.Duration) (paused []datagram) {
	sent, from := 0, machine.Instant(0)
	for i := range list {
		d := list[i]
		if d.src == client {
			if sent++; sent == nth {
				from = d.at
			}
		}
		if sent >= nth {
			if d.src == client && d.at.Sub(from) < server {
				continue
			}
			d.at += machine.Instant(silence)
		}
		paused = append(paused, d)
	}
	return paused
}

// A NAT that forgot a port in a silence gives the client another one. The findings nat-idle and
// ghost are then of the old flow, and rebound of the new one. None contradicts the others.
func TestForgottenPort(t *testing.T) {
	game := load(t, testenv.Capture(t, "reliable-clean.server.pcap.gz"))
	client, sent := busiest(game)
	nth := sent * 3 / 4
	for _, c := range []struct {
		name            string
		silence, server time.Duration
		host, deaf      bool
		want            string // flow, rule and certainty
		after           string // what the reason of the join says of the silence
	}{
		{
			"the server speaks first, and does not follow", 45 * time.Second, 3 * time.Second, false, true,
			"1 ghost likely, 1 nat-idle likely, 2 rebound likely", "after 45 s without a packet of either side",
		},
		{
			"the client speaks first, and the server does not follow", 45 * time.Second, 0, false, true,
			"1 ghost likely, 1 nat-idle likely, 2 rebound likely", "after 45 s without a packet of either side",
		},
		{
			"the server follows at once", 45 * time.Second, 0, false, false,
			"2 rebound likely", "after 45 s without a packet of either side",
		},
		{
			"from another host: its network may have changed", 45 * time.Second, 0, true, true,
			"1 ghost likely, 1 nat-idle possible, 2 rebound likely", "after 45 s without a packet of either side",
		},
		{"too long: no player is given so much time", 6 * time.Minute, 0, false, true, "1 nat-idle likely", ""},
	} {
		to := moved(client, c.host)
		s := analysed(t, plain, move(pause(game, client, nth, c.silence, c.server), client, to, nth, c.deaf))
		old, next := flowOf(s, client), flowOf(s, to)
		var got []string
		for _, f := range s.Flows() {
			for _, x := range f.Findings() {
				if !slices.Contains([]string{"nat-idle", "ghost", "rebound"}, x.Rule.ID) {
					continue
				}
				got = append(got, fmt.Sprintf("%d %s %s", f.ID, x.Rule.ID, x.Certainty))
				if f == old && (x.Abouts[0] != next.FirstRef || (old.Addr(x.Side) == client) == (x.Rule.ID == "ghost")) {
					t.Errorf("%s: %s of %s is about %v, expected %v", c.name, x.Rule.ID, x.Side, x.Abouts, next.FirstRef)
				}
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s, expected %s", c.name, strings.Join(got, ", "), c.want)
		}
		if w := next.Was; (w != nil) != (c.after != "") || w != nil && !strings.Contains(w.Reason, c.after) {
			t.Errorf("%s: joined as %+v", c.name, w)
		}
	}
}
