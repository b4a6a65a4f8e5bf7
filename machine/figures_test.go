package machine

import (
	"math/rand"
	"reflect"
	"testing"
)

// fill sets every field below v, also the unexported ones of this package, to a value of its own
// that is not zero. So a field that packing forgets shows.
func fill(v reflect.Value, rnd *rand.Rand) {
	v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), rnd)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), rnd)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(rnd.NormFloat64() + 10)
	case reflect.String:
		v.SetString("reason")
	case reflect.Interface:
		v.Set(reflect.ValueOf("settings"))
	case reflect.Int, reflect.Int64:
		v.SetInt(-1 - rnd.Int63())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rnd.Uint64()>>(64-v.Type().Bits()) | 1)
	default:
		panic(v.Kind())
	}
}

// sparse clears most buckets of the distributions, as in a short flow.
func sparse(f *Figures, rnd *rand.Rand) {
	for i := range f.Sides {
		for j := range f.Sides[i].Trips.spread {
			if rnd.Intn(10) > 0 {
				f.Sides[i].Trips.spread[j] = 0
			}
		}
	}
}

func TestPackedFigures(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	var scratch []byte
	check := func(f Figures) {
		t.Helper()
		p := f.Pack(&scratch)
		got := Figures{Sides: [2]Summary{p.Summary(A), p.Summary(B)}, Facts: p.Facts()}
		if !reflect.DeepEqual(got, f) {
			t.Fatalf("got\n%+v, expected\n%+v", got, f)
		}
		if p.Unpack(&got); !reflect.DeepEqual(got, f) {
			t.Fatalf("unpacked at once: got\n%+v, expected\n%+v", got, f)
		}
	}
	check(Figures{})
	for range 1000 {
		var f Figures
		fill(reflect.ValueOf(&f).Elem(), rnd)
		check(f)
		sparse(&f, rnd)
		check(f)
		f.Facts.Liar[1], f.Sides[0].NeverAcked, f.Sides[1].Loss = false, -1, 0
		check(f)
	}
}
