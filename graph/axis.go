package graph

import (
	"math"
	"strconv"
	"time"
)

// Ticks returns round values in [low, high]. Their number is about the given
// one.
func Ticks(low, high float64, about int) []float64 {
	step := tickStep(low, high, about)
	if step == 0 {
		return nil
	}
	var out []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9 && len(out) < 4*about+4; i++ {
		out = append(out, i*step+0)
	}
	return out
}

// tickStep returns a round distance between ticks: 1, 2 or 5 times a power of ten. It is 0 if
// there is no range to divide.
func tickStep(low, high float64, about int) float64 {
	if !(high > low) || about < 1 || math.IsInf(high-low, 0) {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(about))))
	for _, m := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*m) <= float64(about)*(1+1e-9) {
			step *= m
			break
		}
	}
	if !(step > 0) {
		return 0
	}
	return step
}

// Axis returns the ends of an axis that encloses its data. They are the last tick at or below low
// and the first at or above high. The distance between ticks is step, whole for whole numbers. It is
// 0 if there is no range to divide.
func Axis(low, high float64, about int, whole bool) (from, to, step float64) {
	step = tickStep(low, high, about)
	if whole {
		step = math.Ceil(step)
	}
	from, to = math.Floor(low/step+1e-9)*step+0, math.Ceil(high/step-1e-9)*step+0
	if !(step > 0 && to > from) || math.IsInf(to-from, 0) {
		return low, high, 0
	}
	return from, to, step
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

// ticks returns the round values of a plot's axis, both ends included. If that is more than most,
// it leaves out every second value between them, or more.
func (p *Plot) ticks(most int) []float64 {
	count := 1
	if p.Step > 0 {
		count = int(math.Round((p.High - p.Low) / p.Step))
	}
	every := 1
	for count/every > max(most, 1) {
		every++
	}
	var out []float64
	for i := 0; i < count; i += every {
		out = append(out, p.Low+float64(i)*(p.High-p.Low)/float64(count))
	}
	return append(out, p.High)
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
