package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/internal/thresholds/constants"
)

// kindWords say of each kind what its table holds.
var kindWords = map[constants.Kind]string{
	constants.Measured:   "What is too soon, too late, too few or too far.",
	constants.Unmeasured: "No capture with a log and no simulated network reaches it, so its margin is unknown.",
	constants.Law:        "The text of the protocol has the number.",
	constants.Library:    "A library of the named version has it.",
	constants.Definition: "It says what the word of a finding means, and decides no other fact.",
	constants.Bound:      "It bounds memory or work, and decides no grade.",
	constants.Name:       "It is no quantity, but tells one thing from another.",
}

// introduction stands above the tables.
const introduction = `<!-- Written by go run ./internal/thresholds, from comments in machine/ and from margins.txt. -->

# Thresholds

A grade, a fact, a vantage or a finding can hang on a number: "a side that answers within 4 ms stands
at the tap". This page lists the numbers of the packages below ` + "`machine/`" + ` and what each rests on.
A constant says so in its comment:

` + "```go" + `
// Source: measured, TestMarginsRiptide
` + "```" + `

## How a margin is measured

` + "`make thresholds`" + ` builds the tests of ` + "`internal/truth`" + ` over sources in which each measured
constant is a variable. It scales one constant at a time, up and down. The factor 1.5 must hold. Then
5 is tried, and 3 and 2 until one holds. At each factor ackscope reads:

1. every recorded capture that has a log of its endpoints;
2. simulated networks: 10 to 128 frames a second, round trips of 1 to 400 ms, loss, jitter, duplicates
   and outages, with the tap at either end and between;
3. some of these that begin late, lack datagrams, or hold two connections on the same addresses;
4. simulated endpoints with each fault that ` + "`simulate --fault`" + ` knows;
5. for single constants, scenes of their own, such as a connection whose first packets the capture misses,
   or recorded runs of yojimbo read without their configuration.

A factor holds where three things are true:

- Nothing is certain that the logs deny, and nothing is missing that the tap at an endpoint proves.
- No endpoint that is right diverges for certain.
- Nine tenths of what was certain are certain still, and nine tenths of the faults are found.

The margin is the largest factor that held, in the worse direction. No factor above 5 is tried. A
margin below 1.5 fails a test. So does a constant whose value is not the one measured.

ackscope is wrong about a few scenes already. Only a new fault counts against a factor.
` + "`go run ./internal/thresholds -measure`" + ` lists these cases as it begins.
`

// table returns the text of docs/thresholds.md.
func table(tree *constants.Tree, margins map[string]margin) string {
	var b strings.Builder
	b.WriteString(introduction)
	count := map[constants.Kind]int{}
	for _, c := range tree.Constants {
		count[c.Kind]++
	}
	b.WriteString("\n| kind | constants |\n|---|---|\n")
	for _, k := range constants.Kinds {
		fmt.Fprintf(&b, "| %s | %d |\n", k, count[k])
	}
	for _, k := range constants.Kinds {
		title := strings.ToUpper(string(k[:1])) + string(k[1:])
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", title, kindWords[k])
		if k == constants.Measured {
			b.WriteString("| constant | value | where | margin | what sets it | measured by |\n|---|---|---|---|---|---|\n")
		} else {
			b.WriteString("| constant | value | where | source |\n|---|---|---|---|\n")
		}
		list := slices.DeleteFunc(slices.Clone(tree.Constants), func(c *constants.Constant) bool { return c.Kind != k })
		for _, c := range list {
			where := strings.TrimPrefix(c.File, "machine/")
			if k == constants.Measured {
				m := margins[c.Key()]
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", c.Name, display(c.Value), where, m.figure(), m.Why, c.Rests)
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, display(c.Value), where, c.Rests)
		}
	}
	return b.String()
}

var duration = regexp.MustCompile(`^(?:(\d+) \* )?time\.(Second|Millisecond|Microsecond|Nanosecond)$`)

// display returns a value as a reader has it: 4 ms.
func display(value string) string {
	if m := duration.FindStringSubmatch(value); m != nil {
		n := m[1]
		if n == "" {
			n = "1"
		}
		return n + " " + map[string]string{"Second": "s", "Millisecond": "ms", "Microsecond": "µs", "Nanosecond": "ns"}[m[2]]
	}
	return "`" + strings.ReplaceAll(value, "|", "\\|") + "`"
}
