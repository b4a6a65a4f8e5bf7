package replay

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/ackscope/ackscope/printable"
)

// Case is one capture in a JUnit report.
type Case struct {
	File     *File // nil where the capture is gone
	Name     string
	Baseline bool    // there is one to compare with
	Drift    []Drift // how the capture differs from its baseline
	Err      error   // why the capture could not be replayed
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes a report that continuous integration systems read: a suite for each capture,
// a case for each flow and side.
func WriteJUnit(to io.Writer, cases []Case) error {
	all := junitSuites{}
	for i := range cases {
		s := cases[i].suite()
		all.Suites = append(all.Suites, s)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
	}
	if _, err := io.WriteString(to, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(to)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(to, "\n")
	return err
}

func (c *Case) suite() junitSuite {
	s := junitSuite{Name: printable.String(c.Name)}
	add := func(x junitCase) {
		x.Name, x.Class = printable.String(x.Name), s.Name
		for _, m := range []*junitMessage{x.Failure, x.Error, x.Skipped} {
			if m != nil {
				m.Message = printable.String(m.Message)
			}
		}
		s.Tests++
		switch {
		case x.Failure != nil:
			s.Failures++
		case x.Error != nil:
			s.Errors++
		case x.Skipped != nil:
			s.Skipped++
		}
		s.Cases = append(s.Cases, x)
	}
	if c.Err != nil {
		add(junitCase{Name: "replay", Error: &junitMessage{c.Err.Error(), "error", ""}})
		return s
	}
	if c.File == nil {
		c.File = &File{} // of a baseline without a capture
	}
	for i := range c.File.Results {
		r := &c.File.Results[i]
		if !r.Expected {
			continue // of a matrix: not to be of a behaviour is no failure
		}
		x := junitCase{Name: fmt.Sprintf("flow %d side %s as %s", r.Flow.ID, r.Side, r.Behaviour)}
		if d := r.Divergence; d != nil {
			x.Failure = &junitMessage{
				fmt.Sprintf("frame %d: %s: %s expected %s, got %s", d.Ref.Frame(), d.Rule, d.Field, d.Expected, d.Got), d.Rule.ID,
				printable.String(fmt.Sprintf("%s: %s", r.Addr(), d.Because)),
			}
		}
		add(x)
	}
	for _, k := range c.File.Skipped {
		add(junitCase{Name: fmt.Sprintf("flow %d", k.Flow.ID), Skipped: &junitMessage{k.Reason, "", ""}})
	}
	// One case, whatever differs: reports are compared by the names of their cases.
	if c.Baseline {
		x := junitCase{Name: "baseline"}
		if len(c.Drift) > 0 {
			x.Failure = &junitMessage{"differs from the baseline", "drift", DriftText(c.Drift)}
		}
		add(x)
	}
	return s
}

// DriftText formats drifts as lines: first in words, then as a diff.
func DriftText(list []Drift) string {
	var w strings.Builder
	for _, d := range list {
		fmt.Fprintf(&w, "%s: %s\n", printable.String(d.Flow), printable.String(d.Says))
		if d.Was != "" {
			fmt.Fprintf(&w, "- %s\n", printable.String(d.Was))
		}
		if d.Is != "" {
			fmt.Fprintf(&w, "+ %s\n", printable.String(d.Is))
		}
	}
	return w.String()
}
