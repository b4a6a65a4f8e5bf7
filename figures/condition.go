package figures

import (
	"fmt"
	"slices"
	"strings"
)

// Truth is what a condition is, as far as the figures are known.
type Truth uint8

const (
	Unknown Truth = iota // a figure that decides is not known
	False
	True
)

// Source returns the values that a condition is evaluated by.
type Source interface {
	// Value returns a figure.
	Value(f Figure) Value
	// Change returns how much a figure changed, in its unit, or as a share of what it was.
	Change(f Figure, relative bool) Value
}

// Condition is a parsed expression.
type Condition struct {
	text string
	root node
}

// String returns the expression as it was written.
func (c *Condition) String() string { return c.text }

// Term is one comparison of a condition.
type Term struct {
	Figure   Figure
	Op       string  // > >= < <= == !=
	Limit    float64 // in the figure's unit
	Change   bool    // it is about the change from one capture to the other
	Relative bool    // Limit is a share of the earlier value
}

// Result is the truth of a condition, with the comparisons that made it so and their
// values.
type Result struct {
	Truth  Truth
	Terms  []*Term
	Values []Value
}

// Evaluate evaluates the condition over what a source knows.
func (c *Condition) Evaluate(s Source) Result { return c.root.evaluate(s) }

// Figures returns the figures that the condition names, each once.
func (c *Condition) Figures() (list []Figure) {
	c.root.terms(func(t *Term) {
		if !slices.Contains(list, t.Figure) {
			list = append(list, t.Figure)
		}
	})
	return list
}

// NeedsMessages reports whether a Collector must see the records of the flows.
func (c *Condition) NeedsMessages() bool {
	return slices.ContainsFunc(c.Figures(), func(f Figure) bool { return f >= Arrival50 && f <= HOL })
}

type node interface {
	evaluate(s Source) Result
	terms(take func(*Term))
}

type both struct{ x, y node }

func (n both) evaluate(s Source) Result {
	x, y := n.x.evaluate(s), n.y.evaluate(s)
	switch {
	case x.Truth == False:
		return x
	case y.Truth == False:
		return y
	case x.Truth == Unknown:
		return x
	case y.Truth == Unknown:
		return y
	}
	return Result{True, append(x.Terms, y.Terms...), append(x.Values, y.Values...)}
}

func (n both) terms(take func(*Term)) { n.x.terms(take); n.y.terms(take) }

type either struct{ x, y node }

func (n either) evaluate(s Source) Result {
	x, y := n.x.evaluate(s), n.y.evaluate(s)
	switch {
	case x.Truth == True:
		return x
	case y.Truth == True:
		return y
	case x.Truth == Unknown:
		return x
	}
	return y
}

func (n either) terms(take func(*Term)) { n.x.terms(take); n.y.terms(take) }

type negated struct{ of node }

func (n negated) evaluate(s Source) Result {
	j := n.of.evaluate(s)
	j.Truth = [...]Truth{Unknown: Unknown, False: True, True: False}[j.Truth]
	return j
}

func (n negated) terms(take func(*Term)) { n.of.terms(take) }

func (t *Term) evaluate(s Source) Result {
	v := s.Value(t.Figure)
	if t.Change {
		v = s.Change(t.Figure, t.Relative)
	}
	return Result{t.truth(v), []*Term{t}, []Value{v}}
}

func (t *Term) terms(take func(*Term)) { take(t) }

// truth compares a value with the limit. It is unknown where the bounds lie on both sides
// of the limit.
func (t *Term) truth(v Value) Truth {
	if !v.Known {
		return Unknown
	}
	least, most := compare(v.Least, t.Op, t.Limit), compare(v.Most, t.Op, t.Limit)
	exact := v.Least == v.Most
	switch {
	case !exact && (t.Op == "==" || t.Op == "!=") && v.Least <= t.Limit && t.Limit <= v.Most, least != most:
		return Unknown
	case least:
		return True
	}
	return False
}

func compare(v float64, op string, limit float64) bool {
	switch op {
	case ">":
		return v > limit
	case ">=":
		return v >= limit
	case "<":
		return v < limit
	case "<=":
		return v <= limit
	case "==":
		return v == limit
	}
	return v != limit
}

// Say formats the values of a judgement: "loss A→B is 7.3%". way says whose figures they
// are.
func (j *Result) Say(way string) string {
	var parts []string
	for i, t := range j.Terms {
		unit := t.Figure.Spec().Unit
		what, value := t.Figure.String()+way+" is ", unit.Text(j.Values[i])
		if unit == Count {
			what = t.Figure.String() + way + " are "
		}
		switch {
		case t.Figure == Worse && j.Values[i].Known:
			if what, value = value+" figures are worse", way; j.Values[i].Least == 1 {
				what = "1 figure is worse"
			}
		case t.Change && j.Values[i].Known:
			what, value = t.Figure.String()+way+" changed by ", unit.Change(j.Values[i].Least)
			switch v := j.Values[i]; {
			case t.Relative && v.Least != v.Most:
				value = Percent(v.Least) + " to " + Percent(v.Most)
			case t.Relative:
				value = Percent(v.Least)
			case v.Least != v.Most:
				value = unit.Bounds(v.Least, v.Most)
			}
		case t.Change:
			what = "the change of " + t.Figure.String() + way + " is "
		}
		if !j.Values[i].Known {
			value = "unknown"
		}
		parts = append(parts, what+value)
	}
	return strings.Join(parts, ", and ")
}

// Percent formats a relative change: "+12%".
func Percent(v float64) string {
	return fmt.Sprintf("%+.0f%%", 100*v)
}
