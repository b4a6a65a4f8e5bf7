package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/contrib/batch/place"
	"github.com/ackscope/ackscope/unit"
)

// TestPlan reads a plan back. A plan that was changed is refused.
func TestPlan(t *testing.T) {
	o := place.Output{Folder: t.TempDir()}
	var want []batch.Capture
	for i := range 3*chunkCaptures + 1 {
		want = append(want, batch.Capture{
			Name: fmt.Sprintf("%d \n\"", i), Files: []batch.File{{Name: "n", Path: "p"}},
			Labels: []unit.Label{{Name: "build", Value: "1", Carried: i%2 == 0}},
		})
	}
	name, err := WritePlan(t.Context(), o, want)
	if err != nil {
		t.Fatal(err)
	}
	chunks, got := 0, []batch.Capture(nil)
	err = readPlan(t.Context(), o, name, func(line []byte) {
		var some []batch.Capture
		if err := json.Unmarshal(line, &some); err != nil {
			t.Fatal(err)
		}
		chunks++
		got = append(got, some...)
	})
	if err != nil || chunks != 4 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%d chunks with %d captures, %v", chunks, len(got), err)
	}
	other, err := WritePlan(t.Context(), o, want[1:])
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(o.At(other))
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string][]byte{"another plan": b, "a torn one": b[:len(b)/2], "text": []byte("[]\n")} {
		if err := os.WriteFile(o.At(name), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readPlan(t.Context(), o, name, func([]byte) {}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestPartKey reads keys back, and refuses others.
func TestPartKey(t *testing.T) {
	for _, k := range []partKey{{0, 0, "."}, {1, 1023, "build=a%20b/region=__HIVE_DEFAULT_PARTITION__"}} {
		if got, err := parsePartKey(k.String()); err != nil || got != k {
			t.Errorf("%v: %v, %v", k, got, err)
		}
	}
	for _, text := range []string{"", "0", "x 0 .", "0 x .", "2 0 .", "-1 0 ."} {
		if k, err := parsePartKey(text); err == nil {
			t.Errorf("%q: %v", text, k)
		}
	}
}

// TestSorter passes values by name and number, whatever their order was.
func TestSorter(t *testing.T) {
	s, err := newSorter()
	if err != nil {
		t.Fatal(err)
	}
	const names, numbers = 50, 3
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(names * numbers) {
		name, number := fmt.Sprintf("%02d", i/numbers), i%numbers
		if err := s.add(name, number, bytes.Repeat([]byte{byte(i)}, i)); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	err = s.each(func(name string, value []byte) error {
		if name != fmt.Sprintf("%02d", i/numbers) || !slices.Equal(value, bytes.Repeat([]byte{byte(i)}, i)) {
			t.Errorf("value %d is %s %v", i, name, value)
		}
		i++
		return nil
	})
	if s.close(&err); err != nil || i != names*numbers {
		t.Errorf("%d values, %v", i, err)
	}
}

// TestOtherBuild: a worker of another build refuses the job, as its rows may have another form.
func TestOtherBuild(t *testing.T) {
	f := &analyzeFn{Job: Job{Build: "1.0"}}
	if err := f.Setup(); err == nil || !strings.Contains(err.Error(), "expected one build") {
		t.Errorf("it said %v", err)
	}
}

// TestSums: sums of captures are the same in any order, and through the coder.
func TestSums(t *testing.T) {
	var parts [][]byte
	for i := range 20 {
		var s batch.Summary
		status := unit.Status{State: unit.States()[i%3], Packets: uint64(i), Bytes: 7}
		s.Add(&batch.Capture{Labels: []unit.Label{{Name: "build", Value: fmt.Sprint(i % 4)}}}, &status, &unit.Aggregates{})
		b, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, b)
	}
	f, want := &sumFn{}, ""
	for round := range 5 {
		list := []tally{f.CreateAccumulator(), f.CreateAccumulator(), f.CreateAccumulator()}
		for i, at := range rand.New(rand.NewPCG(3, uint64(round))).Perm(len(parts)) {
			var err error
			if list[i%3], err = f.AddInput(list[i%3], parts[at]); err != nil {
				t.Fatal(err)
			}
		}
		b, err := encodeTally(list[1])
		if err != nil {
			t.Fatal(err)
		}
		if list[1], err = decodeTally(b); err != nil {
			t.Fatal(err)
		}
		got, err := f.ExtractOutput(f.MergeAccumulators(list[2], f.MergeAccumulators(list[0], list[1])))
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(got)
		}
		if string(got) != want {
			t.Errorf("round %d gives other sums:\n%s\n%s", round, got, want)
		}
	}
	if !strings.Contains(want, "build=3") {
		t.Errorf("the sums are %s", want)
	}
}
