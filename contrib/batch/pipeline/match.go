package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/contrib/batch/place"
)

// Search is a selection of captures whose patterns and folders the workers search. All of it lies in
// stores, so that it means the same on each machine.
type Search struct {
	Arguments []string
	Manifest  string
	Sum       string // of the manifest's bytes
	Partition []string
	Apart     bool
	Columns   []string // of the manifest, other than capture
	Addresses []string // patterns and folders, and arguments that may be folders
}

// mostSearch is how many bytes of addresses a search has at most. Beyond it, the caller makes the plan.
// Source: bound, the size of a job, which each of its steps carries
const mostSearch = 256 << 10

// NewSearch reads the manifest of a selection, so that a wrong one fails at once. It returns the search
// that is left to the workers, or nil if the caller makes the plan.
func NewSearch(s batch.Selection) (*Search, error) {
	if !batch.IsAddress(s.Manifest) && s.Manifest != "" {
		return nil, nil //nolint:nilnil // nil says that nothing is left to the workers
	}
	for _, argument := range s.Arguments {
		if !batch.IsAddress(argument) || !utf8.ValidString(argument) { // a job is JSON
			return nil, nil //nolint:nilnil // the same
		}
	}
	from := &noted{}
	s.Elsewhere = from
	plan, err := batch.NewPlan(s)
	if err != nil {
		return nil, err
	}
	here := func(c batch.Capture) bool { return !batch.IsAddress(c.Files[0].Path) } // a manifest may name paths
	size := 0
	for _, address := range slices.Concat(s.Arguments, from.addresses) {
		size += len(address)
	}
	if len(from.addresses) == 0 || size > mostSearch || slices.ContainsFunc(plan.Captures, here) {
		return nil, nil //nolint:nilnil // the same
	}
	return &Search{
		s.Arguments, s.Manifest, from.sum, s.Partition, s.Apart, plan.Columns, from.addresses,
	}, plan.CheckPartitions()
}

// noted notes what is to be searched.
type noted struct {
	addresses []string
	sum       string
}

// Find implements batch.Elsewhere.
func (n *noted) Find(address string) ([]string, error) {
	n.addresses = append(n.addresses, address)
	return nil, nil
}

// Open implements batch.Elsewhere. Only the manifest is opened.
func (n *noted) Open(address string) (file *os.File, err error) {
	file, n.sum, err = opened(address)
	return file, err
}

// opened returns a copy of a file of a store, and the sum of its bytes.
func opened(address string) (*os.File, string, error) {
	file, err := place.Stores{}.Open(address)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.New()
	if _, err = io.Copy(sum, file); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, "", errors.Join(err, file.Close())
	}
	return file, hex.EncodeToString(sum.Sum(nil)), nil
}

// Match is a part of what was found by an address. Texts are bytes, as engines may take a string for
// UTF-8.
type Match struct {
	Address []byte
	Number  int    // of the part
	Found   []byte // a list of addresses in JSON, each as bytes
	Error   []byte
}

// matchMost is how many addresses a part of a match has.
// Source: bound, the size of a message to the engine, with names of 1 kB
const matchMost = 1000

// searchFn passes the addresses to search.
type searchFn struct{ Job Job }

// ProcessElement is called by Beam.
func (f *searchFn) ProcessElement(_ context.Context, _ []byte, emit func([]byte)) error {
	for _, address := range f.Job.Search.Addresses {
		emit([]byte(address))
	}
	return nil
}

// matchFn searches a store. Beam's own match opens the store anew for each pattern, asks it twice about
// each file, knows no folders, and takes names for URLs.
type matchFn struct{}

// ProcessElement is called by Beam.
func (*matchFn) ProcessElement(_ context.Context, address []byte, emit func(Match)) error {
	found, err := place.Stores{}.Find(string(address))
	m := Match{Address: address}
	if err != nil {
		m.Error = []byte(err.Error())
	}
	for part := range slices.Chunk(found, matchMost) {
		var list [][]byte
		for _, one := range part {
			list = append(list, []byte(one))
		}
		if m.Found, err = json.Marshal(list); err != nil {
			return err
		}
		emit(m)
		m.Number++
	}
	if len(found) == 0 {
		emit(m)
	}
	return nil
}

// planFn makes the plan of all that was found, and passes its chunks.
type planFn struct{ Job Job }

// ProcessElement is called by Beam, once.
func (f *planFn) ProcessElement(ctx context.Context, _ int, matches func(*Match) bool, emit func([]byte)) error {
	s := f.Job.Search
	from := &matched{sum: s.Sum, byAddress: map[string][]Match{}}
	for {
		var m Match // Beam's coder may keep what the last one had
		if !matches(&m) {
			break
		}
		from.byAddress[string(m.Address)] = append(from.byAddress[string(m.Address)], m)
	}
	plan, err := batch.NewPlan(batch.Selection{
		Arguments: s.Arguments, Manifest: s.Manifest, Partition: s.Partition, Apart: s.Apart, Elsewhere: from,
	})
	if err != nil {
		return err
	}
	if len(plan.Captures) == 0 {
		return errors.Join(append(plan.Failed, ErrNone)...)
	}
	if err := plan.CheckPartitions(); err != nil {
		return err
	}
	_, err = f.Job.output().Write(ctx, func(w io.Writer) (string, error) {
		return f.Job.Plan, json.NewEncoder(w).Encode(NewSelected(plan))
	})
	if err != nil {
		return err
	}
	return eachChunk(plan.Captures, func(chunk []batch.Capture) error {
		b, err := json.Marshal(chunk)
		if err == nil {
			emit(b)
		}
		return err
	})
}

// ErrNone says that a selection has no capture.
var ErrNone = errors.New("no capture was found")

// matched is what was found in stores.
type matched struct {
	sum       string
	byAddress map[string][]Match
}

// Find implements batch.Elsewhere.
func (m *matched) Find(address string) (found []string, err error) {
	parts := m.byAddress[address]
	slices.SortFunc(parts, func(x, y Match) int { return x.Number - y.Number })
	if len(parts) == 0 {
		return nil, fmt.Errorf("%s: was not searched", address)
	}
	for i := range parts {
		if len(parts[i].Error) > 0 {
			return nil, errors.New(string(parts[i].Error))
		}
		var list [][]byte
		if len(parts[i].Found) == 0 { // nothing was found, and no error
			continue
		}
		if err := json.Unmarshal(parts[i].Found, &list); err != nil {
			return nil, err
		}
		for _, one := range list {
			found = append(found, string(one))
		}
	}
	return found, nil
}

// Open implements batch.Elsewhere.
func (m *matched) Open(address string) (*os.File, error) {
	file, sum, err := opened(address)
	if err == nil && sum != m.sum {
		return nil, errors.Join(fmt.Errorf("%s: changed while the job began", address), file.Close())
	}
	return file, err
}

// Selected is what a plan came to.
type Selected struct {
	Captures int
	Failed   []string // why arguments name no capture
}

// NewSelected returns it of a plan.
func NewSelected(p *batch.Plan) Selected {
	s := Selected{Captures: len(p.Captures)}
	for _, err := range p.Failed {
		s.Failed = append(s.Failed, err.Error())
	}
	return s
}

// mostSelected bounds what is read of it.
// Source: bound, memory; texts of a few hundred thousand arguments
const mostSelected = 64 << 20

// ReadSelected reads what planFn wrote.
func (j *Job) ReadSelected(ctx context.Context) (s Selected, err error) {
	b, err := place.Read(ctx, j.output().At(j.Plan), mostSelected)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(b, &s)
}
