// Package riptidelog reads the logs that the endpoints of a Riptide run wrote while it was
// captured (testdata/pcaps/RIPTIDE.md). For example, a line says that client1 received message 7
// at a time of the clock that stamped the packets. Only tests use the package.
package riptidelog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
)

// Line is one line of the log. Its fields that an event does not have are zero.
type Line struct {
	T         float64 `json:"t"`
	Endpoint  string  `json:"endpoint"`
	Event     string  `json:"event"`
	Mode      string  `json:"mode"`
	MessageID *int    `json:"message_id"`
	Seq       int     `json:"seq"`
	ClientID  int     `json:"client_id"`
	ID        int     `json:"id"`
	Remote    string  `json:"remote"`
	Reason    string  `json:"reason"`
	Code      int     `json:"reason_code"`
	OnWire    *int    `json:"reject_reason_code"`
	RTT       int     `json:"rtt"`
	Smooth    int     `json:"smooth_rtt"`
	Version   string  `json:"version"`
	Port      uint16  `json:"port"`
	Local     uint16  `json:"local_port"`
	Client    string  `json:"client"`
	Outer     string  `json:"relay_toward_server"`
	Server    string  `json:"server_address"`

	Suppressed int    `json:"suppressed_lines"`
	Dir        string `json:"dir"`
	Head       string `json:"head"`
	Length     int    `json:"len"`
}

// Run is the log of a run, with what connects it to addresses.
type Run struct {
	Lines   []Line
	Version map[string]string // endpoint -> library
	Ports   map[uint16]string // a client's own port -> client
	Outer   map[uint16]netip.AddrPort
	Server  uint16
	IDs     map[int][]Line  // the server's `connected` lines, by client id
	Partial map[string]bool // endpoints whose log lacks lines
}

// Parse reads the log of a run.
func Parse(text []byte) (*Run, error) {
	r := &Run{
		Version: map[string]string{}, Ports: map[uint16]string{}, Outer: map[uint16]netip.AddrPort{},
		IDs: map[int][]Line{}, Partial: map[string]bool{},
	}
	scan := bufio.NewScanner(bytes.NewReader(text))
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var l Line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%w in %.80s", err, scan.Bytes())
		}
		switch {
		case l.Event == "start" && l.Endpoint != "relay":
			r.Version[l.Endpoint] = l.Version
			if l.Endpoint == "server" && l.Port != 0 {
				r.Server = l.Port
			} else if r.Server == 0 && l.Server != "" {
				r.Server = netip.MustParseAddrPort(l.Server).Port()
			}
		case l.Event == "local_endpoint":
			r.Ports[l.Local] = l.Endpoint
		case l.Event == "flow":
			r.Outer[netip.MustParseAddrPort(l.Client).Port()] = netip.MustParseAddrPort(l.Outer)
		case l.Event == "connected" && l.Endpoint == "server":
			r.IDs[l.ClientID] = append(r.IDs[l.ClientID], l)
		case l.Event == "end" && l.Suppressed > 0:
			r.Partial[l.Endpoint] = true
		}
		r.Lines = append(r.Lines, l)
	}
	return r, scan.Err()
}

// remote returns the address by which the server knows the connection of a
// line. Ids are reused. The first lines of a connection may precede its
// `connected` by a tick.
func (r *Run) remote(l *Line) string {
	if l.Remote != "" {
		return l.Remote
	}
	at := ""
	for _, known := range r.IDs[l.ClientID] {
		if at == "" || known.T <= l.T+0.05 {
			at = known.Remote
		}
	}
	return at
}

// Client returns the name of the client of a flow between two addresses, and the address by which the
// server knows it.
func (r *Run) Client(tap string, a, b netip.AddrPort) (name, remote string) {
	for _, at := range []netip.AddrPort{a, b} {
		if at.Port() == r.Server {
			continue
		}
		if tap == "client" {
			if outer, ok := r.Outer[at.Port()]; ok {
				return r.Ports[at.Port()], outer.String()
			}
			name = r.Ports[at.Port()]
			return name, r.byID(func(l *Line) bool { return l.Endpoint == "server" && l.ClientID == r.idOf(name) }).Remote
		}
		for port, outer := range r.Outer {
			if outer == at {
				return r.Ports[port], at.String()
			}
		}
		id := r.byID(func(l *Line) bool { return l.Remote == at.String() }).ClientID
		return r.byID(func(l *Line) bool { return l.Endpoint != "server" && l.ClientID == id }).Endpoint, at.String()
	}
	return "", ""
}

// byID returns the first line of a connection for which a condition holds. It
// finds clients by their ids if they have no relay (TCP).
func (r *Run) byID(is func(*Line) bool) Line {
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Event == "connected" && is(l) {
			return *l
		}
	}
	return Line{}
}

func (r *Run) idOf(client string) int {
	return r.byID(func(l *Line) bool { return l.Endpoint == client }).ClientID
}

// Of returns the lines of one end of a connection.
func (r *Run) Of(endpoint, remote string) (out []Line) {
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Endpoint == endpoint && (endpoint != "server" || r.remote(l) == remote) {
			out = append(out, *l)
		}
	}
	return out
}
