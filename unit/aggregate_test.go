package unit

import (
	"bytes"
	"fmt"
	"math"
	"math/rand"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"
)

// someAggregates returns aggregates with few keys, so that many share one, and with extreme counts.
func someAggregates(r *rand.Rand) *Aggregates {
	a := &Aggregates{}
	count := func() uint64 { return [...]uint64{0, 1, uint64(r.Intn(1000)), math.MaxUint64 - 5}[r.Intn(4)] }
	for range r.Intn(5) {
		p := MakePartition([]Label{{Name: "build", Value: fmt.Sprint(r.Intn(2))}})
		a.count(p, States()[r.Intn(6)], 1)
		x := a.at(Key{Partition: p, Protocol: "gaffer", Rule: []string{"", "stall"}[r.Intn(2)]})
		for _, n := range x.counts() {
			*n = count()
		}
		if r.Intn(3) > 0 {
			x.Example = Example{fmt.Sprint("c", r.Intn(3)), uint64(r.Intn(20))}
		}
		for range r.Intn(3) {
			x.RTT.addDuration(time.Duration(r.Int63n(int64(20 * time.Second))))
			x.Loss.addShare(r.Float64())
		}
	}
	return a
}

// group merges aggregates in a random order and grouping, and carries some of them as bytes.
func group(t *testing.T, r *rand.Rand, list []*Aggregates) *Aggregates {
	t.Helper()
	all := &Aggregates{}
	if len(list) <= 1 {
		for _, x := range list {
			all.Merge(x)
		}
		return all
	}
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	at := 1 + r.Intn(len(list)-1)
	all.Merge(group(t, r, list[:at]))
	all.Merge(group(t, r, list[at:]))
	if r.Intn(2) == 0 {
		b, err := all.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		back := &Aggregates{}
		if err := back.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		all = back
	}
	return all
}

// TestAggregatesMergeInAnyOrder: any order and grouping gives the same value.
func TestAggregatesMergeInAnyOrder(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		var list []*Aggregates
		for range r.Intn(12) {
			list = append(list, someAggregates(r))
		}
		want := group(t, r, list)
		for range 5 {
			got := group(t, r, list)
			x, _ := got.MarshalBinary()
			y, _ := want.MarshalBinary()
			if !bytes.Equal(x, y) || !reflect.DeepEqual(got.Keys(), want.Keys()) {
				t.Fatalf("seed %d: another order gives another value", seed)
			}
		}
	}
}

// TestMergeKeepsNothing: what is merged later does not change what was merged before.
func TestMergeKeepsNothing(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	one := someAggregates(r)
	for one.Len() == 0 {
		one = someAggregates(r)
	}
	before, _ := one.MarshalBinary()
	all := &Aggregates{}
	all.Merge(one)
	all.Merge(one)
	if after, _ := one.MarshalBinary(); !bytes.Equal(before, after) {
		t.Error("a merge changed what it added")
	}
}

// TestAggregatesAreThoseOfTheRows sums up two captures, and compares the counts with the rows.
func TestAggregatesAreThoseOfTheRows(t *testing.T) {
	total, findings := &Aggregates{}, uint64(0)
	for i, path := range []string{"plain-be-loss20-reorder.server.pcap.gz", "reliable-clean.client.pcap.gz"} {
		data, err := os.ReadFile("../testdata/pcaps/" + path)
		if err != nil {
			t.Fatal(err)
		}
		r := analyzeBytes(t, path, data, Options{Labels: []Label{
			{Name: "region", Value: "eu,=%"}, {Name: "id", Value: fmt.Sprint(i), Carried: true},
		}})
		total.Merge(r.Aggregates)
		findings += uint64(len(r.Findings))
	}
	p := total.Partitions()
	if len(p) != 1 || p[0].Value("region") != "eu,=%" || total.Captures(p[0], OK) != 2 || total.Analysed(p[0]) != 2 {
		t.Fatalf("partitions %v", p)
	}
	sum, trips, with := uint64(0), uint64(0), false
	for _, k := range total.Keys() {
		a := total.Get(k)
		sum, trips = sum+a.Findings, trips+a.RTT.Total()
		with = with || a.Captures == 1 && total.Without(k) == 1
		if a.Captures == 0 || a.Flows == 0 || a.Example.Frame == 0 {
			t.Errorf("%v: %+v", k, a)
		}
	}
	if sum != findings || sum == 0 || trips == 0 || !with {
		t.Errorf("%d findings in the aggregates, %d in the rows; %d round trips", sum, findings, trips)
	}
}

// TestBuckets: each bound is in its own bucket, and a little more is in the next.
func TestBuckets(t *testing.T) {
	for i := range Buckets - 1 {
		for _, c := range []struct {
			bounds *[Buckets]float64
			value  float64
			want   int
		}{
			{&durationBounds, durationBounds[i], i},
			{&durationBounds, durationBounds[i] * 1.01, i + 1},
			{&shareBounds, shareBounds[i], i},
			{&shareBounds, shareBounds[i]*1.01 + 1e-9, i + 1},
		} {
			var h Histogram
			if h.add(c.bounds, c.value); h[c.want] != 1 || h.Quantile(0.5) != c.want {
				t.Fatalf("%g: %v, expected bucket %d", c.value, h, c.want)
			}
		}
	}
	if ShareBound(Buckets-1) != 1 || DurationBound(0) != 0.25 {
		t.Error("the bounds have moved: histograms of two versions could not be added")
	}
}

// FuzzAggregates: no bytes make UnmarshalBinary panic, and what it reads gives the same bytes.
func FuzzAggregates(f *testing.F) {
	for seed := range int64(5) {
		b, _ := someAggregates(rand.New(rand.NewSource(seed))).MarshalBinary()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var a Aggregates
		if a.UnmarshalBinary(b) != nil {
			return
		}
		if again, _ := a.MarshalBinary(); !bytes.Equal(again, b) {
			t.Fatal("other bytes")
		}
		a.Merge(&a)
	})
}
