package lab

import (
	"context"
	"errors"
	"time"
)

// Group is the parts of a run in one process.
type Group struct {
	Clients, Proxies, Servers []*Host
	Relay                     *Relay // nil if there is none
	// Linger is how long the hosts still read and answer after their
	// applications have finished.
	Linger time.Duration
	// Grace is the time between the ends of the clients, the servers and the
	// relay. In that time the last packets still travel.
	Grace time.Duration
}

// part is one running part.
type part struct {
	end  context.CancelFunc
	over chan struct{}
}

// Run runs all parts until the applications have finished and Linger has
// passed, or until ctx ends. Then it ends the parts: the clients first, the
// relay last. Without clients and servers only ctx ends the run. An error of
// one part ends all.
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
	// Start the far ends first, so that each part finds its peer.
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

// wait waits for the end of the run, for any reason.
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
	var linger <-chan time.Time // never, for a relay alone
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
