package labs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/lab"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/sim"
)

// labRun is one run that is set up.
type labRun struct {
	app      *app.App
	flags    *Flags
	protocol *Protocol
	settings lab.Settings
	kit      sim.Kit
	named    ProxiedKit // the kit, when it can have a proxy; else nil
	proxied  bool       // the run has a proxy
	streams  bool       // clients reach the proxy by streams
	group    lab.Group
	record   *labRecording
	closers  []func() error
}

// run runs one protocol's endpoints.
func run(a *app.App, p *Protocol, f *Flags, set *pflag.FlagSet) error {
	if err := f.check(); err != nil {
		return err
	}
	r := &labRun{app: a, flags: f, protocol: p, record: &labRecording{app: a}}
	err := r.record.prepare(f)
	if err == nil {
		err = r.build(set)
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		go func() {
			<-ctx.Done()
			time.Sleep(reader.InterruptAgain) // as for a live capture
			stop()
		}()
		if f.Duration > 0 && len(r.group.Clients)+len(r.group.Servers) == 0 {
			var end context.CancelFunc
			ctx, end = context.WithTimeout(ctx, f.Duration)
			defer end()
		}
		err = r.group.Run(ctx)
		stop()
	}
	for _, c := range slices.Backward(r.closers) {
		err = errors.Join(err, c())
	}
	if err == nil {
		r.summarize()
	}
	return err
}

