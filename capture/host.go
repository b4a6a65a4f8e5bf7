package capture

import (
	"encoding/binary"

	"github.com/ackscope/ackscope/host"
)

// Samples of the capturing host stand in Interface Statistics Blocks of their own. Wireshark numbers Custom Blocks
// among the frames, and these not:
//
//	0  block type 5    8  interface 0    12  time    20  options:
//	   1     comment, for people
//	   2989  custom option that may be copied: 0  enterprise number  4  host.Sample
//
// Source: draft-ietf-opsawg-pcapng, sections 3.5.1 and 4.6.
const (
	optionCustom = 2989

	// sampleEnterprise is the number that examples use. ackscope has no number of its own, and the magic of a
	// sample tells it from others.
	// Source: RFC 5612
	sampleEnterprise = 32473
)

// WriteHost writes a sample. A section without an interface has no place for one, and leaves it out.
func (w *Writer) WriteHost(s *host.Sample) error {
	if err := w.ready(); err != nil || len(w.ticks) == 0 {
		return err
	}
	at := uint64(max(s.At, 0)) / w.ticks[0]
	w.begin(blockStatistics)
	w.u32(0)
	w.u32(uint32(at >> 32))
	w.u32(uint32(at))
	w.text(optionComment, s.Text())
	w.option(optionCustom, s.Append(binary.LittleEndian.AppendUint32(nil, sampleEnterprise)))
	w.endOptions(w.block[20:])
	w.finish()
	return w.err
}

// readHost adds the sample in the options of a statistics block to those of the capture. It returns false if there is
// none.
func (f *file) readHost(o *section, b []byte) bool {
	for code, value := range options(b, o.big) {
		if code != optionCustom || len(value) < 4 || o.u32(value) != sampleEnterprise {
			continue
		}
		if s, err := host.Parse(value[4:]); err == nil {
			f.host.Add(s)
			return true
		}
	}
	return false
}

// ForgetHost drops the samples that were read so far.
func (in *Input) ForgetHost() { in.host = host.Timeline{} }

// Host returns the samples of the capturing host that were read so far. Next adds to them.
func (in *Input) Host() *host.Timeline { return &in.host }

// InterfaceName returns the name of an interface of the i-th file. It returns "" if the file does not say.
func (in *Input) InterfaceName(i, index int) string {
	f := in.files[i]
	f.mu.RLock()
	defer f.mu.RUnlock()
	if index >= len(f.interfaces) {
		return ""
	}
	return f.interfaces[index].Name
}
