package riptide

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// found is the place of a typing's part in one payload.
type found struct {
	part Part
	bit  int // of its length
	n    int
}

// locate applies a typing to a payload.
func locate(t *Typing, r wire.Reader) (out []found) {
	for _, p := range t.Parts {
		at := r.Pos()
		n, ok := p.skip(&r)
		if !ok {
			return nil
		}
		out = append(out, found{p, at, n})
	}
	return out
}

// TestGuess compares the first-ranked typings with the logs' types, for every capture and every id
// seen at least ten times.
func TestGuess(t *testing.T) {
	testenv.Grid(t, "guesses over every payload of all captures")
	strings_, stringsRight, arrays, arraysRight := 0, 0, 0, 0
	misses := map[string]int{}
	for _, path := range captures(t, riptideRuns...) {
		if runOf(path) == "u210_rwrap" || strings.Contains(path, ".server.") { // usually the same messages
			continue
		}
		tr := truthOf(t, path)
		flows := flowsOf(t, path)
		var g Guesser
		type kept struct {
			r wire.Reader
			k guessKey
		}
		var all []kept
		for _, f := range flows {
			s := classify(f.datagrams).Config.Profile.(*Settings)
			for i := range f.datagrams {
				d := &f.datagrams[i]
				codec := s.Senders[d.From].Codec
				var m wire.Message
				if codec.Parse(d.Bytes, d.Length, &m) == nil && m.Type.User() {
					g.Add(codec, &m, d.Bytes)
					all = append(all,
						kept{codec.Values(d.Bytes, &m), guessKey{codec.Dialect, false, m.Type == wire.Notify, m.MessageID}})
				}
			}
		}
		guesses := map[guessKey]Guess{}
		for _, guess := range g.Guesses() {
			d, _ := wire.Lookup(guess.Dialect)
			guesses[guessKey{d, false, guess.Notify, guess.MessageID}] = guess
		}
		// No typing fails on any payload of its id.
		for _, k := range all {
			guess := guesses[k.k]
			for _, typing := range guess.Typings {
				if !typing.Fits(k.r) {
					t.Fatalf("%s id %d: %q does not fit a payload", filepath.Base(path), k.k.id, typing.String())
				}
			}
			if guess.FixedBits >= 0 && (len(guess.Typings) > 0 || k.r.Left() != guess.FixedBits) {
				t.Fatalf("%s id %d: fixed at %d bits, %d here, %v", filepath.Base(path), k.k.id, guess.FixedBits, k.r.Left(),
					guess.Typings)
			}
		}
		pairs, _, _ := pairSends(t, path, flows, tr)
		for _, p := range pairs {
			guess := guesses[guessKey{p.codec.Dialect, false, p.m.Type == wire.Notify, p.m.MessageID}]
			version := tr.version[p.line.Endpoint]
			if guess.Payloads < 10 || guess.FixedBits >= 0 {
				continue
			}
			var where []found
			if len(guess.Typings) > 0 {
				where = locate(&guess.Typings[0], p.codec.Values(p.b, &p.m))
			}
			r := p.codec.Values(p.b, &p.m)
			for i := range p.line.Values {
				v := &p.line.Values[i]
				if strings.HasPrefix(version, "2.1.") && (v.Type == "short[]" || v.Type == "ushort[]") ||
					version == "pytide-2.1.0-alpha" && v.Type == "bool[]" {
					break
				}
				at := r.Pos()
				if _, err := readValue(&r, v, counted(p.line), elements(v)); err != nil {
					t.Fatal(err)
				}
				want, n, isArray := wanted(v, counted(p.line))
				if want.Kind == PartFixed || n == 0 {
					continue
				}
				right := false
				for _, w := range where {
					right = right || w.part == want && w.bit == at && w.n == n
				}
				if isArray {
					arrays++
					if right {
						arraysRight++
					}
				} else {
					strings_++
					if right {
						stringsRight++
					}
				}
				if !right {
					first := "none"
					if len(guess.Typings) > 0 {
						first = guess.Typings[0].String()
					}
					misses[fmt.Sprintf("%s id %d notify %v, %d payloads: %s guessed as %q", runOf(path), p.m.MessageID, guess.Notify,
						guess.Payloads, v.Type, first)]++
				}
			}
		}
	}
	t.Logf("strings %d of %d, counted arrays %d of %d", stringsRight, strings_, arraysRight, arrays)
	for miss, n := range misses {
		t.Logf("%d: %s", n, miss)
	}
	if strings_ < 1000 || stringsRight*10 < strings_*9 {
		t.Errorf("%d of %d non-empty strings are right in the first typing, want 90%%", stringsRight, strings_)
	}
	if arrays < 1000 || arraysRight*2 < arrays {
		t.Errorf("%d of %d counted arrays are right in the first typing, want half", arraysRight, arrays)
	}
}

// wanted returns the part for a value of the log, and its number of elements or bytes.
func wanted(v *truthValue, counted bool) (p Part, n int, isArray bool) {
	element, array := strings.CutSuffix(v.Type, "[]")
	switch {
	case array && !counted:
		return Part{}, 0, false
	case element == "string" && array:
		return Part{Kind: PartTexts}, elements(v), true
	case element == "string":
		var s string
		_ = json.Unmarshal(v.Value, &s)
		return Part{Kind: PartText}, len(s), false
	case !array:
		return Part{}, 0, false
	case element == "bool":
		return Part{Kind: PartBools}, elements(v), true
	}
	width := map[string]int{
		"byte": 8, "sbyte": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32, "float": 32,
		"long": 64, "ulong": 64, "double": 64, "vec2": 64,
	}[element]
	return Part{Kind: PartArray, Bits: width}, elements(v), true
}
