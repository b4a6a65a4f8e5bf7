package tui

import (
	"strings"
	"unicode"
)

// Points of a fuzzy match. A letter at the beginning of a word says more than one inside it, and
// letters in a row say more than scattered ones.
// Source: src/algo/algo.go of fzf, scoreMatch and the constants below it
const (
	pointsMatch    = 16
	pointsBoundary = 8
	pointsRun      = 4
	pointsGap      = -3
	pointsLonger   = -1
)

// spread limits how far apart the letters of a part may be, for each letter. Letters that are farther
// apart come together by chance in any long text. The beginnings of words may be.
const spread = 2

// fuzzy reports how well a text matches a query, and at which runes of the text. The query is split
// at blanks. Each part must be in the text, in the order of its letters, whatever is between them.
// Both must be in lower case.
func fuzzy(query, text string) (points int, at []int, ok bool) {
	runes := []rune(text)
	for part := range strings.FieldsSeq(query) {
		n, where, found := fuzzyPart([]rune(part), runes)
		if !found {
			return 0, nil, false
		}
		points, at = points+n, append(at, where...)
	}
	return points, at, true
}

// fuzzyPart matches one part of a query. It takes the first place where the part ends, and from
// there the nearest beginning, so it takes time in proportion to the text.
func fuzzyPart(part, text []rune) (points int, at []int, ok bool) {
	next, end := 0, -1
	for i, r := range text {
		if r == part[next] {
			if next++; next == len(part) {
				end = i
				break
			}
		}
	}
	if end < 0 {
		return 0, nil, false
	}
	at = make([]int, len(part))
	for i, left := end, len(part)-1; left >= 0; i-- {
		if text[i] == part[left] {
			at[left] = i
			left--
		}
	}
	if whole := wordAt(part, text); whole >= 0 {
		for i := range at {
			at[i] = whole + i
		}
	}
	if at[len(at)-1]-at[0] > spread*len(part) && jumps(at, text) {
		return 0, nil, false
	}
	return rate(at, text), at, true
}

// wordAt returns where a word of the text begins with the part, or -1.
func wordAt(part, text []rune) int {
next:
	for i := 0; i+len(part) <= len(text); i++ {
		if !boundary(text, i) {
			continue
		}
		for j, r := range part {
			if text[i+j] != r {
				continue next
			}
		}
		return i
	}
	return -1
}

// rate rates the places of the letters of a part.
func rate(at []int, text []rune) (points int) {
	for i, x := range at {
		points += pointsMatch
		if boundary(text, x) {
			points += pointsBoundary
		}
		if i == 0 {
			continue
		}
		switch gap := x - at[i-1] - 1; gap {
		case 0:
			points += pointsRun
		default:
			points += pointsGap + pointsLonger*(gap-1)
		}
	}
	return points
}

// jumps reports whether a letter is neither behind the one before nor at the beginning of a word.
func jumps(at []int, text []rune) bool {
	for i := 1; i < len(at); i++ {
		if at[i] != at[i-1]+1 && !boundary(text, at[i]) {
			return true
		}
	}
	return false
}

// boundary reports whether a word begins at a rune of a text.
func boundary(text []rune, i int) bool {
	return i == 0 || !unicode.IsLetter(text[i-1]) && !unicode.IsDigit(text[i-1])
}
