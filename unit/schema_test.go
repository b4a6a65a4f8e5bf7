package unit

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/internal/jsonschema"
)

// TestStatusSchema: the statuses of all kinds of captures follow the schema that `ackscope schema status` prints, and
// together they have each of its keys.
func TestStatusSchema(t *testing.T) {
	i := slices.IndexFunc(export.Objects(), func(s *export.Schema) bool { return s.Name == "status" })
	if i < 0 {
		t.Fatal("expected a schema of the status, found none")
	}
	text, err := json.Marshal(export.Objects()[i].JSONSchema())
	if err != nil {
		t.Fatal(err)
	}
	schema := decoded(t, text)
	packed, plain := sample(t)
	damaged := append(bytes.Clone(plain[:5000]), bytes.Repeat([]byte{0xff}, 5000)...)
	unsized, err := analyzeReader(-1, bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	states, keys := map[State]bool{}, map[string]bool{}
	for _, r := range []*Result{
		analyzeBytes(t, "x", packed, Options{}), unsized, analyzeBytes(t, "x", nil, Options{}),
		analyzeBytes(t, "x", plain[:len(plain)/2+1], Options{}), analyzeBytes(t, "x", damaged, Options{}),
		analyzeBytes(t, "x", []byte("no capture"), Options{}), analyzeBytes(t, "x", plain[:24], Options{}),
		analyzeMade(t, &made{packets: 5000, flows: true}, Options{Memory: 4 << 20}),
		analyzeMade(t, &made{packets: 3000}, Options{Packets: 1000}),
		analyzeMade(t, &made{packets: 3000}, Options{Time: 3}),
		analyzeBytes(t, "x", packed, Options{Registry: panics()}),
	} {
		text, err := json.Marshal(&r.Status)
		if err != nil {
			t.Fatal(err)
		}
		o := decoded(t, text)
		if err := jsonschema.Validate(schema, o); err != nil {
			t.Errorf("%v in %s", err, text)
		}
		states[r.Status.State] = true
		for key := range o {
			keys[key] = true
		}
	}
	for _, s := range States() {
		if !states[s] {
			t.Errorf("no capture was of state %s", s)
		}
	}
	properties := schema["properties"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if !keys[key] {
			t.Errorf("no status has the key %s", key)
		}
	}
	for _, bad := range []string{`{}`, `{"capture":1}`, `{"capture":"x","state":"fine","files":1,"bytes":1,"packets":1,` +
		`"studied":1,"flows":1,"findings":1}`} {
		if jsonschema.Validate(schema, decoded(t, []byte(bad))) == nil {
			t.Errorf("%s passes for a status", bad)
		}
	}
}

func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}
