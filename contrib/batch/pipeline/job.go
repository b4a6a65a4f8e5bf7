package pipeline

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/contrib/batch/place"
)

// Job is what a pipeline does. Its steps carry it to the workers, which may be on other machines.
type Job struct {
	Folder  string   // the output
	Plan    string   // the name of the file with the captures, below the output; of a search, with a Selected
	Search  *Search  // nil if the plan has the captures
	Columns []string // of the manifest, other than capture
	Parts   int      // of each table and partition, at most
	Flags   []string // of the processes that analyse
	Unread  bool     // a capture whose bytes do not come is named, and does not fail the job
	Threads int      // such processes in each worker; 0 for as many as it has cores
	Build   string   // of the program
}

func (j *Job) output() place.Output { return place.Output{Folder: j.Folder} }

// chunkCaptures is how many captures one element of the pipeline has. A worker analyses them with
// all of its processes.
// Source: definition, enough to keep the processes of a large machine busy
const chunkCaptures = 64

// WritePlan writes the captures for the pipeline, and returns the name of the file. A plan of a million captures is too
// large for a message to the engine. The name is a hash of the content, so another run does not
// change the plan of this one.
func WritePlan(ctx context.Context, o place.Output, captures []batch.Capture) (string, error) {
	return o.Write(ctx, func(w io.Writer) (string, error) {
		sum := sha256.New()
		packed := gzip.NewWriter(w)
		to := json.NewEncoder(io.MultiWriter(packed, sum))
		if err := eachChunk(captures, func(chunk []batch.Capture) error { return to.Encode(chunk) }); err != nil {
			return "", err
		}
		return planOf(sum), packed.Close()
	})
}

// eachChunk passes captures in chunks.
func eachChunk(captures []batch.Capture, pass func([]batch.Capture) error) error {
	for chunk := range slices.Chunk(captures, chunkCaptures) {
		if err := pass(chunk); err != nil {
			return err
		}
	}
	return nil
}

// NewSelectedName returns a name for the Selected of a search, which no other run has.
func NewSelectedName() string { return planName(strings.ToLower(rand.Text()) + ".json") }

// planOf returns the name of a plan by the sum of its content.
func planOf(sum hash.Hash) string {
	return planName(hex.EncodeToString(sum.Sum(nil)[:16]) + ".json.gz")
}

func planName(end string) string { return place.WorkFolder + "/plan-" + end }

// mostChunk bounds a line of the plan.
// Source: bound, memory; rows of a few thousand rotated files with paths of 4 kB
const mostChunk = 64 << 20

// readPlan passes the lines of a plan.
func readPlan(ctx context.Context, o place.Output, name string, line func([]byte)) error {
	r, _, err := place.Open(ctx, o.At(name))
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was read
	packed, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.New()
	lines := bufio.NewScanner(io.TeeReader(packed, sum))
	lines.Buffer(nil, mostChunk)
	for lines.Scan() {
		line(append([]byte(nil), lines.Bytes()...))
	}
	err = lines.Err()
	if err == nil && planOf(sum) != name {
		err = errors.New("is not the plan of this run")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
