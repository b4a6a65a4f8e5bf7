package simulate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// note returns what the journal keeps beside the inputs: enough to build the
// endpoints again and to check their bytes.
func (s *Simulation) note() map[string]string {
	note := map[string]string{
		"protocol": s.Flags.Protocol, "event-clock": strconv.FormatBool(s.Flags.EventTime),
		"sent-sha256": hex.EncodeToString(s.sentHash.Sum(nil)),
	}
	if s.Flags.Fault != "" {
		note["fault"], note["faulty"] = s.Flags.Fault, s.Flags.Faulty
	}
	if s.Flags.Resend != "" {
		note["resend"] = s.Flags.Resend
	}
	for _, name := range s.Protocol.Remembered {
		note[name] = s.Flags.set.Lookup(name).Value.String()
	}
	for _, name := range s.Protocol.RememberedIfSet {
		if flag := s.Flags.set.Lookup(name); flag.Changed {
			note[name] = flag.Value.String()
		}
	}
	return note
}

// ReadJournal reads a journal from a file, or from standard input for "-".
func ReadJournal(a *app.App, path string) (*sim.Journal, error) {
	from := a.In
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	j, err := sim.ReadJournal(from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

// play runs a journal again. The same inputs must produce the same bytes.
func play(a *app.App, protocols Simulators, path string) error {
	j, err := ReadJournal(a, path)
	if err != nil {
		return err
	}
	if j.Note["protocol"] == "" {
		return fmt.Errorf("%s: expected a journal of `ackscope simulate`, found one of lab %q (lab --play?)", path,
			j.Note["lab"])
	}
	var f Flags
	set := pflag.NewFlagSet("simulate", pflag.ContinueOnError)
	f.Register(set, protocols)
	f.Protocol, f.EventTime, f.Fault, f.Faulty = j.Note["protocol"], j.Note["event-clock"] == "true", j.Note["fault"],
		j.Note["faulty"]
	f.Resend = j.Note["resend"]
	f.Payload = "1" // only the journal submits: this fits every profile
	f.Seed = j.Seed // of what endpoints draw themselves
	name, _, _ := strings.Cut(f.Protocol, ":")
	if p := protocols.lookup(name); p != nil {
		for _, flag := range slices.Concat(p.Remembered, p.RememberedIfSet) {
			if value := j.Note[flag]; value != "" {
				_ = set.Set(flag, value) // ignore a value that cannot be parsed
			}
		}
	}
	f.Clients = max(f.Clients, 1)
	s, err := NewSimulation(a, protocols, &f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var endpoints []machine.Endpoint
	for _, h := range s.World.Hosts() {
		endpoints = append(endpoints, h.Endpoint())
	}
	sum, datagrams := sha256.New(), 0
	err = j.Play(endpoints, func(_ *sim.Entry, out *machine.Effects) {
		for _, t := range out.Transmit {
			datagrams++
			sum.Write(t.Bytes) // a hash never fails
		}
	})
	var differs *sim.DifferError
	if errors.As(err, &differs) {
		return &app.GateError{Text: fmt.Sprintf("%s: %v", path, err)}
	}
	if err == nil && j.Cut {
		err = fmt.Errorf("journal line %d: expected its last line, found the end of the file: it was cut short (%d inputs "+
			"gave %d datagrams, every byte as recorded)",
			len(j.Entries)+2, len(j.Entries), datagrams)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	want, err := hex.DecodeString(j.Note["sent-sha256"])
	if err != nil || !bytes.Equal(want, sum.Sum(nil)) {
		return &app.GateError{Text: fmt.Sprintf("%s: %d inputs gave %d datagrams that differ from the recorded run's", path,
			len(j.Entries), datagrams)}
	}
	fmt.Fprintf(a.Writer(), "%d inputs gave %d datagrams, every byte as recorded\n", len(j.Entries), datagrams)
	return nil
}
