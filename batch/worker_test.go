package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/unit"
)

// stuck is a reader that never returns.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { select {} }

// newAnalyzer returns a worker of this process in a new folder.
func newAnalyzer(t *testing.T) *Analyzer {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(folder+"/"+workFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	a, err := NewAnalyzer(&outfile.Outputs{}, folder, unit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

const sample = "../testdata/pcaps/reliable-clean.client.pcap.gz"

// TestTimeoutOfReader: a reader that never returns ends a job, and the worker goes on.
func TestTimeoutOfReader(t *testing.T) {
	a := newAnalyzer(t)
	a.open = func(f File) (*input, error) {
		if f.Path == "stuck" {
			return &input{stuck{}, io.NopCloser(nil), 1 << 20}, nil
		}
		return openFile(f)
	}
	job := &Job{Capture: Capture{Name: "x", Files: []File{{"x", "stuck"}}}, Timeout: 20 * time.Millisecond}
	done, err := a.Do(context.Background(), job)
	if err != nil || !done.Late || done.Segment != "" || done.Error != "" {
		t.Errorf("%+v, %v", done, err)
	}
	job = &Job{Capture: Capture{Name: "y", Files: []File{{"y", sample}}}, Timeout: time.Hour}
	if done, err = a.Do(context.Background(), job); err != nil || done.Late || done.State != unit.OK || done.Flows == 0 {
		t.Errorf("%+v, %v", done, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the run ends: the capture is not late
	if done, err = a.Do(ctx, job); done != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", done, err)
	}
}

// hanging is a worker that hangs, as one that waits for a dead disk.
type hanging struct{ began chan struct{} }

func (h *hanging) Do(context.Context, *Job) (*Done, error) {
	close(h.began)
	select {}
}

func (h *hanging) Close() error { return nil }

// TestServeLeavesHangingWorker: if the process that sends jobs dies, a worker that hangs does not stay.
func TestServeLeavesHangingWorker(t *testing.T) {
	in, jobs := io.Pipe()
	w := &hanging{make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- Serve(in, io.Discard, w) }()
	if err := json.NewEncoder(jobs).Encode(&Job{}); err != nil {
		t.Fatal(err)
	}
	<-w.began
	if err := jobs.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it still serves")
	}
}

// TestHeldProcess: a process that does not answer is given up, even where its end does not come. Here
// a child of it holds its standard error.
func TestHeldProcess(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell: ", err)
	}
	command := exec.Command(shell, "-c", `sleep 20 & echo '{}'; wait`)
	command.Stderr = &bytes.Buffer{}
	p, err := StartProcess(command)
	if err != nil {
		t.Fatal(err)
	}
	p.least = 100 * time.Millisecond
	began := time.Now()
	done, err := p.Do(context.Background(), &Job{Timeout: 10 * time.Millisecond})
	var death *DeathError
	if done != nil || !errors.As(err, &death) || !strings.Contains(err.Error(), "it hung") {
		t.Errorf("%+v, %v", done, err)
	}
	if took := time.Since(began); took > 15*time.Second { // the child lives for 20 s
		t.Errorf("it took %v", took)
	}
}
