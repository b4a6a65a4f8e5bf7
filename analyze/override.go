package analyze

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

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

// ParseDecodeAs parses overrides as -d has them. After them it returns those of the registry's
// profiles that name ports.
func ParseDecodeAs(r *dissect.Registry, texts []string) (list []DecodeAs, err error) {
	for _, text := range texts {
		d, err := parseDecodeAs(r, text)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	for _, p := range r.Protocols() {
		for _, x := range p.Profiles {
			for _, port := range x.Config.Ports {
				list = append(list, DecodeAs{
					Text:      fmt.Sprintf("port %d of profile %s:%s", port, p.Name, x.Name),
					Transport: capture.UDP, Port: port, Protocol: p, Config: x.Config,
				})
			}
		}
	}
	return list, nil
}

// parseDecodeAs parses tshark's form: udp.port==7777,gaffer:profile.
func parseDecodeAs(r *dissect.Registry, text string) (DecodeAs, error) {
	d := DecodeAs{Text: "-d " + text}
	fail := func(format string, args ...any) (DecodeAs, error) {
		return d, fmt.Errorf("-d %s: "+format+" (example: -d udp.port==7777,gaffer:article-be)",
			append([]any{text}, args...)...)
	}
	selector, target, ok := strings.Cut(text, ",")
	if !ok {
		return fail("expected a selector, a comma and a protocol")
	}
	field, value, ok := strings.Cut(selector, "==")
	if !ok {
		return fail("selector %q: expected udp.port==, tcp.port== or ip.addr==", selector)
	}
	switch field {
	case "udp.port", "tcp.port":
		port, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			return fail("port %q: expected a number up to 65535", value)
		}
		d.Port, d.Transport = uint16(port), capture.UDP
		if field == "tcp.port" {
			d.Transport = capture.TCP
		}
	case "ip.addr", "ipv6.addr":
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return fail("address %q: %v", value, err)
		}
		d.Addr, d.Transport = addr, capture.UDP
	default:
		return fail("selector %q: expected udp.port==, tcp.port== or ip.addr==", selector)
	}
	name, profile, _ := strings.Cut(target, ":")
	if d.Protocol, ok = r.Lookup(name); !ok {
		return fail("unknown protocol %q", name)
	}
	for i := range d.Protocol.Profiles {
		if p := &d.Protocol.Profiles[i]; p.Name == profile || profile == "" {
			d.Config = p.Config
			return d, nil
		}
	}
	return fail("%s has no profile %q: see `ackscope protocols %s`", name, profile, name)
}
