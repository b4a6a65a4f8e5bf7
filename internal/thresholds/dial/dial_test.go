package dial

import (
	"slices"
	"testing"
	"time"
)

// TestScale: a time moves by the factor, and a count by one at least. What follows from them
// moves with them. An unknown name is an error.
func TestScale(t *testing.T) {
	wait, few, share := 4*time.Millisecond, 3, 0.8
	both := time.Duration(few) * wait
	Add("test.wait", &wait)
	Add("test.few", &few)
	Add("test.share", &share)
	Derive(func() { both = time.Duration(few) * wait })
	for _, x := range []struct {
		name   string
		factor float64
		wait   time.Duration
		few    int
		share  float64
	}{
		{"test.wait", 1.5, 6 * time.Millisecond, 3, 0.8},
		{"test.few", 1.5, 6 * time.Millisecond, 5, 0.8},
		{"test.few", 1 / 1.5, 6 * time.Millisecond, 2, 0.8},
		{"test.few", 1.01, 6 * time.Millisecond, 4, 0.8},
		{"test.share", 0.5, 6 * time.Millisecond, 4, 0.4},
		{"test.wait", 1, 4 * time.Millisecond, 4, 0.4},
		{"test.few", 1, 4 * time.Millisecond, 3, 0.4},
	} {
		if err := Scale(x.name, x.factor); err != nil {
			t.Fatal(err)
		}
		if wait != x.wait || few != x.few || share != x.share || both != time.Duration(x.few)*x.wait {
			t.Errorf("%s × %g: %v, %d, %g and %v of both; expected %v, %d, %g and their product", x.name, x.factor, wait, few,
				share, both, x.wait, x.few, x.share)
		}
	}
	if err := Scale("test.nothing", 2); err == nil {
		t.Error("a constant that is not known was scaled")
	}
	if want := []string{"test.few", "test.share", "test.wait"}; !slices.Equal(Names(), want) {
		t.Errorf("names %v, expected %v", Names(), want)
	}
}
