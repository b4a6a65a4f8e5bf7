package riptide

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// portable is what another process reads of a flow: see dissect.Portable.
type portable struct {
	Senders [2]portableSender
	Proofs  *tracker.PortableProofs `json:",omitempty"` // nil where the run learned none
}

// portableSender is a Sender, with its dialect by name.
type portableSender struct {
	Dialect      string
	BigEndian    bool
	NotifyHeader bool
	Builds       wire.BuildSet
}

var errSchema = errors.New("riptide: a schema is of one process")

func writePortable(c *dissect.Config) ([]byte, error) {
	s, ok := c.Profile.(*Settings)
	switch {
	case !ok:
		return nil, fmt.Errorf("riptide: expected Settings, found %T", c.Profile)
	case s.bodies != nil:
		return nil, errSchema
	}
	var p portable
	for i := range s.Senders {
		x := &s.Senders[i]
		p.Senders[i] = portableSender{x.Codec.Dialect.Name, x.Codec.BigEndian, x.Codec.NotifyHeader, x.Builds}
	}
	var err error
	if p.Proofs, err = tracker.WriteProofs(c.Facts.Settings); err != nil {
		return nil, err
	}
	return json.Marshal(&p)
}

func readPortable(c *dissect.Config, from []byte) error {
	var p portable
	if err := json.Unmarshal(from, &p); err != nil {
		return fmt.Errorf("riptide: what another process learned: %w", err)
	}
	s := &Settings{}
	for i := range p.Senders {
		x := &p.Senders[i]
		d, ok := wire.Lookup(x.Dialect)
		if !ok {
			return fmt.Errorf("riptide: what another process learned: dialect %q: expected one of this build", x.Dialect)
		}
		s.Senders[i] = Sender{wire.Codec{Dialect: d, BigEndian: x.BigEndian, NotifyHeader: x.NotifyHeader}, x.Builds}
	}
	c.Profile, c.Facts.Settings = s, tracker.ReadProofs(p.Proofs)
	return nil
}
