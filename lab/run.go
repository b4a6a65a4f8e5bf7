package lab

import (
	"context"
	"errors"
	"time"
)

// Group is the parts of a run that one process has.
type Group struct {
	Clients, Proxies, Servers []*Host
	Relay                     *Relay // nil for none
	// Linger is how long the hosts still read and answer after their
	// applications have said all.
	Linger time.Duration
	// Grace is the time between the end of the clients and that of the servers,
	// and that of the relay: what the former sent last is then still carried.
	Grace time.Duration
}

// part is one running part.
type part struct {
	end  context.CancelFunc
	over chan struct{}
}

// Run has all parts work until the applications have said all and Linger has
// passed, or ctx ends; then it ends them: clients first, the relay last. A run
// without clients and servers ends with ctx only. The trouble of one part ends all.
func (g *Group) Run(ctx context.Context) error {
	trouble := make(chan error, len(g.Clients)+len(g.Proxies)+len(g.Servers)+1)
	begin := func(run func(context.Context) error) part {
		own, end := context.WithCancel(context.WithoutCancel(ctx))
		p := part{end: end, over: make(chan struct{})}
		go func() {
			defer close(p.over)
			if err := run(own); err != nil {
				trouble <- err
			}
		}()
		return p
	}
	// The far ends first, so that nobody speaks to one that is not there yet.
	var relay, servers, proxies, clients []part
	if g.Relay != nil {
		relay = append(relay, begin(g.Relay.Run))
	}
	for _, h := range g.Servers {
		servers = append(servers, begin(h.Run))
	}
	for _, h := range g.Proxies {
		proxies = append(proxies, begin(h.Run))
	}
	for _, h := range g.Clients {
		clients = append(clients, begin(h.Run))
	}
	err := g.wait(ctx, trouble)
	for i, stage := range [][]part{clients, proxies, servers, relay} {
		if i > 0 && len(stage) > 0 && g.Grace > 0 && err == nil {
			time.Sleep(g.Grace)
		}
		for _, p := range stage {
			p.end()
		}
		for _, p := range stage {
			<-p.over
		}
	}
	for len(trouble) > 0 {
		err = errors.Join(err, <-trouble)
	}
	return err
}

// wait waits for the end of the run, whatever brings it about.
func (g *Group) wait(ctx context.Context, trouble <-chan error) error {
	for _, hosts := range [][]*Host{g.Clients, g.Servers} {
		for _, h := range hosts {
			select {
			case <-h.Done():
			case <-ctx.Done():
				return nil
			case err := <-trouble:
				return err
			}
		}
	}
	var linger <-chan time.Time // of a relay alone: never
	if len(g.Clients)+len(g.Servers) > 0 {
		linger = time.After(g.Linger)
	}
	select {
	case <-linger:
	case <-ctx.Done():
	case err := <-trouble:
		return err
	}
	return nil
}
