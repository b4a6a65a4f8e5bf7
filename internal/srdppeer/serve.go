package srdppeer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// Serve runs an endpoint on a socket until the context ends. It is the only
// user of the endpoint meanwhile. now returns the time of the run.
//
// step is called before each wait. It sends what the application has to send,
// and returns when it wants the next call, or false for never.
func Serve(ctx context.Context, conn *net.UDPConn, e *Endpoint, now func() time.Duration,
	step func(now time.Duration) (next time.Duration, ok bool),
) error {
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })() // ends the wait below
	buffer := make([]byte, 1<<16)
	for ctx.Err() == nil {
		at := now()
		e.Expire(at)
		wait := time.Minute
		if next, ok := step(at); ok {
			wait = min(wait, next-at)
		}
		if due, ok := e.Deadline(); ok {
			wait = min(wait, due-at)
		}
		if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil // it ended before the deadline was set, which then hid its end
		}
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil: // an error of one datagram: ICMP reported a closed port
		default:
			e.Receive(now(), netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), buffer[:n])
		}
	}
	return nil
}
