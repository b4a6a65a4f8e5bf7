package yamlfile

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/schema"
)

// Error says what is wrong with a file. It never quotes a whole line, because
// the file may be a key that was given by mistake.
type Error struct {
	File string // its name, from the caller
	Text string // what is wrong, and in which line
}

func (e *Error) Error() string { return e.File + ": " + e.Text }

// describe describes the fault of a file: the line, and what was expected. It
// quotes at most one word of the file, if that word is a name and the file does
// not look like a key.
func describe(src []byte, err error) string {
	return where(err) + what(src, err)
}

func what(src []byte, err error) string {
	secret := !settingName.Match(src) || printable.Secret(src)
	var library yaml.Error
	if !errors.As(err, &library) {
		return quotes(err.Error(), secret)
	}
	text := category(err)
	if secret {
		return text
	}
	var (
		syntax  *yaml.SyntaxError
		unknown *yaml.UnknownFieldError
		twice   *yaml.DuplicateKeyError
		kind    *yaml.TypeError
	)
	switch {
	case errors.As(err, &unknown) && unknown.Token != nil:
		text = "unknown setting " + printable.Word(unknown.Token.Value)
	case errors.As(err, &twice) && twice.Token != nil:
		text = "the setting " + printable.Word(twice.Token.Value) + " stands twice"
	case errors.As(err, &kind) && kind.DstType != nil:
		text += ": expected " + kindName(kind.DstType)
	case errors.As(err, &syntax) && !strings.ContainsAny(syntax.Message, "\"\n"):
		text += ": " + syntax.Message
	}
	return text
}

// settingName matches a setting that every schema and profile has. A file
// without one is not a schema or profile, and errors quote nothing of it.
var settingName = regexp.MustCompile(`(?m)(^|[{,\s])["']?(messages|packets|protocol)["']?\s*:`)

// where returns the line of a library error.
func where(err error) string {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		return fmt.Sprintf("line %d: ", at.GetToken().Position.Line)
	}
	return ""
}

// category describes an error of the library without quoting the file.
func category(err error) string {
	var (
		syntax   *yaml.SyntaxError
		unknown  *yaml.UnknownFieldError
		twice    *yaml.DuplicateKeyError
		kind     *yaml.TypeError
		node     *yaml.UnexpectedNodeTypeError
		overflow *yaml.OverflowError
	)
	switch {
	case errors.As(err, &unknown):
		return "a setting that is not known stands here"
	case errors.As(err, &twice):
		return "a setting stands twice"
	case errors.As(err, &kind):
		return "this value is of another kind than its setting takes"
	case errors.As(err, &node):
		return fmt.Sprintf("expected %s, found %s", strings.ToLower(node.Expected.String()),
			strings.ToLower(node.Actual.String()))
	case errors.As(err, &overflow):
		return "this number is too large for its setting"
	case errors.As(err, &syntax) && strings.Contains(syntax.Message, "already defined"):
		return "a setting stands twice"
	case errors.As(err, &syntax):
		return "this is not YAML"
	}
	return "this cannot be read"
}

func kindName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "settings (name: value)"
	}
	return "a number"
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// quotes replaces the quotations in a message of ours. It keeps a word that may
// be shown, and otherwise writes its length.
func quotes(message string, secret bool) string {
	message = quoted.ReplaceAllStringFunc(message, func(q string) string {
		word, err := strconv.Unquote(q)
		if err != nil || secret {
			return fmt.Sprintf("a text of %d bytes", len(word))
		}
		return printable.Word(word)
	})
	return printable.String(printable.Redact(message))
}

// locate formats an error about a document. An error of the schema, which begins
// at root, gets the line of its setting.
func locate(src []byte, body ast.Node, err error, root string) string {
	text := describe(src, err)
	var wrong *schema.Error
	if !errors.As(err, &wrong) {
		return text
	}
	at := root + strings.TrimPrefix(wrong.Path, "$")
	for {
		path, pathErr := yaml.PathString(at)
		if pathErr != nil {
			return text
		}
		if node, err := path.FilterNode(body); err == nil && node != nil {
			return fmt.Sprintf("line %d: %s", node.GetToken().Position.Line, text)
		}
		// The setting is missing: use the line of its parent.
		i := strings.LastIndexAny(at, ".[")
		if i <= 0 {
			return text
		}
		at = at[:i]
	}
}
