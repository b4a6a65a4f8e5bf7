package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/ackscope/ackscope/machine"
)

// Sizes of bodies, in bytes.
// Source: choice; the longest row of testdata/pcaps has 5 kB
const (
	MostBody    = 64 << 10 // of a stored message
	mostRequest = 4 << 10  // of all others
)

// Report is how a sensor does. Sensors publish it every 10 s, and they are not stored.
type Report struct {
	Version string `json:"version"`
	Epoch   string `json:"epoch"`
	Up      int64  `json:"up_s"`

	Packets       uint64 `json:"packets"`
	KernelDropped uint64 `json:"kernel_dropped"` // packets that the kernel could not hand over
	OpenFlows     int    `json:"open_flows"`

	Told      map[Kind]uint64 `json:"told"`      // rows of this epoch, spooled
	Forwarded uint64          `json:"forwarded"` // rows that the hub has confirmed to this run
	Dropped   uint64          `json:"dropped"`   // rows that a full spool pushed out before they were forwarded
	Spooled   uint64          `json:"spooled"`   // rows that wait
	SpoolSize uint64          `json:"spool_bytes"`

	RingBytes int64           `json:"ring_bytes"`
	RingFrom  machine.Instant `json:"ring_from"` // its oldest frame; 0 if it has none
	GivenUp   int             `json:"pins_given_up"`
	Fetch     bool            `json:"fetch"` // it answers requests for packets
}

// Request asks a sensor for packets of its ring.
type Request struct {
	From machine.Instant `json:"from"`
	To   machine.Instant `json:"to"`
	A    netip.AddrPort  `json:"a"` // one endpoint
	B    netip.AddrPort  `json:"b"` // and the other
	// Plain asks for packets as they were captured. A sensor refuses unless its operator allows that.
	Plain bool `json:"plain,omitempty"`
}

// Answer is what a sensor says to a Request.
type Answer struct {
	Error string `json:"error,omitempty"` // why there are no packets

	Object  string   `json:"object,omitempty"` // in the bucket of the site
	Digest  string   `json:"digest,omitempty"` // SHA-256 of the object, in hexadecimal digits
	Bytes   uint64   `json:"bytes,omitempty"`
	Frames  uint64   `json:"frames,omitempty"`
	Plain   bool     `json:"plain,omitempty"`   // as captured: not anonymised
	Missing []string `json:"missing,omitempty"` // parts of the span that the ring lacks, in words
}

// Encode returns a body in JSON.
func Encode(body any) ([]byte, error) { return json.Marshal(body) }

func decode(what string, text []byte, to any) error {
	if len(text) > mostRequest {
		return fmt.Errorf("%s: expected at most %d bytes, found %d", what, mostRequest, len(text))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%s: expected an object in JSON: %w", what, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: expected one object, found more after it", what)
	}
	return nil
}

// ParseReport reads the body of a health message.
func ParseReport(text []byte) (*Report, error) {
	r := new(Report)
	if err := decode("health", text, r); err != nil {
		return nil, err
	}
	if len(r.Version) > MostName || !isEpoch(r.Epoch) || len(r.Told) > len(Stored) {
		return nil, fmt.Errorf("health: expected a version, an epoch and counts of rows, found others")
	}
	return r, nil
}

// ParseRequest reads the body of a request.
func ParseRequest(text []byte) (*Request, error) {
	r := new(Request)
	if err := decode("request", text, r); err != nil {
		return nil, err
	}
	switch {
	case r.From > r.To:
		return nil, errors.New("request: expected a span whose end is not before its beginning, found one")
	case !r.A.IsValid() || !r.B.IsValid() || r.A.Addr().Is4() != r.B.Addr().Is4():
		return nil, errors.New("request: expected two endpoints of one family, found others")
	}
	return r, nil
}

// digestDigits is the length of a SHA-256 in hexadecimal digits.
const digestDigits = 64

// ParseAnswer reads the body of an answer.
func ParseAnswer(text []byte) (*Answer, error) {
	a := new(Answer)
	if err := decode("answer", text, a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return a, nil
	}
	if len(a.Digest) != digestDigits || strings.Trim(a.Digest, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("answer: expected a digest of %d hexadecimal digits, found %s", digestDigits,
			Quoted(a.Digest))
	}
	if a.Object == "" || len(a.Object) > 2*digestDigits {
		return nil, fmt.Errorf("answer: expected the name of an object, found %s", Quoted(a.Object))
	}
	return a, nil
}
