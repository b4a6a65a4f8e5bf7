package cli

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// connectTimes: at the endpoint a request or a response goes out again after 100 ms, and
// a client's keep-alive after a second. Nothing goes out 10 s after the peer's last
// packet.
func connectTimes(t *testing.T, v *view) (frame uint64) {
	var last wire.Packet
	var lastAt, heardAt machine.Instant
	sent, heard := false, false
	v.packets(t, func(i int, k *wire.Packet) bool {
		at := v.sightings[i].at
		if !v.sightings[i].own {
			heardAt, heard = at, true
			return false
		}
		least := time.Duration(0)
		switch k.Handshake {
		case wire.ConnectRequest, wire.ConnectResponse:
			least = sampleTime - sampleClock
		case wire.ConnectKeepAlive:
			least = 9 * time.Second / 10 // a tenth sooner, by a clock that is asked now and then
		case wire.ConnectDenied, wire.ConnectChallenge, wire.ConnectDisconnect:
		}
		if sent && last.Handshake == k.Handshake && last.ClientSalt == k.ClientSalt && at.Sub(lastAt) < least {
			frame = v.frames[i]
		}
		fresh := !sent || last.ClientSalt != k.ClientSalt
		if fresh {
			heardAt, heard = at, true // its time begins with its attempt
		}
		if heard && k.Handshake != wire.ConnectDisconnect && at.Sub(heardAt) > 10*time.Second+patience {
			frame = v.frames[i]
		}
		last, lastAt, sent = *k, at, true
		return frame > 0
	})
	return frame
}

// connectOrder: at the endpoint a client that has answered a challenge asks no more,
// says at most ten times that it leaves, and then nothing.
func connectOrder(t *testing.T, v *view) (frame uint64) {
	answered, left := map[uint64]bool{}, map[uint64]int{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own {
			return false
		}
		bad := left[k.ClientSalt] > 0 && k.Handshake != wire.ConnectDisconnect
		switch k.Handshake {
		case wire.ConnectRequest:
			bad = bad || answered[k.ClientSalt]
		case wire.ConnectResponse:
			answered[k.ClientSalt] = true
		case wire.ConnectDisconnect:
			left[k.ClientSalt]++
			bad = bad || left[k.ClientSalt] > 10
		case wire.ConnectDenied, wire.ConnectChallenge, wire.ConnectKeepAlive:
		}
		if bad {
			frame = v.frames[i]
		}
		return bad
	})
	return frame
}

// connectSalts: a response bears the salt of a request that passed, and that of a
// challenge of it that passed. Where the capture begins, they may have passed before.
func connectSalts(t *testing.T, v *view) (frame uint64) {
	asked, challenged := map[uint64]bool{}, map[uint64]map[uint64]bool{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		switch k.Handshake {
		case wire.ConnectRequest:
			asked[k.ClientSalt] = true
		case wire.ConnectChallenge:
			if challenged[k.ClientSalt] == nil {
				challenged[k.ClientSalt] = map[uint64]bool{}
			}
			challenged[k.ClientSalt][k.ChallengeSalt] = true
		case wire.ConnectResponse:
			known := asked[k.ClientSalt]
			young := v.sightings[i].at.Sub(v.sightings[0].at) < patience+readWithin
			if !known && young {
				asked[k.ClientSalt] = true // under a request from before the capture
				return false
			}
			if of := challenged[k.ClientSalt]; v.sightings[i].own && (!known || of != nil && !of[k.ChallengeSalt]) {
				frame = v.frames[i]
			}
		case wire.ConnectDenied, wire.ConnectKeepAlive, wire.ConnectDisconnect:
		}
		return frame > 0
	})
	return frame
}

// connectClient: at the endpoint all packets of a client bear the salt of its last
// request.
func connectClient(t *testing.T, v *view) (frame uint64) {
	salt, asked := uint64(0), false
	v.packets(t, func(i int, k *wire.Packet) bool {
		switch {
		case !v.sightings[i].own:
		case k.Handshake == wire.ConnectRequest:
			salt, asked = k.ClientSalt, true
		case asked && k.ClientSalt != salt:
			frame = v.frames[i]
		}
		return frame > 0
	})
	return frame
}

// connectAnswers: a server's keep-alive comes once a response has passed. Where the
// capture begins, it may have passed before.
func connectAnswers(t *testing.T, v *view) (frame uint64) {
	answered := map[uint64]bool{}
	v.packets(t, func(i int, k *wire.Packet) bool {
		switch {
		case !v.sightings[i].own && k.Handshake == wire.ConnectResponse:
			answered[k.ClientSalt] = true
		case v.sightings[i].own && k.Handshake == wire.ConnectKeepAlive && !answered[k.ClientSalt]:
			if v.sightings[i].at.Sub(v.sightings[0].at) < patience+readWithin {
				answered[k.ClientSalt] = true
				return false
			}
			frame = v.frames[i]
		}
		return frame > 0
	})
	return frame
}
