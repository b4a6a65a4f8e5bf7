package graph

import (
	"math"
	"strconv"
	"time"
)

// Ticks returns round values in [low, high]. Their number is about the given
// one.
func Ticks(low, high float64, about int) []float64 {
	if !(high > low) || about < 1 || math.IsInf(high-low, 0) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(about))))
	for _, m := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*m) <= float64(about) {
			step *= m
			break
		}
	}
	if !(step > 0) {
		return nil
	}
	var out []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9 && len(out) < 4*about+4; i++ {
		out = append(out, i*step+0)
	}
	return out
}

// Number formats a value for an axis: "12k", "0.25".
func Number(v float64) string {
	v += 0 // no -0
	for _, x := range []struct {
		scale float64
		unit  string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if math.Abs(v) >= x.scale {
			scale := x.scale
			if x.unit == "k" {
				scale = 1e3
			}
			return strconv.FormatFloat(math.Round(v/scale*10)/10, 'f', -1, 64) + x.unit
		}
	}
	digits := 2
	if math.Abs(v) < 0.1 {
		digits = 4
	}
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
}

// ticks returns the round values of a plot's axis.
func (p *Plot) ticks(about int) []float64 {
	if p.Whole {
		about = max(1, min(about, int(p.High-p.Low)))
	}
	return Ticks(p.Low, p.High, about)
}

// value formats a value of a plot.
func (p *Plot) value(v float64) string {
	if p.Unit == "%" {
		return Number(100*v) + "%"
	}
	return Number(v)
}

// Length formats a length of time with about three digits.
func Length(d time.Duration) string {
	switch {
	case d >= time.Second:
		return Number(d.Seconds()) + " s"
	case d >= time.Millisecond:
		return Number(float64(d)/1e6) + " ms"
	}
	return Number(float64(d)/1e3) + " µs"
}
