package batch

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/ackscope/ackscope/unit"
)

// TestNamesInJSON: a job keeps names that are not UTF-8, as file systems have them. Otherwise a worker
// looks for another file.
func TestNamesInJSON(t *testing.T) {
	want := Job{Threads: 1, Capture: Capture{
		Name: "a\xff\"\n", Labels: []unit.Label{{Name: "build", Value: "1", Carried: true}},
		Files: []File{{"a\xff\"\n", "/tmp/a\xff\"\n"}, {"plain", "/tmp/\u2028é"}, {}},
	}}
	b, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got Job
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v, expected %+v", err, got, want)
	}
	if err := json.Unmarshal([]byte(`{"Capture":{"Name":{"Bytes":7}}}`), &got); err == nil {
		t.Error("a name that is a number is no error")
	}
}
