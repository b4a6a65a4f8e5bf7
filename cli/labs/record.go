package labs

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/privilege"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/lab"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// labRecording writes what passes in a lab to a capture file. It captures live
// on an interface, or writes what the relay observes.
type labRecording struct {
	app   *app.App
	clock lab.Clock
	ports map[uint16]bool // of the server and the relay: every frame of the run has one of them

	opened *afpacket.Options // of a live recording; nil if there is none

	save *reader.Save
	err  error

	live    afpacket.Live
	over    chan struct{}
	decoder *capture.Decoder

	mu      sync.Mutex // for what the relay observes
	noting  bool
	packet  []byte
	ids     map[netip.AddrPort]uint16
	streams map[[2]netip.AddrPort]*labStream
}

// labStream is one direction of a connection that the relay observes.
type labStream struct {
	next  uint32 // sequence of the next byte
	begun bool
}

// labBuffer is the kernel's buffer for a live recording, in bytes. The parts of
// the run compete with the reader for the processors, so the reader may lag.
const labBuffer = 32 << 20

// watch adds an address whose traffic to record.
func (r *labRecording) watch(at netip.AddrPort) {
	if r.ports == nil {
		r.ports = map[uint16]bool{}
	}
	r.ports[at.Port()] = true
}

// prepare opens the socket of a live recording, if the user asked for one, and
// gives up all privileges. A process with privileges does not return from it.
// So nothing else may be open yet.
func (r *labRecording) prepare(f *Flags) error {
	if f.Write == "" || f.recorder == "relay" {
		return nil
	}
	device := f.device
	if device == "" {
		if device = afpacket.Any; f.near() {
			device = loopbackDevice()
		}
	}
	list := []afpacket.Options{{Interface: device, Buffer: labBuffer}}
	err := privilege.OpenWithLeast(list, &f.Options)
	switch {
	case err == nil:
		r.opened = &list[0]
		reader.WarnRoot(r.app)
		return nil
	case errors.Is(err, privilege.ErrRoot), errors.Is(err, os.ErrPermission):
		return fmt.Errorf("-w: %w; where the relay runs, --recorder relay takes no privilege", err)
	}
	return fmt.Errorf("-w: %w", err)
}

// open starts the recording, if the user asked for one.
func (r *labRecording) open(f *Flags, relay bool) (err error) {
	if f.Write == "" {
		return nil
	}
	var unable error // why live capture failed
	if r.opened != nil {
		r.live, err = afpacket.Open(*r.opened)
		if unable = err; err != nil && (f.recorder == "live" || !relay) {
			if errors.Is(err, os.ErrPermission) {
				err = fmt.Errorf("%w (capturing needs CAP_NET_RAW; where the relay runs, --recorder relay does without)", err)
			}
			return fmt.Errorf("-w: %s: %w", r.opened.Interface, err)
		}
	}
	if r.live == nil && !relay {
		return errors.New("-w: --recorder relay: there is no relay in this process")
	}
	describe := func(int, int) capture.Interface {
		return capture.Interface{
			Name: "relay", LinkType: capture.LinkRaw,
			Description: "noted by the relay of ackscope lab, not captured",
		}
	}
	if r.live != nil {
		describe = func(int, int) capture.Interface { return r.live.Interface() }
	}
	if r.save, err = reader.NewStream(r.app, f.Write, "", reader.Origin{Of: describe}); err != nil {
		if r.live != nil {
			err = errors.Join(err, r.live.Close())
		}
		return err
	}
	if r.live == nil {
		r.noting, r.ids, r.streams = true, map[netip.AddrPort]uint16{}, map[[2]netip.AddrPort]*labStream{}
		if unable != nil {
			r.tell("no live capture: %v", unable)
		}
		r.tell("recording by the relay itself")
		return nil
	}
	r.tell("recording live on %s", r.opened.Interface)
	r.over, r.decoder = make(chan struct{}), capture.NewDecoder(capture.DecodeOptions{})
	go r.take()
	return nil
}

