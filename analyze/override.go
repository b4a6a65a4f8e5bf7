package analyze

import (
	"net/netip"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
)

// DecodeAs decodes the flows that match as a given protocol, whatever their
// bytes show.
type DecodeAs struct {
	Text      string // the user's words, for the reason of the flow: "-d udp.port==7777,gaffer"
	Transport capture.Transport
	Port      uint16     // of either endpoint; 0 for any
	Addr      netip.Addr // of either endpoint; invalid for any
	Protocol  *dissect.Protocol
	Config    *dissect.Config
}

func (d *DecodeAs) matches(f *Flow) bool {
	return d.Transport == f.Transport &&
		(d.Port == 0 || d.Port == f.A.Port() || d.Port == f.B.Port()) &&
		(!d.Addr.IsValid() || d.Addr == f.A.Addr() || d.Addr == f.B.Addr())
}

// override returns the first of the user's rules that matches f, and the reason
// to show.
func (s *Session) override(f *Flow) (*DecodeAs, string) {
	for i := range s.options.DecodeAs {
		if d := &s.options.DecodeAs[i]; d.matches(f) {
			return d, "set by " + d.Text
		}
	}
	return nil, ""
}
