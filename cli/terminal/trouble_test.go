package terminal

import (
	"bytes"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/recorder"
)

// The frame that a recording was made for is known as soon as the file is open.
func TestTroubleOfARecording(t *testing.T) {
	for comment, want := range map[string]machine.Ref{
		recorder.Mark(31, 5, "stall"): machine.MakeRef(0, 31), "another comment": 0,
	} {
		var b bytes.Buffer
		w, err := capture.NewWriter(&b, capture.WriterOptions{Comments: []string{"a first one", comment}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		in, err := capture.Open([]string{"-"}, capture.Options{Stdin: &b})
		if err != nil {
			t.Fatal(err)
		}
		if got := troubleOf(in); got.Ref != want || want != 0 && got.At != 5 {
			t.Errorf("%q: frame %d at %d", comment, got.Ref.Frame(), got.At)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