func loopbackDevice() string {
	devices, err := afpacket.Devices()
	if err != nil {
		return afpacket.Any
	}
	for _, d := range devices {
		if d.Loopback {
			return d.Name
		}
	}
	return afpacket.Any
}

func (r *labRecording) tell(format string, args ...any) {
	if !r.app.Flags.Quiet {
		fmt.Fprintf(r.app.Err, format+"\n", args...)
	}
}

// take writes the frames of the run until the capture ends.
func (r *labRecording) take() {
	defer close(r.over)
	var f capture.Frame
	var p capture.Packet
	for {
		if err := r.live.Next(&f); err != nil {
			if !errors.Is(err, io.EOF) {
				r.err = err
			}
			return
		}
		r.decoder.Decode(&f, &p)
		// A fragment has no ports: rather record a foreign one than lose one of
		// the run.
		if p.Transport == capture.NoTransport && p.Fragments == 0 || p.Transport != capture.NoTransport &&
			!r.ports[p.Src.Port()] && !r.ports[p.Dst.Port()] {
			continue
		}
		if err := r.save.Write(&f); err != nil {
			r.err = err
			return
		}
	}
}

// close ends the recording.
func (r *labRecording) close() error {
	if r.save == nil {
		return nil
	}
	if r.live == nil {
		return errors.Join(r.err, r.save.Close(nil))
	}
	time.Sleep(20 * time.Millisecond) // for what was sent last to reach the tap
	r.live.Stop()
	<-r.over
	st, err := r.live.Statistics()
	err = errors.Join(r.err, err, r.live.Close())
	if err == nil {
		r.tell("%s recorded, %s dropped by the kernel", show.Plural(r.save.Frames, "packet"), show.Grouped(st.OSDropped))
	}
	return errors.Join(err, r.save.Close([]capture.Statistics{st}))
}

// tap records what the relay observes.
func (r *labRecording) tap(s lab.Observation) {
	if !r.noting {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Transport == lab.TCP {
		r.noteStream(s)
		return
	}
	r.note(s, func(to []byte, e capture.Envelope) ([]byte, error) { return capture.AppendUDP(to, e, s.Bytes) })
}

// note writes one synthetic packet.
func (r *labRecording) note(s lab.Observation, build func(to []byte, e capture.Envelope) ([]byte, error)) {
	if r.err != nil {
		return
	}
	r.ids[s.From]++
	r.packet, r.err = build(r.packet[:0], capture.Envelope{Src: s.From, Dst: s.To, TTL: 64, ID: r.ids[s.From]})
	if r.err == nil {
		r.err = r.save.Write(&capture.Frame{
			At: r.clock.Wall(s.At), LinkType: capture.LinkRaw, Length: len(r.packet),
			Data: r.packet,
		})
	}
}

// noteStream writes the segments that would carry what the relay observed.
func (r *labRecording) noteStream(s lab.Observation) {
	own, other := r.stream(s.From, s.To), r.stream(s.To, s.From)
	segment := func(flags uint8, b []byte) {
		r.note(s, func(to []byte, e capture.Envelope) ([]byte, error) {
			return capture.AppendTCP(to, e, own.next, other.next, flags, 0xffff, b)
		})
		own.next += uint32(len(b))
	}
	switch s.Kind {
	case machine.OpenStream:
		flags := uint8(capture.FlagSYN)
		if other.begun {
			flags |= capture.FlagACK
		}
		segment(flags, nil)
		own.begun = true
		own.next++
	case machine.CloseStream:
		if own.begun {
			segment(capture.FlagFIN|capture.FlagACK, nil)
			own.next++
			own.begun = false
		}
	default:
		for b := s.Bytes; len(b) > 0; {
			n := min(len(b), 1460)
			segment(capture.FlagPSH|capture.FlagACK, b[:n])
			b = b[n:]
		}
	}
}

func (r *labRecording) stream(from, to netip.AddrPort) *labStream {
	key := [2]netip.AddrPort{from, to}
	if r.streams[key] == nil {
		r.streams[key] = &labStream{}
	}
	return r.streams[key]
}
