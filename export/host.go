package export

import (
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
)

// hostColumns returns the columns for what the samples of the capturing host tell about one side. They are omitted
// where the capture holds no samples.
func hostColumns(side machine.Side) []flowColumn {
	of := func(c Column, get func(x *host.Told, c *Cell)) flowColumn {
		c.Name, c.Absent = c.Name+"_"+side.String(), Omitted
		return flowColumn{c, func(r *FlowRow, cell *Cell) {
			if x, ok := r.Host(side); ok {
				get(&x, cell)
			}
		}}
	}
	who := side.String()
	return []flowColumn{
		of(Column{Name: "owner_pid", Type: Uint, Doc: "Process that held the socket of " + who +
			". This and what follows: where the capture holds samples of its host (host.md)."},
			func(x *host.Told, c *Cell) {
				if x.Owner.PID > 0 {
					c.uint(uint64(x.Owner.PID))
				}
			}),
		of(Column{Name: "owner_name", Type: Text, Doc: "Name of that process."},
			func(x *host.Told, c *Cell) { c.word(x.Owner.Name) }),
		of(Column{Name: "owner_uid", Type: Uint, Doc: "User that opened the socket."},
			func(x *host.Told, c *Cell) {
				if x.Socket {
					c.uint(uint64(x.UID))
				}
			}),
		of(Column{Name: "owner_group", Type: Text, Doc: "Control group of that process: the pod or container."},
			func(x *host.Told, c *Cell) { c.word(x.Owner.Group) }),
		of(Column{Name: "owner_unknown", Type: Text, Doc: "Why the process or the socket is unknown."},
			func(x *host.Told, c *Cell) {
				if c.word(x.Why); x.Why == "" {
					c.word(x.Owner.Why)
				}
			}),
		of(Column{Name: "socket_drops", Type: Uint, Doc: "Datagrams that the kernel dropped at the socket, as far as the " +
			"samples show."}, func(x *host.Told, c *Cell) {
			if x.Socket {
				c.uint(x.Drops.N)
			}
		}),
		of(Column{Name: "socket_queue", Type: Uint, Unit: "bytes", Doc: "The most that unread datagrams took in a sample."},
			func(x *host.Told, c *Cell) {
				if x.Socket {
					c.uint(x.Queue)
				}
			}),
	}
}
