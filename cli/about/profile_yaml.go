package about

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/printable"
)

// ProfileYAML formats a profile as a file for --profiles. Each setting has its
// value, and a comment above that explains it.
func ProfileYAML(p *dissect.Protocol, x *dissect.Profile) ([]byte, error) {
	// A profile from a user's file cannot be a base: it starts from its own
	// settings.
	base, name := x.Name, "my-"+x.Name
	settings, err := p.NewProfile(base)
	if err != nil {
		return nil, fmt.Errorf("%s:%s comes from a file: that is where its settings stand", p.Name, x.Name)
	}
	var b bytes.Buffer
	comment(&b, "", printable.String(x.Doc))
	fmt.Fprintf(&b, "protocol: %s\nname: %s\nbase: %s\ndoc: %s\nsettings:\n", p.Name, name, yamlWord(base),
		strconv.Quote(x.Doc))
	w := yamlWriter{out: &b, docs: p.SettingDocs}
	if err := w.structure(reflect.ValueOf(settings).Elem(), "  ", ""); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// yamlWord formats a name. It quotes names that YAML would read as numbers.
func yamlWord(s string) string {
	if s != "" && (s[0] < 'a' || s[0] > 'z') {
		return strconv.Quote(s)
	}
	return s
}

// yamlWriter formats a struct of settings by its yaml tags.
type yamlWriter struct {
	out  *bytes.Buffer
	docs map[string]string
}

const commentWidth = 110

// comment writes text as # comments, broken into lines.
func comment(b *bytes.Buffer, indent, text string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > commentWidth {
			fmt.Fprintln(b, line)
			line = indent + "#"
		}
		line += " " + word
	}
	fmt.Fprintln(b, line)
}

func (w *yamlWriter) structure(v reflect.Value, indent, path string) error {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
			continue
		case options == "inline":
			if err := w.structure(v.Field(i), indent, path); err != nil {
				return err
			}
			continue
		}
		key := path + name
		if doc := w.docs[key]; doc != "" {
			comment(w.out, indent, doc)
		}
		x := v.Field(i)
		if x.Kind() == reflect.Struct && !isText(x) {
			fmt.Fprintf(w.out, "%s%s:\n", indent, name)
			if err := w.structure(x, indent+"  ", key+"."); err != nil {
				return err
			}
			continue
		}
		text, err := yamlValue(x)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if text == "" { // not set: shown as a comment
			fmt.Fprintf(w.out, "%s# %s:\n", indent, name)
			continue
		}
		fmt.Fprintf(w.out, "%s%s: %s\n", indent, name, text)
	}
	return nil
}

func isText(v reflect.Value) bool {
	_, ok := v.Interface().(encoding.TextMarshaler)
	return ok
}

// yamlValue formats a value on one line. It returns "" for a nil pointer.
func yamlValue(v reflect.Value) (string, error) {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		return string(b), err
	}
	switch v.Kind() {
	case reflect.Pointer:
		switch {
		case v.IsNil():
			return "", nil
		case v.Elem().Kind() == reflect.Uint32:
			return fmt.Sprintf("%#010x", v.Elem().Uint()), nil
		case v.Elem().Kind() == reflect.Struct:
			return "", nil // a schema is too large for a line; its own file shows it
		}
		return yamlValue(v.Elem())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64), nil
	case reflect.String:
		return strconv.Quote(v.String()), nil
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			var err error
			if parts[i], err = yamlValue(v.Index(i)); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if name == "" || name == "-" {
				continue
			}
			text, err := yamlValue(v.Field(i))
			if err != nil {
				return "", err
			}
			parts = append(parts, name+": "+text)
		}
		return "{" + strings.Join(parts, ", ") + "}", nil
	default:
		return "", fmt.Errorf("a setting of kind %s cannot be written", v.Kind())
	}
}
