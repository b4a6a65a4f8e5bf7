package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/lab"
)

// labFlags are the settings of a lab: the paths and the traffic are described
// as for simulate.
type labFlags struct {
	simulateFlags
	profile   string
	transport string
	carrier   lab.Transport
	listen    string
	connect   string
	relay     string
	allow     []string
	clients   int
	amount    uint64
	linger    time.Duration
	device    string
	recorder  string
	privilegeFlags
	limits bool // of riptide
	// Of srdp.
	proxy   string
	via     lab.Via
	forward string
	to      string
}

const labForms = `In one process: a server, a relay and clients, on loopback. Apart: --listen ADDR is
a server, --connect ADDR a client, --relay LISTEN=TARGET the relay, on different
machines or in different network namespaces. ADDR is IP:PORT, or a port of loopback.`

// register gives a command the flags.
func (f *labFlags) register(p *pflag.FlagSet, of *labProtocol) {
	p.StringVar(&f.listen, "listen", "", "run a server at `ADDR`")
	p.StringVar(&f.connect, "connect", "", "run a client of the server, or the relay, at `ADDR`")
	p.StringVar(&f.relay, "relay", "", "run a relay: `LISTEN=TARGET`")
	p.StringArrayVar(&f.allow, "allow", nil, "answer strangers of this `PREFIX` (default: this machine and private networks)")
	p.IntVar(&f.clients, "clients", 1, "clients, where all is in one process")
	f.transport = "udp"
	if of.tcp {
		p.StringVar(&f.transport, "transport", "udp", "what carries it: `udp|tcp`")
	}

	p.Uint64Var(&f.seed, "seed", 1, "seed of the relay's paths and of the traffic")
	p.StringVar(&f.loss, "loss", "0%", "share of datagrams that are lost; of this and the like A/B sets the two directions apart")
	p.StringVar(&f.burst, "burst", "", "losses in bursts: `INTO,OUT`, the shares with which the network turns bad and good again")
	p.StringVar(&f.delay, "delay", "20ms", "one way")
	p.StringVar(&f.jitter, "jitter", "0ms", "added to the delay, uniformly")
	p.BoolVar(&f.inOrder, "in-order", false, "jitter does not reorder")
	p.StringVar(&f.dup, "dup", "0%", "share of datagrams that arrive twice")
	p.StringVar(&f.outage, "outage", "", "everything is lost: `AT,FOR[,EVERY]`, such as 4s,500ms,4s")
	p.StringVar(&f.bandwidth, "bandwidth", "0", "bits a second of the first hop, 0 for no limit")

	p.DurationVar(&f.duration, "duration", 0, "how long the applications run (default 10s in one process, else until interrupted)")
	p.Uint64VarP(&f.amount, "count", "c", 0, "what each application sends at most, in packets or messages")
	p.DurationVar(&f.linger, "linger", time.Second, "how long the ends still listen and answer after that")

	p.StringVarP(&f.write, "write", "w", "", "record what passes to `FILE.pcapng` (or FILE.pcap, the classic format), - for standard output")
	p.StringVarP(&f.device, "interface", "i", "", "where it is recorded (default: loopback, or any where addresses are elsewhere)")
	p.StringVar(&f.recorder, "recorder", "auto", "`live|relay|auto`: captured live on the interface, which needs the privilege; noted by the relay itself; or what can be done")
	f.privilegeFlags.register(p)
	p.StringVar(&f.truth, "truth", "", "`FILE` for the log of what the ends did, - for standard output")
	p.StringVar(&f.journal, "journal", "", "`FILE` for the journal of the inputs")
	of.flags(p, f)
}

// check holds the flags against each other.
func (f *labFlags) check() (err error) {
	forms := 0
	for _, text := range []string{f.listen, f.connect, f.relay, f.forward} {
		if text != "" {
			forms++
		}
	}
	if forms > 1 {
		return errors.New("--listen, --connect, --relay and --forward: expected one of them, or none for all in one process")
	}
	for name, text := range map[string]string{"relay": f.relay, "forward": f.forward} {
		if text != "" && !strings.Contains(text, "=") {
			return fmt.Errorf("--%s %q: expected LISTEN=TARGET such as 40001=127.0.0.1:40000", name, text)
		}
	}
	if f.carrier, err = lab.ParseTransport(f.transport); err != nil {
		return fmt.Errorf("--%w", err)
	}
	if f.clients < 1 || f.clients > 64 {
		return fmt.Errorf("--clients %d: expected 1 to 64", f.clients)
	}
	if f.duration < 0 || f.linger < 0 {
		return errors.New("--duration, --linger: expected a time such as 10s")
	}
	switch f.recorder {
	case "auto", "live", "relay":
	default:
		return fmt.Errorf("--recorder %q: expected live, relay or auto", f.recorder)
	}
	if f.write == "-" && f.truth == "-" {
		return errors.New("-w - and --truth -: standard output takes one of them")
	}
	if f.allHere() && f.duration == 0 && f.amount == 0 {
		f.duration = 10 * time.Second
	}
	return nil
}

// allHere reports whether the whole run is in this process.
func (f *labFlags) allHere() bool {
	return f.listen == "" && f.connect == "" && f.relay == "" && f.forward == ""
}

// near reports whether all that is recorded passes on loopback, as far as the
// command line tells. An address that cannot be read is refused later, with its flag.
func (f *labFlags) near() bool {
	for _, text := range []string{f.listen, f.connect, f.relay, f.forward} {
		for part := range strings.SplitSeq(text, "=") {
			if at, err := parseLabAddr(part); err == nil && !at.Addr().IsLoopback() {
				return false
			}
		}
	}
	return true
}

// allowed gives whom the ends answer.
func (f *labFlags) allowed() (func(netip.Addr) bool, error) {
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

// parseLabAddr reads IP:PORT, or a port of loopback.
func parseLabAddr(text string) (netip.AddrPort, error) {
	if port, err := strconv.ParseUint(text, 10, 16); err == nil {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), nil
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return at, fmt.Errorf("%q: expected IP:PORT, or a port of loopback", text)
	}
	return at, nil
}
