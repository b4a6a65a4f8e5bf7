package main

import (
	"regexp"
	"strings"
)

// Limits of text that people read.
const (
	mostWords   = 25  // in a sentence
	mostColumns = 100 // of a line of a document; tables, console blocks and links are exempt
	mostGo      = 120 // of a line of Go; raw strings are exempt
)

// generated are the documents that the program's own strings are printed into.
// Their sentences are output: golden tests hold them.
var generated = []string{
	"docs/divergences.md", "docs/fields.md", "docs/findings.md", "docs/profiles.md", "docs/tables.md",
	"docs/thresholds.md",
}

// A term is a word that the glossary forbids, or allows in some folders only.
type term struct {
	word   *regexp.Regexp
	within []string // folders that may use it; empty for none
	say    string   // what to say instead
}

// judging are the folders that hold a capture against a reference.
var judging = []string{
	"replay", "cli", "machine/judge", "machine/endpoint.go", "machine/gaffer/judge", "machine/riptide/judge",
	"machine/srdp/judge", "machine/gaffer/article", "dissect", "internal", "tui", "lab", "docs", "README.md",
	"ARCHITECTURE.md", "testdata", "report",
}

// terms give each word one meaning. Names of Go are split at capitals first, so
// "judgeVantage" counts as "judge Vantage".
var terms = []term{
	{
		word: whole(`judge[sd]?|judging`), within: judging,
		say: "for replay only: a vantage places the tap, a state classifies, a tracker checks",
	},
	{word: whole(`understud(y|ies)`), say: "size-only endpoint"},
	{word: whole(`couriers?|parcels?|errands?`), say: "what carried a message"},
	{word: whole(`theatres?`), say: "run"},
	{word: whole(`twins?`), say: "copies at the tap"},
	{word: whole(`forgiv(e|es|en|ing)`), say: "lossy capture"},
	{word: whole(`sieves?|hunts?|hunting`), say: "filter job; run until"},
	{word: whole(`mortuary|guises?`), say: "what it holds"},
	{word: whole(`nobody`), say: "no one by name: say who does what"},
	{word: regexp.MustCompile(`(?i)\btakes? it that\b`), say: "assumes, or records"},
	{word: regexp.MustCompile(`(?i)\bheld against nobody\b`), say: "ignores"},
	{
		word: regexp.MustCompile(`(?i)\b(contract file|section \d+\.\d+|ring \d of the house|of the house)\b`),
		say:  "a reference that a reader can follow",
	},
}

func whole(word string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + word + `)\b`) }

// allows reports whether a file may use a term.
func (t *term) allows(name string) bool {
	for _, folder := range t.within {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return strings.HasPrefix(name, "internal/prose/")
}
