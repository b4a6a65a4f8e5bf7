package labs

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/privilege"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/lab"
	"github.com/ackscope/ackscope/sim"
)

// Flags are the settings of a lab. The flags of paths are those of simulate.
type Flags struct {
	simulate.Flags
	Transport string
	Amount    uint64        // most packets or messages that each application sends; 0 means no limit
	Buffer    int           // of sockets for datagrams, in bytes; 0 is the system's
	Poll      time.Duration // between two times that a host reads such a socket; 0 is at once
	carrier   lab.Transport
	listen    string
	connect   string
	relay     string
	Forward   string // of a proxy: LISTEN=TARGET
	allow     []string
	clients   int
	rebind    time.Duration
	linger    time.Duration
	device    string
	recorder  string
	privilege.Options
	kit func(a *app.App) (sim.Kit, error)
}

const labForms = `By default a server, a relay and clients run in one process, on loopback. To run them on
different machines or in different network namespaces, start each by itself: --listen ADDR runs
a server, --connect ADDR a client, and --relay LISTEN=TARGET the relay. ADDR is IP:PORT, or a
port of loopback.`

// register adds the flags to a command.
func (f *Flags) register(p *pflag.FlagSet, of *Protocol) {
	p.StringVar(&f.listen, "listen", "", "run a server at `ADDR`")
	p.StringVar(&f.connect, "connect", "", "run a client of the server, or the relay, at `ADDR`")
	p.StringVar(&f.relay, "relay", "", "run a relay: `LISTEN=TARGET`")
	p.StringArrayVar(&f.allow, "allow", nil,
		"also answer unknown addresses within this `PREFIX` (default: this machine and private networks)")
	p.IntVar(&f.clients, "clients", 1, "clients to run, where everything is in one process")
	f.Transport = "udp"
	if of.TCP {
		p.StringVar(&f.Transport, "transport", "udp", "what carries it: `udp|tcp`")
	}

	p.Uint64Var(&f.Seed, "seed", 1, "seed of the relay's paths and of the traffic")
	p.StringVar(&f.Loss, "loss", "0%",
		"share of datagrams that are lost; as 5%/40%, one for each direction: this holds for all flags of the network")
	p.StringVar(&f.Burst, "burst", "",
		"loss in bursts: `INTO,OUT`, the chance for each datagram that a burst begins, and that it ends")
	p.StringVar(&f.Delay, "delay", "20ms", "time that a datagram takes one way")
	p.StringVar(&f.Jitter, "jitter", "0ms", "random extra delay, from 0 to this")
	p.BoolVar(&f.InOrder, "in-order", false, "keep the order of datagrams whatever the jitter")
	p.StringVar(&f.Dup, "dup", "0%", "share of datagrams that arrive twice")
	p.StringVar(&f.Outage, "outage", "", "times in which everything is lost: `AT,FOR[,EVERY]`, such as 4s,500ms,4s")
	p.DurationVar(&f.rebind, "rebind", 0,
		"after this long the relay gives each client another port towards the server, as a NAT may, and again after that")
	p.StringVar(&f.Bandwidth, "bandwidth", "0", "limit of the first link in bits a second, 0 for none")

	p.DurationVar(&f.Duration, "duration", 0,
		"how long the applications run (default 10s in one process, else until interrupted)")
	p.Uint64VarP(&f.Amount, "count", "c", 0, "how many packets or messages each application sends at most")
	p.DurationVar(&f.linger, "linger", time.Second, "how long the endpoints still listen and answer afterwards")

	p.StringVarP(&f.Write, "write", "w", "",
		"record the traffic to `FILE.pcapng` (or FILE.pcap, the classic format), - for standard output")
	p.StringVarP(&f.device, "interface", "i", "",
		"interface to record on (default: loopback, or any where addresses are elsewhere)")
	p.StringVar(&f.recorder, "recorder", "auto",
		"`live|relay|auto`: live captures on the interface, which needs the privilege; relay lets the relay write down what "+
			"it forwards; auto takes live where it can")
	f.Options.Register(p)
	p.StringVar(&f.Truth, "truth", "", "`FILE` for the log of what the endpoints really did, - for standard output")
	p.StringVar(&f.Journal, "journal", "", "`FILE` for the journal of the inputs")
	if of.Proxy {
		p.StringVar(&f.Forward, "forward", "", "run a proxy: `LISTEN=TARGET`")
	}
	f.kit = of.Begin(p, f)
}

