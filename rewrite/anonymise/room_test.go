package anonymise_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/rewrite/anonymise"
)

// crowd returns a capture of datagrams from the given number of hosts.
func crowd(hosts int) *written {
	frames := make([][]byte, hosts)
	for i := range frames {
		frames[i] = datagram6(17, nil)
		binary.BigEndian.PutUint32(frames[i][20:], uint32(i))
	}
	return made(capture.LinkRaw, frames...)
}

// TestRoom: a capture whose flows or addresses do not fit is refused with an
// explanation. One that fits is written completely.
func TestRoom(t *testing.T) {
	const hosts = 2000
	few := options
	few.Limits = analyze.Limits{Flows: 100, Room: true}
	for name, c := range map[string]struct {
		analysis analyze.Options
		room     int
		want     string // of the error; empty if none is expected
	}{
		"all":       {options, 0, ""},
		"fits":      {options, 1 << 20, ""},
		"addresses": {options, 64 << 10, "tables of addresses, datagrams and streams take more than 65536 bytes"},
		"flows":     {few, 0, "the flows do not fit"},
	} {
		frames := 0
		report, err := anonymise.Run(crowd(hosts), c.analysis, anonymise.Options{Room: c.room},
			func(*capture.Frame) error { frames++; return nil })
		var full *anonymise.RoomError
		switch {
		case c.want == "":
			if err != nil || frames != hosts {
				t.Errorf("%s: %d frames written, %v; expected %d", name, frames, err, hosts)
			}
		case !errors.As(err, &full) || !strings.Contains(err.Error(), c.want) || report != nil:
			t.Errorf("%s: error %v, report %v; expected no report and %q", name, err, report, c.want)
		}
	}
}
