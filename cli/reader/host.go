package reader

import (
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/host"
)

// sample takes a sample if one is due at a live frame, and writes it.
func (r *Reader) sample(f *capture.Frame) error {
	return r.writeSample(r.Probe.Frame(f))
}

// lastSample takes a sample where a live capture ends, so that the samples cover its last frames. It returns the error
// that ended it.
func (r *Reader) lastSample(ended error) error {
	if r.Probe == nil {
		return ended
	}
	if err := r.writeSample(r.Probe.Last()); err != nil {
		return err
	}
	return ended
}

// writeSample writes a sample, unless it is nil or nothing is saved.
func (r *Reader) writeSample(s *host.Sample) error {
	if s != nil && r.Save != nil && r.SaveErr == nil {
		if err := r.Save.WriteHost(s); err != nil {
			return r.fail(err)
		}
	}
	return nil
}

// Host implements analyze.Hosted.
func (r *Reader) Host() *host.Timeline {
	switch {
	case r.In != nil:
		return r.In.Host()
	case r.Probe != nil:
		return r.Probe.Host()
	}
	return nil
}

// InterfaceName implements analyze.Hosted.
func (r *Reader) InterfaceName(file, index int) string {
	if r.In != nil {
		return r.In.InterfaceName(file, index)
	}
	return r.Live.Group.Interfaces()[index].Name
}

// ForgetHost implements analyze.Sampled.
func (r *Reader) ForgetHost() {
	if r.In != nil {
		r.In.ForgetHost()
	}
}
