package tracker

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// PortableProofs are Facts.Settings of this protocol, as another process of the same build reads
// them. Each list is by side.
type PortableProofs struct {
	ReadAt  [2]machine.Instant // the time up to which the side is known to have read
	ReadRef [2]machine.Ref
	Shown   [2]bool
	Repair  [2]repair
	Builds  [2]wire.BuildSet
}

// WriteProofs returns Facts.Settings for another process. It returns nil where the run found
// nothing, and fails where they are of another protocol.
func WriteProofs(settings any) (*PortableProofs, error) {
	if settings == nil {
		return nil, nil //nolint:nilnil // nothing learned is no error
	}
	p, ok := settings.(proofs)
	if !ok {
		return nil, fmt.Errorf("riptide: expected facts of this protocol, found %T", settings)
	}
	x := &PortableProofs{Shown: p.shown, Repair: p.repair, Builds: p.builds}
	for i, r := range p.read {
		x.ReadAt[i], x.ReadRef[i] = r.at, r.ref
	}
	return x, nil
}

// ReadProofs returns the Facts.Settings that WriteProofs wrote.
func ReadProofs(x *PortableProofs) any {
	if x == nil {
		return nil
	}
	p := proofs{shown: x.Shown, repair: x.Repair, builds: x.Builds}
	for i := range p.read {
		p.read[i] = proof{x.ReadAt[i], x.ReadRef[i]}
	}
	return p
}
