// Package demo makes the traffic of simulated hosts, for the demo and for tests.
//
// Games come from core's simulator. Each player is a copy of one of them, from an address of its own and at a time of
// its own. For example, the games of the players in 203.0.113.0/24 lose 12 % of the packets to the server.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/machine"
)

// Where things stand in an IPv4 packet without options, and in the UDP header behind it.
const (
	checksumAt = 10
	sourceAt   = 12
	targetAt   = 16
	udpSumAt   = 26
	headers    = 28
)

// packet is a packet of a game.
type packet struct {
	at         time.Duration // since the game began
	data       []byte
	fromClient bool
}

// Games are simulated games to copy.
type Games struct{ Clean, Lossy [][]packet }

// Simulate makes games of a length: some on a good network, and some that lose 12 % of the client's packets.
func Simulate(folder string, variants int, length time.Duration) (*Games, error) {
	g := &Games{}
	for i := range 2 * variants {
		loss, to := "0.3%", &g.Clean
		if i >= variants {
			loss, to = "12%/1%", &g.Lossy
		}
		path := filepath.Join(folder, "game-"+strconv.Itoa(i)+".pcapng")
		var said bytes.Buffer
		code := cli.Run(protocol.Registry{gaffer.Protocol}, []string{
			"simulate", "gaffer:reliable", "--quiet", "--loss", loss, "--seed", strconv.Itoa(i + 1), "--duration",
			length.String(),
			"--delay", "20ms", "--jitter", "4ms", "--tap", "b", "-w", path,
		}, app.Streams{In: &said, Out: &said, Err: &said})
		if code != 0 {
			return nil, fmt.Errorf("simulate: exit code %d: %s", code, said.String())
		}
		game, err := load(path)
		if err != nil {
			return nil, err
		}
		*to = append(*to, game)
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// load reads a simulated capture.
func load(path string) (list []packet, err error) {
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	client := netip.MustParseAddrPort("10.0.0.1:30000") // as the simulator has it
	var first machine.Instant
	for {
		var f capture.Frame
		var p capture.Packet
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		if decoder.Decode(&f, &p); p.Transport != capture.UDP {
			continue
		}
		if first == 0 {
			first = f.At
		}
		data := slices.Clone(f.Data[len(f.Data)-p.Length-headers:])
		list = append(list, packet{f.At.Sub(first), data, p.Src == client})
	}
}

// Player plays one game at a server.
type Player struct {
	Address netip.Addr
	Lossy   bool
	Begins  time.Duration // after the host's traffic begins
}

// Host is a simulated game host: its server, and its players.
type Host struct {
	Server  netip.Addr
	Players []Player
}

// Frame is a frame of a host's traffic.
type Frame struct {
	At   time.Duration
	Data []byte
}

// Traffic returns what an interface of a host sees, in order.
func (g *Games) Traffic(h Host) (all []Frame) {
	for n, p := range h.Players {
		games := g.Clean
		if p.Lossy {
			games = g.Lossy
		}
		client, server := p.Address.As4(), h.Server.As4()
		for _, x := range games[n%len(games)] {
			data := slices.Clone(x.data)
			from, to := client, server
			if !x.fromClient {
				from, to = server, client
			}
			copy(data[sourceAt:], from[:])
			copy(data[targetAt:], to[:])
			clear(data[checksumAt : checksumAt+2]) // 0 is a header that the card sums up
			clear(data[udpSumAt : udpSumAt+2])
			all = append(all, Frame{p.Begins + x.at, data})
		}
	}
	slices.SortStableFunc(all, func(x, y Frame) int { return int(x.At - y.At) })
	return all
}

// flushEvery is how often a host's file is brought up to date.
const flushEvery = 100 * time.Millisecond

// Play writes frames to a file that grows, each at its time from now on. With no pace it writes all at once. Times in
// the file are those of the clock.
func Play(ctx context.Context, path string, frames []Frame, begin time.Time, paced bool) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	w, err := capture.NewWriter(file, capture.WriterOptions{Application: "ackscope-fleet demo"})
	if err != nil {
		return err
	}
	if _, err := w.AddInterface(capture.Interface{Name: "sim0", LinkType: capture.LinkRaw, Resolution: 9}); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := 0; i < len(frames); {
		if paced {
			select {
			case <-ctx.Done():
				return w.Close()
			case <-time.After(flushEvery):
			}
		}
		for ; i < len(frames) && (!paced || time.Since(begin) >= frames[i].At); i++ {
			x := &frames[i]
			if err := w.WriteFrame(&capture.Frame{
				At: machine.Instant(begin.Add(x.At).UnixNano()), LinkType: capture.LinkRaw, Length: len(x.Data), Data: x.Data,
			}); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return w.Close()
}

// Hosts returns three hosts at three sites. At each, some players are in 203.0.113.0/24, whose path loses packets.
// The last player begins within the given time.
func Hosts(players int, within time.Duration) map[string]Host {
	hosts := map[string]Host{}
	for i, site := range []string{"asia", "eu", "us"} {
		h := Host{Server: netip.AddrFrom4([4]byte{10, byte(i + 1), 0, 1})}
		for n := range players {
			p := Player{Begins: within * time.Duration(n) / time.Duration(players)}
			if n%4 == 3 { // a quarter of the players
				p.Address, p.Lossy = netip.AddrFrom4([4]byte{203, 0, 113, byte(64*i + n)}), true
			} else {
				p.Address = netip.AddrFrom4([4]byte{198, 51, byte(100 + n%5), byte(64*i + n)})
			}
			h.Players = append(h.Players, p)
		}
		hosts[site] = h
	}
	return hosts
}
