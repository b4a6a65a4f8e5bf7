package unit

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
)

// sample returns a capture as it is stored, and the same without compression.
func sample(t testing.TB) (packed, plain []byte) {
	t.Helper()
	packed, err := os.ReadFile("../testdata/pcaps/plain-be-loss20-reorder.server.pcap.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return packed, plain
}

// failing returns bytes, and then an error.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}

// failingAt is failing for a reader at offsets.
type failingAt struct {
	*bytes.Reader
	until int64
	err   error
}

func (f *failingAt) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > f.until {
		return 0, f.err
	}
	return f.Reader.ReadAt(p, at)
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("torn") }

func analyzeReader(size int, r io.Reader) (*Result, error) {
	return Analyze(context.Background(), "x", []Input{{Name: "x", Size: int64(size), Reader: r}}, Options{NoDelays: true})
}

// TestFailedTransportIsAnError: wherever a reader fails or ends early, and with whatever error, there
// is an error and no result.
func TestFailedTransportIsAnError(t *testing.T) {
	packed, plain := sample(t)
	wrapped := fmt.Errorf("body: %w", io.EOF)
	for _, data := range [][]byte{packed, plain} {
		for _, at := range []int{0, 1, 3, 4, 17, 24, 30, 40, 41, len(data) / 3, len(data) / 2, len(data) - 1, len(data)} {
			for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, wrapped, io.ErrNoProgress, os.ErrDeadlineExceeded} {
				if at == len(data) && err == io.EOF {
					continue // that is the end of the file
				}
				readers := []io.Reader{&failing{bytes.NewReader(data[:at]), err}}
				if at < len(data) {
					readers = append(readers, &failingAt{bytes.NewReader(data), int64(at), err})
				}
				for _, r := range readers {
					result, got := analyzeReader(len(data), r)
					var transport *capture.TransportError
					if result != nil || !errors.As(got, &transport) {
						t.Fatalf("%T fails by %v after %d of %d: %+v and %v", r, err, at, len(data), result, got)
					}
				}
			}
		}
		for _, r := range []io.Reader{
			panicking{}, &failing{bytes.NewReader(append(bytes.Clone(data), 1)), io.EOF}, // more than its size
		} {
			if result, err := analyzeReader(len(data), r); result != nil || !errors.As(err, new(*capture.TransportError)) {
				t.Errorf("%T: %v and %v", r, result, err)
			}
		}
	}
}

// TestCutCaptureKeepsItsRows: a file that truly ends early is a cut capture, with the rows of what
// is there. It does not matter how it is read.
func TestCutCaptureKeepsItsRows(t *testing.T) {
	packed, plain := sample(t)
	for _, data := range [][]byte{packed, plain} {
		part := data[:len(data)*3/5]
		want := analyzeBytes(t, "x", part, Options{NoDelays: true})
		got, err := analyzeReader(len(part), &failing{bytes.NewReader(part), io.EOF})
		if err != nil || want.Status.State != Cut || len(want.Flows) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v and %+v: %v", got.Status, want.Status, err)
		}
		if got, err := analyzeReader(-1, &failing{bytes.NewReader(part), io.EOF}); err != nil || got.Status.State != Cut {
			t.Errorf("without a size: %v", err)
		}
	}
	for state, data := range map[State][]byte{
		Unreadable: []byte("no capture"), Damaged: append(bytes.Clone(plain[:5000]), bytes.Repeat([]byte{0xff}, 5000)...),
	} {
		if s := analyzeBytes(t, "x", data, Options{}).Status; s.State != state || s.Error == "" {
			t.Errorf("%s: %+v", state, s)
		}
	}
	if s := analyzeBytes(t, "x", nil, Options{}); s.Status.State != Unreadable || len(s.Flows) > 0 {
		t.Errorf("an empty file: %+v", s.Status)
	}
}

// TestOneResultForAnyNumberOfThreads: the result depends on the bytes alone.
func TestOneResultForAnyNumberOfThreads(t *testing.T) {
	for _, path := range captures(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 1<<20 && !testenv.Whole() {
			continue
		}
		want, _ := analyzeBytes(t, path, data, Options{}).MarshalBinary()
		result := analyzeBytes(t, path, data, Options{Threads: 4})
		got, _ := result.MarshalBinary()
		var back Result
		if err := back.UnmarshalBinary(got); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if again, _ := back.MarshalBinary(); !bytes.Equal(got, want) || !bytes.Equal(again, want) {
			t.Errorf("%s: four threads give another result", path)
		}
	}
}
