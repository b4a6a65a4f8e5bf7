// Package jsonschema checks values against the JSON Schemas of ackscope, for tests.
package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Validate checks a value against the part of JSON Schema that ackscope's
// schemas use. An unknown keyword is an error, so that nothing remains
// unchecked. The value is one of a json.Decoder that uses numbers.
func Validate(schema map[string]any, v any) error {
	for key := range schema {
		if !slices.Contains([]string{
			"$schema", "$id", "title", "description", "type", "properties", "required",
			"additionalProperties", "items", "enum", "minimum", "format", "oneOf",
		}, key) {
			return fmt.Errorf("the schema says %q, which this check does not know", key)
		}
	}
	if kinds, ok := schema["oneOf"].([]any); ok {
		var of []error
		for _, kind := range kinds {
			if err := Validate(kind.(map[string]any), v); err != nil {
				of = append(of, err)
			}
		}
		if len(of) != len(kinds)-1 {
			return fmt.Errorf("of %d kinds it is %d: %w", len(kinds), len(kinds)-len(of), errors.Join(of...))
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
			if err := Validate(items, x); err != nil {
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
		if err := Validate(p, x); err != nil {
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
