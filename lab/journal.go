package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/netip"
	"strings"
	"sync"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// Journal writes every input of a run's endpoints as it occurs. Its header has
// a hash of all that the endpoints sent; Finish fills it in. A nil Journal
// writes nothing.
type Journal struct {
	mu   sync.Mutex
	file io.WriteSeeker
	out  *sim.JournalWriter // nil before the first input
	seed uint64
	note map[string]string
	sent hash.Hash
	err  error
}

// noteSent is the key of the hash in a journal's note.
const noteSent = "sent-sha256"

// unfinished is the value of the hash until the run has ended.
var unfinished = strings.Repeat("0", 2*sha256.Size)

// NewJournal starts a journal in a file. note holds what is needed to make the
// endpoints again. The hosts add their addresses.
func NewJournal(file io.WriteSeeker, seed uint64, note map[string]string) *Journal {
	j := &Journal{file: file, seed: seed, note: maps.Clone(note), sent: sha256.New()}
	j.note[noteSent] = unfinished
	return j
}

// place records the address of a host, before the run begins.
func (j *Journal) place(host int, own netip.AddrPort) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note[noteAddress(host)] = own.String()
}

func noteAddress(host int) string { return fmt.Sprintf("address-%d", host) }

// begin writes the header, once.
func (j *Journal) begin() {
	if j.out == nil && j.err == nil {
		j.out, j.err = sim.NewJournalWriter(j.file, j.seed, j.note)
	}
}

// record writes one step of the endpoint with the journal's number host.
func (j *Journal) record(host int, s *sim.Step) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range s.Out.Transmit {
		j.sent.Write(t.Bytes) // a hash never fails
	}
	if j.begin(); j.err == nil {
		j.err = j.out.Write(&sim.Entry{At: s.At, Host: host, In: s.In, Sent: sim.Digest(s.Out.Transmit)})
	}
}

// Finish writes the rest, and then the hash into the header.
func (j *Journal) Finish() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.begin(); j.err == nil {
		j.err = j.out.End()
	}
	if j.err == nil {
		j.err = j.out.Flush()
	}
	if j.err == nil {
		_, j.err = j.file.Seek(0, io.SeekStart)
	}
	if j.err != nil {
		return j.err
	}
	j.note[noteSent] = hex.EncodeToString(j.sent.Sum(nil))
	head, err := sim.NewJournalWriter(j.file, j.seed, j.note)
	if err == nil {
		err = head.Flush()
	}
	return err
}

// journalHost returns the journal's number for endpoint n of a role.
func journalHost(role sim.Role, n int) int { return sim.Roles*n + int(role) }

// Played is the result of playing a journal.
type Played struct {
	Inputs, Sent int
	// Finished reports that the recorded run ended normally, so that the hash
	// of its bytes is known. Same reports that the played run sent the same
	// bytes.
	Finished, Same bool
	// Compared reports that the journal records what each input made an
	// endpoint send, and that all of it was the same. Differs is the first
	// difference.
	Compared bool
	Differs  *sim.DifferError
}

// maxPlayed is the most endpoints that a journal may have.
const maxPlayed = 1 << 16

// Play passes the inputs of a journal of the lab to fresh endpoints of the kit.
func Play(j *sim.Journal, kit sim.Kit) (Played, error) {
	p := Played{Inputs: len(j.Entries)}
	// Only make endpoints that have inputs: the journal of a server alone has
	// no clients.
	var endpoints []machine.Endpoint
	for i := range j.Entries {
		host := j.Entries[i].Host
		if host < 0 || host >= maxPlayed {
			return p, fmt.Errorf("journal line %d: host %d, expected one of %d", i+2, host, maxPlayed)
		}
		for len(endpoints) <= host {
			endpoints = append(endpoints, nil)
		}
		if endpoints[host] != nil {
			continue
		}
		own, err := netip.ParseAddrPort(j.Note[noteAddress(host)])
		if err != nil && j.Note[noteAddress(host)] != "" {
			return p, fmt.Errorf("journal: address of host %d: %w", host, err)
		}
		end, err := kit.End(sim.Role(host%sim.Roles), host/sim.Roles, own)
		if err != nil {
			return p, err
		}
		endpoints[host] = end.Endpoint
	}
	sum := sha256.New()
	err := j.Play(endpoints, func(_ *sim.Entry, out *machine.Effects) {
		for _, t := range out.Transmit {
			p.Sent++
			sum.Write(t.Bytes) // a hash never fails
		}
	})
	want, bad := hex.DecodeString(j.Note[noteSent])
	p.Finished = bad == nil && len(want) == sha256.Size && j.Note[noteSent] != unfinished
	if errors.As(err, &p.Differs) {
		return p, nil
	}
	if err == nil && p.Finished && j.Cut {
		err = fmt.Errorf("journal line %d: expected its last line, found the end of the file: it was cut short",
			len(j.Entries)+2)
	}
	p.Compared = err == nil && j.Digests
	p.Same = p.Finished && bytes.Equal(want, sum.Sum(nil))
	return p, err
}