// build opens what the run needs: files, sockets, the capture.
func (r *labRun) build(set *pflag.FlagSet) (err error) {
	f := r.flags
	r.settings = lab.Settings{Clock: lab.StartClock(), Seed: f.Seed}
	if r.settings.Allow, err = f.allowed(); err != nil {
		return err
	}
	if r.kit, err = f.kit(r.app); err != nil {
		return err
	}
	if k, ok := r.kit.(ProxiedKit); ok {
		r.named = k
		r.proxied, r.streams = k.Proxied()
	}
	if err := r.openFiles(set); err != nil {
		return err
	}
	toB, toA, err := f.Paths()
	if err != nil {
		return err
	}
	r.record.clock = r.settings.Clock
	r.group.Linger = f.linger
	r.group.Grace = 100*time.Millisecond + max(toB.Delay+toB.Jitter, toA.Delay+toA.Jitter)
	switch {
	case f.listen != "":
		_, err = r.server(f.listen)
	case f.connect != "":
		err = r.client(0, f.connect)
	case f.relay != "":
		listen, target, _ := strings.Cut(f.relay, "=")
		_, err = r.relay(listen, target, toB, toA)
	case f.Forward != "":
		listen, target, _ := strings.Cut(f.Forward, "=")
		_, err = r.proxy(listen, target)
	default:
		var at string
		if at, err = r.server(lab.Loopback(3).String()); err != nil {
			return err
		}
		if at, err = r.relay(lab.Loopback(2).String(), at, toB, toA); err != nil {
			return err
		}
		if r.proxied {
			// The relay stands for the bad network: it is between the proxy and
			// the server.
			if at, err = r.proxy(lab.Loopback(4).String(), at); err != nil {
				return err
			}
		}
		for n := range f.clients {
			if err = r.client(n, at); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	if err := r.record.open(f, r.group.Relay != nil); err != nil {
		return err
	}
	r.closers = append(r.closers, r.record.close)
	if r.protocol.Scenario {
		r.scenario()
	}
	return nil
}

// openFiles opens the log and the journal.
func (r *labRun) openFiles(set *pflag.FlagSet) error {
	f := r.flags
	if f.Truth != "" {
		var to io.Writer = r.app.Writer()
		if f.Truth != "-" {
			file, err := r.openFile("--truth", f.Truth)
			if err != nil {
				return err
			}
			to = file
		}
		r.settings.Log = sim.NewLog(to, r.settings.Clock.Wall(0))
		r.closers = append(r.closers, r.settings.Log.Flush)
	}
	if f.Journal == "" {
		return nil
	}
	file, err := r.openFile("--journal", f.Journal)
	if err != nil {
		return err
	}
	note := map[string]string{"lab": r.protocol.Name}
	for _, name := range r.protocol.Remembered {
		note[name] = set.Lookup(name).Value.String()
	}
	r.settings.Journal = lab.NewJournal(file, f.Seed, note)
	r.closers = append(r.closers, r.settings.Journal.Finish)
	return nil
}

// openFile opens a file that grows during the run. It is closed after the other
// steps at the end.
func (r *labRun) openFile(flag, path string) (*outfile.File, error) {
	r.app.Reading(nil)
	file, err := r.app.Outputs.Stream(path, outfile.Payload)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	r.closers = append(r.closers, file.Commit)
	return file, nil
}

func (r *labRun) server(at string) (string, error) {
	listen, err := ParseAddr(at)
	if err != nil {
		return "", fmt.Errorf("--listen: %w", err)
	}
	h, err := lab.NewHost(lab.HostOptions{
		Settings: r.settings, Kit: r.kit, Role: sim.Server, Transport: r.flags.carrier, Listen: listen,
		Duration: r.flags.Duration, Buffer: r.flags.Buffer, Poll: r.flags.Poll,
	})
	if err != nil {
		return "", fmt.Errorf("server: %w", err)
	}
	r.serves(h.Addr())
	r.group.Servers = append(r.group.Servers, h)
	r.record.watch(h.Addr())
	r.say("server at %s", h.Addr())
	return h.Addr().String(), nil
}

func (r *labRun) client(n int, at string) error {
	connect, err := ParseAddr(at)
	if err != nil {
		return fmt.Errorf("--connect: %w", err)
	}
	r.serves(connect)
	h, err := lab.NewHost(lab.HostOptions{
		Settings: r.settings, Kit: r.kit, Role: sim.Client, N: n, Transport: r.nearSide(), Connect: connect,
		Duration: r.flags.Duration, Buffer: r.flags.Buffer, Poll: r.flags.Poll,
	})
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	r.group.Clients = append(r.group.Clients, h)
	r.record.watch(connect)
	r.say("client to %s", connect)
	return nil
}

// proxy creates the protocol's proxy.
func (r *labRun) proxy(listen, target string) (string, error) {
	from, err := ParseAddr(listen)
	if err != nil {
		return "", fmt.Errorf("--forward: %w", err)
	}
	to, err := ParseAddr(target)
	if err != nil {
		return "", fmt.Errorf("--forward: %w", err)
	}
	r.serves(to)
	h, err := lab.NewHost(lab.HostOptions{
		Settings: r.settings, Kit: r.kit, Role: sim.Proxy, Transport: r.nearSide(), Listen: from, Connect: to,
	})
	if err != nil {
		return "", fmt.Errorf("proxy: %w", err)
	}
	r.group.Proxies = append(r.group.Proxies, h)
	r.record.watch(h.Addr())
	r.record.watch(to)
	by := lab.UDP
	if r.streams {
		by = lab.TCP
	}
	r.say("proxy at %s to %s, by %v", h.Addr(), to, by)
	return h.Addr().String(), nil
}

// nearSide returns what carries packets between clients and a proxy.
func (r *labRun) nearSide() lab.Transport {
	if r.streams {
		return lab.Both
	}
	return r.flags.carrier
}

// serves passes the server's address to the kit. The first call counts: that of
// the server itself, or else of the part nearest to it.
func (r *labRun) serves(at netip.AddrPort) {
	if r.named != nil {
		r.named.NameServer(at)
	}
}

func (r *labRun) relay(listen, target string, toB, toA sim.Path) (string, error) {
	from, err := ParseAddr(listen)
	if err != nil {
		return "", fmt.Errorf("--relay: %w", err)
	}
	to, err := ParseAddr(target)
	if err != nil {
		return "", fmt.Errorf("--relay: %w", err)
	}
	relay, err := lab.NewRelay(lab.RelayOptions{
		Settings: r.settings, Transport: r.flags.carrier, Listen: from, Target: to, ToServer: toB, ToHere: toA,
		Rebind: r.flags.rebind, Tap: r.record.tap,
	})
	if err != nil {
		return "", fmt.Errorf("relay: %w", err)
	}
	r.group.Relay = relay
	r.record.watch(relay.Addr())
	r.record.watch(to)
	r.say("relay at %s to %s: loss %s, delay %s, jitter %s, dup %s, seed %d", relay.Addr(), to,
		r.flags.Loss, r.flags.Delay, r.flags.Jitter, r.flags.Dup, r.flags.Seed)
	return relay.Addr().String(), nil
}

// say prints progress to standard error, unless the user asked for quiet.
func (r *labRun) say(format string, args ...any) {
	if !r.app.Flags.Quiet {
		fmt.Fprintf(r.app.Err, format+"\n", args...)
	}
}

// scenario writes the log's first line: the addresses and the parameters of the
// run.
func (r *labRun) scenario() {
	f := r.flags
	params := map[string]string{}
	for name, v := range f.Params() {
		params[name] = fmt.Sprint(v)
	}
	line := sim.Line{
		"event": "scenario", "name": "lab " + r.protocol.Name, "transport": f.carrier.String(),
		"params": params,
	}
	if f.allHere() {
		params["lo"] = "1"
	}
	ports := []uint16{}
	for _, h := range r.group.Clients {
		line["client_addr"] = h.Addr().Addr().String()
		ports = append(ports, h.Addr().Port())
	}
	line["client_ports"] = ports
	switch {
	case len(r.group.Servers) > 0:
		at := r.group.Servers[0].Addr()
		line["server_addr"], line["server_port"] = at.Addr().String(), at.Port()
	case f.connect != "":
		if at, err := ParseAddr(f.connect); err == nil {
			line["server_addr"], line["server_port"] = at.Addr().String(), at.Port()
		}
	}
	for _, h := range r.group.Proxies {
		line["proxy_addr"], line["proxy_port"] = h.Addr().Addr().String(), h.Addr().Port()
	}
	r.settings.Log.Tell(r.settings.Clock.Now(), "harness", line)
}

// summarize prints what each endpoint did.
func (r *labRun) summarize() {
	if r.flags.Truth == "-" || r.flags.Write == "-" {
		return
	}
	w := r.app.Writer()
	seen := map[string]int{}
	for _, hosts := range [][]*lab.Host{r.group.Clients, r.group.Servers, r.group.Proxies} {
		for _, h := range hosts {
			for _, c := range h.Counts() {
				var parts []string
				for kind, n := range c.Events {
					if n > 0 {
						parts = append(parts, fmt.Sprintf("%s %d", machine.EventKind(kind), n))
					}
				}
				if len(parts) == 0 {
					what := "sent " + machine.Count(c.Sent, "datagram", "datagrams")
					if r.proxied {
						what = fmt.Sprintf("forwarded %d", c.Sent) // a proxy that keeps nothing
					}
					parts = append(parts, what)
				}
				name := c.Name
				if seen[name]++; seen[name] > 1 {
					name += fmt.Sprintf(" %d", seen[name])
				}
				fmt.Fprintf(w, "%s: %s\n", name, strings.Join(parts, ", "))
			}
		}
	}
}
