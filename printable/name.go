package printable

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// MostName bounds the bytes of a name in a user's file. The longest of the
// built-in names has 40.
const MostName = 100

// Name returns an error if a name of a user's file contains anything but ASCII
// letters, digits and the characters _ . and -. Such a name needs no escape in
// any output. Two such names cannot look alike, as names of different scripts
// can. Name accepts the empty name.
func Name(name string) error {
	for i, r := range name {
		if !nameRune(r) {
			return fmt.Errorf("a name has letters, digits and _.- (ASCII) only, found %s at byte %d", describe(name[i:], r), i+1)
		}
	}
	if len(name) > MostName {
		return fmt.Errorf("a name has at most %d bytes, found %d", MostName, len(name))
	}
	return nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-'
}

func describe(text string, r rune) string {
	if _, n := utf8.DecodeRuneInString(text); r == utf8.RuneError && n < 2 {
		return fmt.Sprintf("the byte 0x%02x, which is not UTF-8", text[0])
	}
	return fmt.Sprintf("U+%04X", r)
}

// mostWord bounds the bytes that an error quotes from a file. Keys have 32
// characters or more.
const mostWord = 31

// Word quotes a word of a configuration file for an error. If the word is not a
// name, or long enough to be a key, Word returns only its length. The file may
// not be the one that the user meant.
func Word(word string) string {
	if len(word) <= mostWord && (Name(word) == nil || expression().MatchString(word)) && !random(word) {
		return strconv.Quote(word)
	}
	return fmt.Sprintf("a text of %d bytes", len(word))
}

// random reports whether a word looks like a password: letters, and more digits
// than a name has. The names crc32 and uint64 have two.
func random(word string) bool {
	const most = 3
	digits, letters := 0, 0
	for _, r := range word {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case nameRune(r):
			letters++
		}
	}
	return digits > most && letters > 0
}

// expression matches conditions, times and lists in settings: short words and
// operators. Most runs quote no word, so none of these is compiled at the start.
var expression = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_.,:()<>=!&|+*/ -]{1,15}$`)
})

// secretMarks match texts that occur in files of keys and passwords.
var secretMarks = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)-----BEGIN |-----END |PRIVATE KEY|PuTTY-User-Key|ssh-(rsa|dss|ed25519)|ecdsa-sha2` +
		`|openssh-key|AGE-SECRET-KEY` +
		// password: x, AWS_SECRET_ACCESS_KEY=x, "private_key": x
		`|(passw(or)?d|passphrase|secret|token|credential|api_?key|access_?key|private_?key|preshared_?key|psk|auth)` +
		`[a-z_]*["']?\s*[:=]` +
		// netrc
		`|\b(login|password|passwd)\s+\S` +
		// bytes as a list, as in a C array: 0x60, 0x6a, ... or 96, 106, ...
		`|((0x[0-9a-f]{1,2}|[0-9]{1,3})[\s,;]+){15}(0x[0-9a-f]{1,2}|[0-9]{1,3})\b` +
		// bytes as pairs of digits: 60:6a:fa:..., 60 6a fa ..., \x60\x6a\xfa...
		`|(\b[0-9a-f]{2}[\s:-]){15}[0-9a-f]{2}\b|(\\x[0-9a-f]{2}){8}`)
})

// longRun matches a key, or a line of one, in hexadecimal or base64.
var longRun = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[A-Za-z0-9+/_=-]{32,}`)
})

// Secret reports whether a text looks like a file of keys or passwords, or is
// not text at all. Errors must not quote such a file.
func Secret[T string | []byte](text T) bool {
	s := string(text)
	return strings.ContainsRune(s, 0) || !utf8.ValidString(s) || longRun().MatchString(s) || secretMarks().MatchString(s)
}

// Redact replaces runs that may be a key in a message with their lengths.
func Redact(message string) string {
	return longRun().ReplaceAllStringFunc(message,
		func(run string) string { return fmt.Sprintf("(%d characters)", len(run)) })
}
