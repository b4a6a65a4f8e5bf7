package batch_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"

	"github.com/ackscope/ackscope/internal/folders"
)

// storeVariable has the folder that stands for the store "shelf".
const storeVariable = "ACKSCOPE_BEAM_TEST_STORE"

// The store "shelf" has objects as a store of a cloud: without folders, and with no file that can be
// read in place. Every process of a test sees it. The object flaky.pcapng breaks off, short.pcapng
// ends before its size, and denied.pcapng does not open.
func init() {
	filesystem.Register("shelf", func(context.Context) filesystem.Interface { return shelf{} })
}

type shelf struct{}

func (shelf) path(address string) string {
	return filepath.Join(os.Getenv(storeVariable), strings.TrimPrefix(address, "shelf://"))
}

func (shelf) Close() error { return nil }

func (s shelf) List(_ context.Context, pattern string) (found []string, err error) {
	root := s.path("")
	return found, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if ok, _ := filepath.Match(strings.TrimPrefix(pattern, "shelf://"), name); ok {
			found = append(found, "shelf://"+name)
		}
		return err
	})
}

var errDenied = errors.New("access denied")

func (s shelf) OpenRead(_ context.Context, address string) (io.ReadCloser, error) {
	if strings.HasSuffix(address, "denied.pcapng") {
		return nil, errDenied
	}
	file, err := os.Open(s.path(address))
	if err != nil {
		return nil, err
	}
	o := &object{Reader: file, file: file}
	if strings.HasSuffix(address, "flaky.pcapng") {
		o.Reader = io.MultiReader(io.LimitReader(file, 5000), broke{})
	} else if strings.HasSuffix(address, "short.pcapng") {
		o.Reader = io.LimitReader(file, 5000)
	}
	return o, nil
}

type object struct {
	io.Reader
	file *os.File
}

func (o *object) Close() error { return o.file.Close() }

// broke is a connection that was lost.
type broke struct{}

func (broke) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (s shelf) OpenWrite(_ context.Context, address string) (io.WriteCloser, error) {
	if err := os.MkdirAll(filepath.Dir(s.path(address)), 0o755); err != nil {
		return nil, err
	}
	return os.Create(s.path(address))
}

func (s shelf) Size(_ context.Context, address string) (int64, error) {
	info, err := os.Stat(s.path(address))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (s shelf) Remove(_ context.Context, address string) error { return os.Remove(s.path(address)) }

// TestStore: captures, manifest, options and tables in a store give what files of this machine give.
func TestStore(t *testing.T) {
	manifest, out := set(t), t.TempDir()
	t.Setenv(storeVariable, filepath.Dir(manifest))
	folders.Put(t, filepath.Join(filepath.Dir(manifest), "limits.yaml"), []byte("loss: 1%\n"))
	want, got := filepath.Join(out, "want"), filepath.Join(filepath.Dir(manifest), "tables")
	lists := map[string]string{
		"each": "capture,build\ngood/0.pcapng,1\ngood/1.pcapng,..\nbroken/cut.pcapng,2\nbroken/damaged.pcapng,\n",
		"some": "capture,region\ngood/*.pcapng,eu\nbroken/,\n",
	}
	for _, name := range []string{"each", "some"} {
		local := folders.Put(t, filepath.Join(filepath.Dir(manifest), name+".csv"), []byte(lists[name]))
		run(t, 2, "--manifest", "shelf://"+name+".csv", "-o", "shelf://tables", "--thresholds", "shelf://limits.yaml")
		ackscope(t, 2, "batch", "-q", "-o", want, "--manifest", local, "--thresholds",
			filepath.Join(filepath.Dir(manifest), "limits.yaml"))
		folders.Same(t, name+" in a store", got, want)
	}
	if said := run(t, 2, "-o", "shelf://tables", "shelf://good", "shelf://none/"); !strings.Contains(said, "3 ok") ||
		!strings.Contains(said, "1 argument: no capture") {
		t.Errorf("folders of a store: %q", said)
	}
	if said := run(t, 2, "-o", "shelf://good", "shelf://good"); !strings.Contains(said, "something else") {
		t.Errorf("a folder of something else: %q", said)
	}
}

// TestTransport: a capture whose bytes do not come fails the job. It is never told as cut.
func TestTransport(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(storeVariable, folder)
	whole := simulated(t, filepath.Join(folder, "in", "whole.pcapng"))
	b, err := os.ReadFile(whole)
	if err != nil || len(b) < 10_000 {
		t.Fatal(len(b), err)
	}
	for name, want := range map[string]string{
		"flaky.pcapng":  "flaky.pcapng: reading failed after 5000 of",
		"short.pcapng":  "short.pcapng: reading failed after 5000 of",
		"denied.pcapng": "access denied",
		"absent.pcapng": "no such file",
	} {
		if name != "absent.pcapng" {
			folders.Put(t, filepath.Join(folder, "in", name), b)
		}
		list := folders.Put(t, filepath.Join(folder, "list.csv"), []byte("capture\nin/whole.pcapng\nin/"+name+"\n"))
		said := run(t, 2, "--manifest", "shelf://"+filepath.Base(list), "-o", "shelf://out")
		if !strings.Contains(said, want) || !strings.Contains(said, "in/"+name) {
			t.Errorf("%s: it said %q", name, said)
		}
		if _, err := os.Stat(filepath.Join(folder, "out", "summary.json")); err == nil {
			t.Errorf("%s: there are tables", name)
		}
	}
	args := []string{"-o", filepath.Join(folder, "out"), filepath.Join(folder, "gone.pcapng"), whole}
	if said := run(t, 2, args...); !strings.Contains(said, "no such file") {
		t.Errorf("it said %q", said)
	}
	if said := run(t, 2, append(args, "--unread")...); !strings.Contains(said, "1 ok, 1 unread") {
		t.Errorf("it said %q", said)
	}
	args[1] = filepath.Join(folder, "want")
	ackscope(t, 2, append([]string{"batch"}, args...)...)
	folders.Same(t, "with a capture that is unread", filepath.Join(folder, "out"), args[1])
}
