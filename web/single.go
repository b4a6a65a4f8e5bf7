package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"regexp"
	"strings"
)

// Single is the page as one file, with what it opens.
type Single struct {
	Title string
	Flags []string // of every command that the page runs
	Files []File   // the first capture is opened; the page lists the others
	Most  int64    // bytes that the page may have; 0 for any number
}

// File is a file in a page.
type File struct {
	Name string // without folders; each file of a page has another
	Kind string // of web/src/files.ts: capture, keys, schema, profiles, thresholds or log
	Side string // of a log: whose it is, as "client="; else empty
	// Packed says that the bytes are compressed already.
	Packed bool
	// Copy writes the bytes of the file.
	Copy func(io.Writer) error
}

// TooLargeError says that a page would have more bytes than it may.
type TooLargeError struct{ Most int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the page would have more than %d bytes", e.Most)
}

// bounded refuses what is more than a number of bytes.
type bounded struct {
	to   io.Writer
	left int64
	most int64
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 && b.most > 0 {
		return 0, &TooLargeError{b.most}
	}
	return b.to.Write(p)
}

// inside is what the page reads first: src/inside.ts has the same fields.
type inside struct {
	Flags []string     `json:"flags"`
	Files []insideFile `json:"files"`
}

type insideFile struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Side   string `json:"side"`
	Packed bool   `json:"packed"` // by Write, with gzip
}

// Write writes the page. Its bytes depend on the files of the page and on s only.
func (s *Single) Write(to io.Writer, assets fs.FS) error {
	head, foot, err := s.frame(assets)
	if err != nil {
		return err
	}
	w := &bounded{to: to, left: s.Most, most: s.Most}
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	worker, err := texts(assets, "wasm_exec.js", "worker.js")
	if err != nil {
		return err
	}
	if err := block(w, "inside-worker", false, copyOf(worker)); err != nil {
		return err
	}
	analysis := func(to io.Writer) error { return copyFrom(to, assets, program) }
	if err := block(w, "inside-program", true, analysis); err != nil {
		return err
	}
	list := inside{Flags: append([]string{}, s.Flags...), Files: []insideFile{}}
	for i, f := range s.Files {
		if err := block(w, fmt.Sprintf("inside-%d", i), !f.Packed, f.Copy); err != nil {
			return err
		}
		list.Files = append(list.Files, insideFile{f.Name, f.Kind, f.Side, !f.Packed})
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if err := block(w, "inside", false, copyOf(text)); err != nil {
		return err
	}
	_, err = io.WriteString(w, foot)
	return err
}

func copyOf(text []byte) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := to.Write(text)
		return err
	}
}

func copyFrom(to io.Writer, assets fs.FS, name string) error {
	f, err := assets.Open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return errors.Join(err, f.Close())
}

// texts returns files of the page, one after the other.
func texts(assets fs.FS, names ...string) ([]byte, error) {
	var all [][]byte
	for _, name := range names {
		text, err := fs.ReadFile(assets, name)
		if err != nil {
			return nil, fmt.Errorf("the page lacks a file: %w", err)
		}
		all = append(all, text)
	}
	return bytes.Join(all, []byte("\n")), nil
}

// block writes a block of data, which a browser does not run. Base64 has no character that could
// end the block, whatever the data is.
func block(w io.Writer, id string, pack bool, fill func(io.Writer) error) error {
	if _, err := fmt.Fprintf(w, "<script type=\"application/octet-stream\" id=%q>", id); err != nil {
		return err
	}
	encoder := base64.NewEncoder(base64.StdEncoding, w)
	if pack {
		packer := gzip.NewWriter(encoder)
		if err := fill(packer); err != nil {
			return err
		}
		if err := packer.Close(); err != nil {
			return err
		}
	} else if err := fill(encoder); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</script>\n")
	return err
}

// What index.html has of its own, and one file has otherwise.
var (
	thePolicy = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="[^"]*">`)
	theTitle  = regexp.MustCompile(`<title>[^<]*</title>`)
	theStyle  = regexp.MustCompile(`<link rel="stylesheet" href="app\.css">`)
	theScript = regexp.MustCompile(`<script src="app\.js" defer></script>\n?`)
	theEnd    = regexp.MustCompile(`</body>`)
)

// ends matches what would end a script or a style, or change how it is read.
// Source: HTML, 13.1.2.1 Restrictions on the contents of raw text elements, and 4.12.1.3 of scripts
var ends = regexp.MustCompile(`(?i)</script|</style|<!--|<script`)

// frame returns the page before and after its blocks of data.
func (s *Single) frame(assets fs.FS) (head, foot string, err error) {
	page, err := texts(assets, "index.html")
	if err != nil {
		return "", "", err
	}
	style, err := texts(assets, "app.css")
	if err != nil {
		return "", "", err
	}
	script, err := texts(assets, "app.js")
	if err != nil {
		return "", "", err
	}
	if ends.Match(style) || ends.Match(script) {
		return "", "", fmt.Errorf("app.js or app.css has %q, which cannot stand in a page", ends.FindString(string(style)+
			string(script)))
	}
	text := string(page)
	for _, part := range []struct {
		of   *regexp.Regexp
		with string
	}{
		{thePolicy, `<meta http-equiv="Content-Security-Policy" content="` + policyOf(style, script) + `">`},
		{theTitle, "<title>" + html.EscapeString(s.Title) + "</title>"},
		{theStyle, "<style>" + string(style) + "</style>"},
		{theScript, ""},
		{theEnd, cut + "<script>" + string(script) + "</script>\n</body>"},
	} {
		if n := len(part.of.FindAllStringIndex(text, -1)); n != 1 {
			return "", "", fmt.Errorf("index.html has %q %d times: expected the one that `make web` writes", part.of, n)
		}
		text = part.of.ReplaceAllLiteralString(text, part.with)
	}
	head, foot, _ = strings.Cut(text, cut)
	return head, foot, nil
}

// cut is where the blocks of data stand. No text of a page has a zero byte.
const cut = "\x00"

// policyOf returns the CSP of the one file. It allows its own style and script, by their hashes,
// and the worker that the script makes of a block. It allows no connection at all.
func policyOf(style, script []byte) string {
	return "default-src 'none'; script-src '" + hash(script) + "' 'wasm-unsafe-eval'; style-src '" + hash(style) +
		"'; worker-src blob:; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'; " +
		"require-trusted-types-for 'script'; trusted-types ackscope"
}

// hash returns the source expression of an inline script or style.
// Source: Content Security Policy Level 3, 2.3.1, hash-source
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
