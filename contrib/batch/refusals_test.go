package batch_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ackscope/ackscope/contrib/batch/command"
	"github.com/ackscope/ackscope/contrib/batch/place"
)

// TestRefusals gives wrong flags. Each error must say what was expected.
func TestRefusals(t *testing.T) {
	for _, x := range []struct{ args, want string }{
		{"run captures", "expected -o with the folder"},
		{"run -o x", "no capture given"},
		{"run -o x --parts 0 a.pcap", "--parts 0: expected 1 to 1024"},
		{"run -o x --threads -1 a.pcap", "--threads -1: expected"},
		{"run -o x --runner storm a.pcap", `--runner "storm": expected prism`},
		{"run -o x --runner flink a.pcap", "expected --endpoint"},
		{"run -o x --environment MOON a.pcap", `--environment "MOON": expected LOOPBACK`},
		{"run -o x --environment external a.pcap", "--environment-config"},
		{"run -o x --beam nothing=1 a.pcap", `--beam "nothing=1": expected NAME=VALUE`},
		{"run -o x --log loud a.pcap", `--log "loud": expected`},
		{"run -o x --memory 1MiB a.pcap", "expected 64 MiB at least"},
		{"run -o x --vantage moon a.pcap", "--vantage"},
		{"run -o x --set loss a.pcap", "expected NAME=VALUE"},
		{"run -o x --keys /nonexistent a.pcap", "/nonexistent"},
		{"run -o x --decode-as udp.port==1,nothing a.pcap", "nothing"},
		{"run -o x --manifest /nonexistent.csv", "/nonexistent.csv"},
		{"run -o ftp://x/y a.pcap", "ftp"},
		{"worker --listen nowhere", "nowhere"},
		{"--id='a' --provision_endpoint=", "expected --id and --provision_endpoint"},
	} {
		var out bytes.Buffer
		code := command.Run(t.Context(), strings.Fields(x.args), &out, &out)
		if code != 2 || !strings.Contains(out.String(), x.want) {
			t.Errorf("%s: expected exit code 2 and %q, found %d and %q", x.args, x.want, code, out.String())
		}
	}
}

// TestEscapes: no name of a file leads out of the output folder.
func TestEscapes(t *testing.T) {
	folder := t.TempDir()
	out := place.Output{Folder: filepath.Join(folder, "a", "b")}
	for _, name := range []string{"../x", "/x", "flows/../../x", "..", "flows/build=1/../../../x"} {
		_, err := out.Write(t.Context(), func(w io.Writer) (string, error) {
			_, err := w.Write([]byte("x"))
			return name, err
		})
		if err == nil || !strings.Contains(err.Error(), "below the folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("there is %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPoolRefuses asks a pool of workers for what it must not start.
func TestPoolRefuses(t *testing.T) {
	address, said := free(t), &said{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- command.Run(ctx, []string{"worker", "--listen", address}, said, said) }()
	defer func() { cancel(); <-ended }()
	listens(t, address)
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pool := fnpb.NewBeamFnExternalWorkerPoolClient(c)
	calls, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	for _, q := range []*fnpb.StartWorkerRequest{
		{WorkerId: "a"},
		{ProvisionEndpoint: &pipepb.ApiServiceDescriptor{Url: "localhost:1"}},
		{WorkerId: "a", ProvisionEndpoint: &pipepb.ApiServiceDescriptor{
			Url: "localhost:1", Authentication: &pipepb.AuthenticationSpec{Urn: "x"},
		}},
	} {
		if r, err := pool.StartWorker(calls, q); err != nil || r.GetError() == "" {
			t.Errorf("%v: %v, %v", q, r, err)
		}
	}
	if r, err := pool.StopWorker(calls, &fnpb.StopWorkerRequest{WorkerId: "a"}); err != nil || r.GetError() == "" {
		t.Errorf("a worker that does not run: %v, %v", r, err)
	}
}
