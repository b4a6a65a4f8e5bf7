package recorder

import "testing"

func TestMark(t *testing.T) {
	text := Mark(31, start+5, "loss-burst")
	if frame, at, ok := Marked(text); !ok || frame != 31 || at != start+5 {
		t.Errorf("%q reads as %d, %d, %v", text, frame, at, ok)
	}
	for _, text := range []string{
		"", "ackscope recorder: frame ", "ackscope recorder: frame 0 at 2026-11-23T13:05:00Z: x",
	} {
		if _, _, ok := Marked(text); ok {
			t.Errorf("%q is no mark", text)
		}
	}
}

func FuzzMarked(f *testing.F) {
	f.Add("ackscope recorder: frame 31 at 2026-11-23T13:05:00.5Z: loss-burst")
	f.Fuzz(func(t *testing.T, text string) {
		if frame, at, ok := Marked(text); ok {
			if again, same, ok := Marked(Mark(frame, at, "x")); !ok || again != frame || same != at {
				t.Errorf("%q: frame %d at %d is read as %d at %d", text, frame, at, again, same)
			}
		}
	})
}
