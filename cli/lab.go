package cli

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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/lab"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/sim"
)

// labProtocol is a protocol as `ackscope lab` runs it.
type labProtocol struct {
	name    string
	short   string
	long    string
	example string
	tcp     bool // there is a form over TCP
	// scenario is set where the log begins with a line about the whole run, and
	// not with one about each end.
	scenario bool
	flags    func(p *pflag.FlagSet, f *labFlags)
	// kit makes the kit; remembered names the flags that it takes to make its
	// endpoints again, for the journal.
	kit        func(a *app, f *labFlags) (lab.Kit, error)
	remembered []string
}

func labCommand(a *app, protocols []*labProtocol) *cobra.Command {
	var play string
	c := &cobra.Command{
		Use:   "lab",
		Short: "Run reference endpoints on real sockets, with an impairing relay between",
		Long: `lab runs the reference endpoints as real servers and clients, on real sockets, with
a relay between them that loses, delays, reorders and doubles as simulate does:
live traffic to learn from and to test with. Each end logs what it really did, in
the form of the logs beside recorded captures, and its inputs in a journal.

Without --listen, --connect or --relay everything runs in this process on loopback.
Nothing is sent to an address that was not named, or did not speak first.`,
		Example: `  ackscope lab gaffer --loss 30% --duration 10s -w run.client.pcapng --truth run.truth.jsonl
  ackscope lab --play run.journal.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if play != "" {
				return a.labPlay(protocols, play)
			}
			return c.Help()
		},
	}
	c.Flags().StringVar(&play, "play", "", "step fresh endpoints through a lab's journal `FILE` and check that every byte is the same")
	for _, p := range protocols {
		c.AddCommand(a.labProtocolCommand(p))
	}
	return c
}

func (a *app) labProtocolCommand(p *labProtocol) *cobra.Command {
	f := &labFlags{}
	c := &cobra.Command{
		Use: p.name, Short: p.short, Long: p.long + "\n\n" + labForms, Example: p.example, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.lab(p, f, c.Flags()) },
	}
	f.register(c.Flags(), p)
	a.writes(c)
	return c
}

// labPlay steps fresh endpoints through a journal.
func (a *app) labPlay(protocols []*labProtocol, path string) error {
	j, err := a.readJournal(path)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(protocols, func(p *labProtocol) bool { return p.name == j.Note["lab"] })
	if i < 0 {
		return fmt.Errorf("%s: expected a journal of `ackscope lab`, found one of protocol %q (simulate --play?)", path, j.Note["lab"]+j.Note["protocol"])
	}
	p := protocols[i]
	var f labFlags
	set := pflag.NewFlagSet(p.name, pflag.ContinueOnError)
	f.register(set, p)
	for _, name := range p.remembered {
		if err := set.Set(name, j.Note[name]); err != nil {
			return fmt.Errorf("%s: %s: %w", path, name, err)
		}
	}
	f.seed = j.Seed
	kit, err := p.kit(a, &f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	played, err := lab.Play(j, kit)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case played.Differs != nil:
		return &gateError{fmt.Sprintf("%s: %v", path, played.Differs)}
	case !played.Finished && played.Compared:
		fmt.Fprintf(a.writer(), "%d inputs gave %d transmissions, every byte as recorded; the recorded run was cut off there\n", played.Inputs, played.Sent)
		return nil
	case !played.Finished:
		fmt.Fprintf(a.writer(), "%d inputs gave %d transmissions; the recorded run was cut off, so there is nothing to compare them with\n", played.Inputs, played.Sent)
		return nil
	case !played.Same:
		return &gateError{fmt.Sprintf("%s: %d inputs gave %d transmissions that differ from the recorded run's", path, played.Inputs, played.Sent)}
	}
	fmt.Fprintf(a.writer(), "%d inputs gave %d transmissions, every byte as recorded\n", played.Inputs, played.Sent)
	return nil
}

// labRun is one run that is set up.
type labRun struct {
	app      *app
	flags    *labFlags
	protocol *labProtocol
	settings lab.Settings
	kit      lab.Kit
	group    lab.Group
	record   *labRecording
	closers  []func() error
}

// lab runs one protocol's endpoints.
func (a *app) lab(p *labProtocol, f *labFlags, set *pflag.FlagSet) error {
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
			time.Sleep(interruptAgain) // as for a live capture
			stop()
		}()
		if f.duration > 0 && len(r.group.Clients)+len(r.group.Servers) == 0 {
			var end context.CancelFunc
			ctx, end = context.WithTimeout(ctx, f.duration)
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
	r.settings = lab.Settings{Clock: lab.StartClock(), Seed: f.seed}
	if r.settings.Allow, err = f.allowed(); err != nil {
		return err
	}
	if r.kit, err = r.protocol.kit(r.app, f); err != nil {
		return err
	}
	if err := r.openFiles(set); err != nil {
		return err
	}
	toB, toA, err := f.paths()
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
	case f.forward != "":
		listen, target, _ := strings.Cut(f.forward, "=")
		_, err = r.proxy(listen, target)
	default:
		var at string
		if at, err = r.server(lab.Loopback(3).String()); err != nil {
			return err
		}
		if at, err = r.relay(lab.Loopback(2).String(), at, toB, toA); err != nil {
			return err
		}
		if f.via != lab.Straight {
			// The relay is where a network would be bad: between the proxy and the server.
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
	if r.protocol.scenario {
		r.scenario()
	}
	return nil
}

// openFiles opens the log and the journal.
func (r *labRun) openFiles(set *pflag.FlagSet) error {
	f := r.flags
	if f.truth != "" {
		var to io.Writer = r.app.writer()
		if f.truth != "-" {
			file, err := r.openFile("--truth", f.truth)
			if err != nil {
				return err
			}
			to = file
		}
		r.settings.Log = lab.NewLog(to, r.settings.Clock)
		r.closers = append(r.closers, r.settings.Log.Flush)
	}
	if f.journal == "" {
		return nil
	}
	file, err := r.openFile("--journal", f.journal)
	if err != nil {
		return err
	}
	note := map[string]string{"lab": r.protocol.name}
	for _, name := range r.protocol.remembered {
		note[name] = set.Lookup(name).Value.String()
	}
	r.settings.Journal = lab.NewJournal(file, f.seed, note)
	r.closers = append(r.closers, r.settings.Journal.Finish)
	return nil
}

// openFile opens a file that grows while the lab runs. It is closed after whatever
// else is to be done at the end.
func (r *labRun) openFile(flag, path string) (*outfile.File, error) {
	r.app.reading(nil)
	file, err := r.app.outputs.Stream(path, outfile.Payload)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	r.closers = append(r.closers, file.Commit)
	return file, nil
}

func (r *labRun) server(at string) (string, error) {
	listen, err := parseLabAddr(at)
	if err != nil {
		return "", fmt.Errorf("--listen: %w", err)
	}
	h, err := lab.NewHost(lab.HostOptions{
		Settings: r.settings, Kit: r.kit, Role: lab.Server, Transport: r.flags.carrier, Listen: listen, Duration: r.flags.duration,
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
	connect, err := parseLabAddr(at)
	if err != nil {
		return fmt.Errorf("--connect: %w", err)
	}
	r.serves(connect)
	h, err := lab.NewHost(lab.HostOptions{
		Settings: r.settings, Kit: r.kit, Role: lab.Client, N: n, Transport: r.nearSide(), Connect: connect, Duration: r.flags.duration,
	})
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	r.group.Clients = append(r.group.Clients, h)
	r.record.watch(connect)
	r.say("client to %s", connect)
	return nil
}

// proxy runs the proxy that the protocol has.
func (r *labRun) proxy(listen, target string) (string, error) {
	from, err := parseLabAddr(listen)
	if err != nil {
		return "", fmt.Errorf("--forward: %w", err)
	}
	to, err := parseLabAddr(target)
	if err != nil {
		return "", fmt.Errorf("--forward: %w", err)
	}
	r.serves(to)
	h, err := lab.NewHost(lab.HostOptions{
		Settings: r.settings, Kit: r.kit, Role: lab.Proxy, Transport: r.nearSide(), Listen: from, Connect: to,
	})
	if err != nil {
		return "", fmt.Errorf("proxy: %w", err)
	}
	r.group.Proxies = append(r.group.Proxies, h)
	r.record.watch(h.Addr())
	r.record.watch(to)
	r.say("proxy at %s to %s, by %v", h.Addr(), to, r.flags.via)
	return h.Addr().String(), nil
}

// nearSide gives what carries packets between clients and a proxy.
func (r *labRun) nearSide() lab.Transport {
	if r.flags.via == lab.ViaTCP {
		return lab.Both
	}
	return r.flags.carrier
}

// serves tells the kit where the server is, if its packets say that and nobody
// has told before: the server itself knows best, then who is nearest to it.
func (r *labRun) serves(at netip.AddrPort) {
	if k, ok := r.kit.(*lab.SRDP); ok && !k.Server.IsValid() {
		k.Server = at
	}
}

func (r *labRun) relay(listen, target string, toB, toA sim.Path) (string, error) {
	from, err := parseLabAddr(listen)
	if err != nil {
		return "", fmt.Errorf("--relay: %w", err)
	}
	to, err := parseLabAddr(target)
	if err != nil {
		return "", fmt.Errorf("--relay: %w", err)
	}
	relay, err := lab.NewRelay(lab.RelayOptions{
		Settings: r.settings, Transport: r.flags.carrier, Listen: from, Target: to, ToServer: toB, ToHere: toA, Tap: r.record.tap,
	})
	if err != nil {
		return "", fmt.Errorf("relay: %w", err)
	}
	r.group.Relay = relay
	r.record.watch(relay.Addr())
	r.record.watch(to)
	r.say("relay at %s to %s: loss %s, delay %s, jitter %s, dup %s, seed %d", relay.Addr(), to,
		r.flags.loss, r.flags.delay, r.flags.jitter, r.flags.dup, r.flags.seed)
	return relay.Addr().String(), nil
}

// say tells what goes on, to whoever watches.
func (r *labRun) say(format string, args ...any) {
	if !r.app.flags.quiet {
		fmt.Fprintf(r.app.err, format+"\n", args...)
	}
}

// scenario writes the log's first line: who is where, and how the run was asked for.
func (r *labRun) scenario() {
	f := r.flags
	params := map[string]string{}
	for name, v := range f.params() {
		params[name] = fmt.Sprint(v)
	}
	line := lab.Line{"event": "scenario", "name": "lab " + r.protocol.name, "transport": f.carrier.String(), "params": params}
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
		if at, err := parseLabAddr(f.connect); err == nil {
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
	if r.flags.truth == "-" || r.flags.write == "-" {
		return
	}
	w := r.app.writer()
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
					parts = append(parts, fmt.Sprintf("forwarded %d", c.Sent)) // a proxy that keeps nothing
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
