package stack

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/gopacket"
)

// reflected adds the fields of a layer that has no table: the exported ones of
// gopacket's type. gopacket does not say where they were.
func (s *fields) reflected(l gopacket.Layer) {
	v := reflect.ValueOf(l)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		s.structure(strings.ToLower(l.LayerType().String()), v)
	}
}

// maxReflected bounds how deep reflected looks into a layer.
const maxReflected = 4

func (s *fields) structure(prefix string, v reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous || f.Name == "BaseLayer" || f.Name == "Contents" || f.Name == "Payload" {
			continue
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			s.structure(prefix, v.Field(i))
			continue
		}
		if f.IsExported() {
			s.value(prefix+"."+strings.ToLower(f.Name), f.Name, v.Field(i))
		}
	}
}

func (s *fields) value(name, label string, v reflect.Value) {
	if len(s.out) >= maxFields {
		return
	}
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if text, ok := v.Interface().(fmt.Stringer); ok {
		s.text(name, label, wordOf(text))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if s.depth == maxReflected {
			return
		}
		s.group(name, label)
		s.depth++
		s.structure(name, v)
		s.depth--
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			s.text(name, label, fmt.Sprintf("%x", v.Interface()))
			return
		}
		for i := range min(v.Len(), maxFields) {
			s.value(name, fmt.Sprintf("%s %d", label, i+1), v.Index(i))
		}
	case reflect.Map, reflect.Func, reflect.Chan:
	default:
		s.text(name, label, fmt.Sprint(v.Interface()))
	}
}

// wordOf returns the word of a value; some of gopacket's fail on values that
// have none.
func wordOf(v fmt.Stringer) (word string) {
	defer func() {
		if recover() != nil {
			word = "undefined"
		}
	}()
	return v.String()
}
