package messages

import "github.com/ackscope/ackscope/machine"

// get returns the life of an id. It returns nil if the id is settled or too old.
func (c *Lane) get(id int64, out *machine.Effects) *life {
	if id < c.Base {
		return nil
	}
	if over := id - c.Base - livesMost + 1; over > 0 {
		c.drop(min(over, int64(c.settled)), out)
		if over = id - c.Base - livesMost + 1; over > 0 {
			c.drop(over+livesMost/16, out)
		}
	}
	for int64(len(c.lives)) <= id-c.Base {
		c.grow()
		c.lives = append(c.lives, life{id: c.Base + int64(len(c.lives)), blockedBy: -1})
	}
	return &c.lives[id-c.Base]
}

// grow makes room for one more life. The lives move to the front of room once at least
// half of it is free there.
func (c *Lane) grow() {
	n := len(c.lives)
	if n < cap(c.lives) {
		return
	}
	if 2*n >= len(c.room) {
		c.room = make([]life, max(16, 2*n))
		copy(c.room, c.lives)
	} else {
		copy(c.room, c.lives)
		clear(c.room[n:])
	}
	c.lives = c.room[:n]
}

// open returns the oldest id that is not settled.
func (c *Lane) open() int64 { return c.Base + int64(c.settled) }

// find is get for an id that must exist already.
func (c *Lane) find(id int64) *life {
	if i := id - c.Base; i >= 0 && i < int64(len(c.lives)) {
		return &c.lives[i]
	}
	return nil
}

// drop reports the oldest n lives and forgets them.
func (c *Lane) drop(n int64, out *machine.Effects) {
	known := min(n, int64(len(c.lives)))
	for i := range c.lives[:known] {
		c.report(&c.lives[i], out)
	}
	clear(c.lives[:known])
	c.lives = c.lives[known:]
	c.settled = max(c.settled-int(known), 0)
	c.Base += n
}

// Settle finds the lives that are settled: acked, and delivered. It reports those of
// which no copy can be under way any more.
func (c *Lane) Settle(now machine.Instant, out *machine.Effects) {
	for c.settled < len(c.lives) {
		l := &c.lives[c.settled]
		if !c.unseen(l) && !(l.ack.shown && l.delivery.shown) {
			break
		}
		c.settled++
	}
	done := 0
	for done < c.settled {
		if l := &c.lives[done]; l.ack.shown && now.Sub(l.readAt) < c.Copies {
			break
		}
		done++
	}
	if done > 0 {
		c.drop(int64(done), out)
	}
}

// unseen reports whether no packet carried a message, and none will.
func (c *Lane) unseen(l *life) bool {
	return l.sends.count == 0 && (l.id < c.first || l.id < c.Top-int64(c.Config.SendQueue))
}

func (c *Lane) clone() Lane {
	d := *c
	d.Evidence = c.Evidence.clone()
	d.lives = append([]life(nil), c.lives...)
	d.room = d.lives[:cap(d.lives)]
	for i := range d.lives {
		if b := d.lives[i].block; b != nil {
			d.lives[i].block = b.clone()
		}
	}
	return d
}

func (c *Lane) size() int {
	n := 340 + len(c.room)*488 + c.Evidence.size()
	for i := range c.lives {
		n += len(c.lives[i].content.body)
		if b := c.lives[i].block; b != nil {
			n += b.bytes + len(b.parts)*64
		}
	}
	return n
}