// check returns an error when the flags contradict each other.
func (f *Flags) check() (err error) {
	forms := 0
	for _, text := range []string{f.listen, f.connect, f.relay, f.Forward} {
		if text != "" {
			forms++
		}
	}
	if forms > 1 {
		return errors.New("--listen, --connect, --relay and --forward: expected one of them, or none for all in one process")
	}
	for name, text := range map[string]string{"relay": f.relay, "forward": f.Forward} {
		if text != "" && !strings.Contains(text, "=") {
			return fmt.Errorf("--%s %q: expected LISTEN=TARGET such as 40001=127.0.0.1:40000", name, text)
		}
	}
	if f.carrier, err = lab.ParseTransport(f.Transport); err != nil {
		return fmt.Errorf("--%w", err)
	}
	if f.clients < 1 || f.clients > 64 {
		return fmt.Errorf("--clients %d: expected 1 to 64", f.clients)
	}
	if f.Buffer < 0 || f.Buffer > 1<<30 {
		return fmt.Errorf("--socket-buffer %d: expected bytes, at most %d", f.Buffer, 1<<30)
	}
	if f.Poll < 0 {
		return fmt.Errorf("--poll %v: expected a time such as 500ms", f.Poll)
	}
	if f.rebind < 0 || f.rebind > 0 && f.carrier == lab.TCP {
		return fmt.Errorf("--rebind %v: expected a time such as 5s, for datagrams", f.rebind)
	}
	if f.Duration < 0 || f.linger < 0 {
		return errors.New("--duration, --linger: expected a time such as 10s")
	}
	switch f.recorder {
	case "auto", "live", "relay":
	default:
		return fmt.Errorf("--recorder %q: expected live, relay or auto", f.recorder)
	}
	if f.Write == "-" && f.Truth == "-" {
		return errors.New("-w - and --truth -: standard output takes one of them")
	}
	if f.allHere() && f.Duration == 0 && f.Amount == 0 {
		f.Duration = 10 * time.Second
	}
	return nil
}

// allHere reports whether the whole run is in this process.
func (f *Flags) allHere() bool {
	return f.listen == "" && f.connect == "" && f.relay == "" && f.Forward == ""
}

// near reports whether everything that is recorded passes on loopback, as far
// as the flags show. Another check rejects an address that cannot be parsed.
func (f *Flags) near() bool {
	for _, text := range []string{f.listen, f.connect, f.relay, f.Forward} {
		for part := range strings.SplitSeq(text, "=") {
			if at, err := ParseAddr(part); err == nil && !at.Addr().IsLoopback() {
				return false
			}
		}
	}
	return true
}

// allowed returns a function that reports whom the ends may answer.
func (f *Flags) allowed() (func(netip.Addr) bool, error) {
	if len(f.allow) == 0 {
		return nil, nil
	}
	var prefixes []netip.Prefix
	for _, text := range f.allow {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil {
				return nil, fmt.Errorf("--allow %q: expected an address or a prefix such as 192.0.2.0/24", text)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		prefixes = append(prefixes, p)
	}
	return func(a netip.Addr) bool {
		for _, p := range prefixes {
			if p.Contains(a.Unmap()) {
				return true
			}
		}
		return false
	}, nil
}

// ParseAddr parses IP:PORT, or a port of loopback.
func ParseAddr(text string) (netip.AddrPort, error) {
	if port, err := strconv.ParseUint(text, 10, 16); err == nil {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), nil
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return at, fmt.Errorf("%q: expected IP:PORT, or a port of loopback", text)
	}
	return at, nil
}
