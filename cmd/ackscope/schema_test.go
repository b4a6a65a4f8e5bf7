package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/internal/testenv"
)

// validate holds a value against the part of JSON Schema that ackscope's schemas
// use; a keyword that it does not know is an error, so that nothing goes unchecked.
func validate(schema map[string]any, v any) error {
	for key := range schema {
		if !slices.Contains([]string{"$schema", "$id", "title", "description", "type", "properties", "required", "additionalProperties", "items", "enum", "minimum", "format"}, key) {
			return fmt.Errorf("the schema says %q, which this check does not know", key)
		}
	}
	if want, ok := schema["type"]; ok {
		list, several := want.([]any)
		if !several {
			list = []any{want}
		}
		if !slices.ContainsFunc(list, func(word any) bool { return isOf(word.(string), v) }) {
			return fmt.Errorf("expected %v, found %v", want, v)
		}
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		return fmt.Errorf("expected one of %v, found %v", enum, v)
	}
	if schema["format"] == "date-time" && v != nil {
		if _, err := time.Parse(time.RFC3339Nano, v.(string)); err != nil {
			return err
		}
	}
	if n, ok := v.(json.Number); ok && schema["minimum"] != nil && strings.HasPrefix(n.String(), "-") {
		return fmt.Errorf("expected %v at least, found %v", schema["minimum"], n)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		for i, x := range v.([]any) {
			if err := validate(items, x); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	}
	properties, ok := schema["properties"].(map[string]any)
	o, isObject := v.(map[string]any)
	if !ok || !isObject {
		return nil
	}
	for _, key := range schema["required"].([]any) {
		if _, ok := o[key.(string)]; !ok {
			return fmt.Errorf("%v is missing", key)
		}
	}
	for key, x := range o {
		p, ok := properties[key].(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no property", key)
		}
		if err := validate(p, x); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func isOf(word string, v any) bool {
	switch x := v.(type) {
	case nil:
		return word == "null"
	case bool:
		return word == "boolean"
	case string:
		return word == "string"
	case json.Number:
		return word == "number" || word == "integer" && !strings.ContainsAny(x.String(), ".eE")
	case []any:
		return word == "array"
	}
	return word == "object"
}

// What the commands print is what their schemas say.
func TestSchemas(t *testing.T) {
	schemas := decodeJSON(t, []byte(output(t, "schema"))).(map[string]any)
	sets := exported
	if testing.Short() {
		sets = sets[:2]
	}
	for _, set := range sets {
		var paths []string
		for _, name := range set {
			paths = append(paths, testenv.Capture(t, name))
		}
		for _, name := range tableNames {
			args := []string{name, "--json"}
			if name == "packets" {
				args = append(args, "-V", "-x")
			}
			for line := range strings.Lines(output(t, append(args, paths...)...)) {
				if err := validate(schemas[name].(map[string]any), decodeJSON(t, []byte(line))); err != nil {
					t.Errorf("%s of %s: %v in %s", name, set[0], err, line)
					break
				}
			}
		}
	}
	for _, s := range listings {
		for line := range strings.Lines(output(t, s.Name, "--json")) {
			if err := validate(schemas[s.Name].(map[string]any), decodeJSON(t, []byte(line))); err != nil {
				t.Errorf("%s: %v in %s", s.Name, err, line)
				break
			}
		}
	}
	for _, c := range []string{`{"frame":"1"}`, `{"frame":1,"surplus":1}`, `{}`} {
		if validate(schemas["events"].(map[string]any), decodeJSON(t, []byte(c))) == nil {
			t.Errorf("%s passes for an event", c)
		}
	}
}

// Every command has its manual page, and the same ones each time.
func TestManualPages(t *testing.T) {
	folder := t.TempDir()
	output(t, "man", folder)
	pages := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Contains(text, []byte(".SH SYNOPSIS")) {
			t.Errorf("%s: %v, or no synopsis in it", name, err)
		}
		pages++
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	a := &app{registry: protocols()}
	walk(a.command())
	if pages < 20 {
		t.Errorf("%d pages, expected 20 at least", pages)
	}
	again := t.TempDir()
	output(t, "man", again)
	one, err := os.ReadFile(filepath.Join(folder, "ackscope-findings.1"))
	if err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(filepath.Join(again, "ackscope-findings.1")); err != nil || !bytes.Equal(one, other) {
		t.Errorf("a second run writes another page (%v)", err)
	}
}

// The completion of a shell is one that the shell takes, and it knows our words.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text := output(t, "completion", shell)
		if !strings.Contains(text, "ackscope") {
			t.Errorf("%s: no completion", shell)
		}
		if shell == "bash" {
			bash := testenv.Need(t, "bash")
			check := exec.Command(bash, "-n")
			check.Stdin = strings.NewReader(text)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("bash refuses it: %v\n%s", err, out)
			}
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"exp"}, "export"},
		{[]string{"export", ""}, "parquet"},
		{[]string{"export", "csv", "--table", "me"}, "messages"},
		{[]string{"export", "qlog", "--dialect", ""}, "qvis"},
		{[]string{"packets", "-T", ""}, "ek"},
		{[]string{"packets", "-t", "ad"}, "adoy"},
		{[]string{"packets", "-e", "gaffer.seq"}, "gaffer.sequence"},
		{[]string{"schema", ""}, "findings"},
	} {
		if got := output(t, append([]string{"__complete"}, c.args...)...); !strings.Contains(got, c.want) {
			t.Errorf("%q completes to %q, expected %s among it", c.args, got, c.want)
		}
	}
}
