package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// note is what the journal keeps beside the inputs: enough to build the
// endpoints again and to know their bytes.
func (s *simulation) note() map[string]string {
	note := map[string]string{
		"protocol": s.flags.protocol, "event-clock": strconv.FormatBool(s.flags.eventTime),
		"sent-sha256": hex.EncodeToString(s.sentHash.Sum(nil)),
	}
	if s.flags.fault != "" {
		note["fault"], note["faulty"] = s.flags.fault, s.flags.faulty
	}
	if s.flags.resend > 0 {
		note["resend"] = s.flags.resend.String()
	}
	maps.Copy(note, s.cast.note())
	return note
}

// readJournal reads a journal, "-" from standard input.
func (a *app) readJournal(path string) (*sim.Journal, error) {
	from := a.in
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

// play runs a journal again: the same inputs must give the same bytes.
func (a *app) play(protocols simulators, path string) error {
	j, err := a.readJournal(path)
	if err != nil {
		return err
	}
	if j.Note["protocol"] == "" {
		return fmt.Errorf("%s: expected a journal of `ackscope simulate`, found one of lab %q (lab --play?)", path, j.Note["lab"])
	}
	f := simulateFlags{protocol: j.Note["protocol"], first: j.Note["first"], eventTime: j.Note["event-clock"] == "true"}
	f.fault, f.faulty = j.Note["fault"], j.Note["faulty"]
	f.clients, _ = strconv.Atoi(j.Note["clients"])
	f.clients, f.limitless, f.mix, f.end = max(f.clients, 1), j.Note["no-limits"] == "true", "1/1/1", "none"
	f.repeats, f.timeout, f.services = "0", "0s", "none"
	f.giveUp, _ = time.ParseDuration(j.Note["give-up"])
	f.resend, _ = time.ParseDuration(j.Note["resend"])
	if f.first == "" {
		f.first = "0"
	}
	f.rate, f.refuse, f.payload, f.loss, f.dup, f.delay, f.jitter, f.bandwidth = "60", "0%", "0", "0%", "0%", "0ms", "0ms", "0"
	s, err := a.newSimulation(protocols, &f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var endpoints []machine.Endpoint
	for _, h := range s.world.Hosts() {
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
		return &gateError{fmt.Sprintf("%s: %v", path, err)}
	}
	if err == nil && j.Cut {
		err = fmt.Errorf("journal line %d: expected its last line, found the end of the file: it was cut short (%d inputs gave %d datagrams, every byte as recorded)",
			len(j.Entries)+2, len(j.Entries), datagrams)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	want, err := hex.DecodeString(j.Note["sent-sha256"])
	if err != nil || !bytes.Equal(want, sum.Sum(nil)) {
		return &gateError{fmt.Sprintf("%s: %d inputs gave %d datagrams that differ from the recorded run's", path, len(j.Entries), datagrams)}
	}
	fmt.Fprintf(a.writer(), "%d inputs gave %d datagrams, every byte as recorded\n", len(j.Entries), datagrams)
	return nil
}
