package batch_test

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/ackscope/ackscope/internal/folders"
)

// bucket is a bucket of a server that stands for S3.
type bucket struct {
	t       *testing.T
	name    string
	objects *s3mem.Backend
}

// serveS3 starts the server, which lives as long as this process: its clients keep the address.
var serveS3 = sync.OnceValues(func() (*s3mem.Backend, string) {
	objects := s3mem.New()
	return objects, httptest.NewServer(gofakes3.New(objects).Server()).URL
})

// newBucket serves a bucket, and has the clients of S3 use it: of this process, and of those that it starts. The server
// has a number for an address, so the clients put the bucket into the path.
func newBucket(t *testing.T, name string) *bucket {
	t.Helper()
	objects, address := serveS3()
	b := &bucket{t, name, objects}
	if err := objects.CreateBucket(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.ForceDeleteBucket(name) }) // it can be tested again
	none := filepath.Join(t.TempDir(), "none")
	for variable, value := range map[string]string{
		"AWS_ENDPOINT_URL": address, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "key",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none,
		"AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required", // this server sends none
	} {
		t.Setenv(variable, value)
	}
	return b
}

// at returns the address of a key.
func (b *bucket) at(key string) string { return "s3://" + b.name + "/" + key }

// put makes an object, not by the client.
func (b *bucket) put(key string, content []byte) {
	b.t.Helper()
	if _, err := b.objects.PutObject(b.name, key, nil, bytes.NewReader(content), int64(len(content)), nil); err != nil {
		b.t.Fatal(err)
	}
}

// copied copies the objects below a prefix to a folder, not by the client.
func (b *bucket) copied(prefix string) (folder string) {
	b.t.Helper()
	folder = b.t.TempDir()
	list, err := b.objects.ListBucket(b.name, &gofakes3.Prefix{HasPrefix: true, Prefix: prefix}, gofakes3.ListBucketPage{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, one := range list.Contents {
		object, err := b.objects.GetObject(b.name, one.Key, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		content, err := io.ReadAll(object.Contents)
		if err != nil {
			b.t.Fatal(err)
		}
		folders.Put(b.t, filepath.Join(folder, filepath.FromSlash(strings.TrimPrefix(one.Key, prefix))), content)
	}
	return folder
}

// played puts captures, a manifest and limits into the bucket. It returns the arguments of a run over them, and the
// folder that `ackscope batch` writes of the same files on this machine.
func (b *bucket) played(t *testing.T) (args []string, want string) {
	t.Helper()
	const manifest, limits = "capture,region\ngood/*.pcapng,eu\nbroken/,\nrows/*.pcap,us/1\n", "loss: 1%\n"
	folder, want := filepath.Dir(set(t)), filepath.Join(t.TempDir(), "want")
	for _, kind := range []string{"good", "broken", "rows"} {
		files, err := os.ReadDir(filepath.Join(folder, kind))
		if err != nil || len(files) < 3 {
			t.Fatal(len(files), err)
		}
		for _, file := range files {
			content, err := os.ReadFile(filepath.Join(folder, kind, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			name := kind + "/" + file.Name()
			if name == "good/0.pcapng" {
				name = "good/50%2F?a#b .pcapng" // no part of it is that of a URL
				folders.Put(t, filepath.Join(folder, name), content)
				if err := os.Remove(filepath.Join(folder, kind, file.Name())); err != nil {
					t.Fatal(err)
				}
			}
			b.put("play/"+name, content)
		}
	}
	b.put("play/captures.csv", []byte(manifest))
	b.put("play/limits.yaml", []byte(limits))
	ackscope(t, 2, "batch", "-q", "-o", want, "--join=false",
		"--manifest", folders.Put(t, filepath.Join(folder, "captures.csv"), []byte(manifest)),
		"--thresholds", folders.Put(t, filepath.Join(folder, "limits.yaml"), []byte(limits)))
	return []string{"--manifest", b.at("play/captures.csv"), "--thresholds", b.at("play/limits.yaml")}, want
}

// TestS3: captures, manifest, options and tables in S3 give what files of this machine give. Beam's own file system
// of S3 lists, reads, writes and removes them. Workers search it.
func TestS3(t *testing.T) {
	b := newBucket(t, "studio")
	args, want := b.played(t)
	run(t, 2, append([]string{"-o", "s3://studio/tables"}, args...)...)
	count := folders.Same(t, "in S3", b.copied("tables/"), want)
	t.Logf("%d files of tables are equal", count)

	// Another run removes the parts of the first one, and replaces the rest.
	if said := run(t, 0, "-o", "s3://studio/tables", "s3://studio/play/good"); !strings.Contains(said, "3 ok") {
		t.Errorf("a folder of S3: %q", said)
	}
	again := b.copied("tables/")
	if s := summary(t, again); s.Captures != 3 {
		t.Errorf("%d captures after the second run, expected 3", s.Captures)
	}
	for name := range folders.Digests(t, again) {
		if strings.Contains(name, "region=") {
			t.Errorf("%s was left", name)
		}
	}
	for address, says := range map[string]string{
		"s3://studio/play/gone.pcapng":    "no capture",
		"s3://studio/play/good/*.pcap":    "matches nothing",
		"s3://nowhere/play/good/1.pcapng": "NoSuchBucket",
	} {
		if said := run(t, 2, "-o", "s3://studio/none", address); !strings.Contains(said, says) {
			t.Errorf("%s: it said %q, expected %q", address, said, says)
		}
	}
}

// TestWrongManifest: a manifest that is wrong fails before the job begins, even if workers would search for captures.
func TestWrongManifest(t *testing.T) {
	b := newBucket(t, "wrong")
	for text, says := range map[string]string{
		"capture,build,build\na/*.pcap,1,2\n":             "is there twice",
		"capture,build\na/*.pcap,1\nb.pcap,1\nb.pcap,2\n": "is named by an earlier row too",
	} {
		b.put("captures.csv", []byte(text))
		said := run(t, 2, "-o", b.at("tables"), "--manifest", b.at("captures.csv"))
		if !strings.Contains(said, says) || strings.Contains(said, "job") {
			t.Errorf("%q: it said %q, expected %q", text, said, says)
		}
	}
	b.put("a/1.pcap", nil)
	b.put("captures.csv", []byte("capture,build\na/*.pcap,1\na/1.pcap,2\n")) // the search shows it
	said := run(t, 2, "-o", b.at("tables"), "--manifest", b.at("captures.csv"))
	if !strings.Contains(said, "is named by an earlier row too") {
		t.Errorf("it said %q", said)
	}
}

// TestModesSearch: workers of each kind search a store, and make the plan of what they find.
func TestModesSearch(t *testing.T) {
	needHeavy(t)
	b := newBucket(t, "modes")
	args, want := b.played(t)
	for name, mode := range modes(t, prism(t)) { // its processes have the variables
		finds(t, append(append([]string{"-o", b.at(name)}, mode...), args...)...)
		t.Logf("%s: %d files in S3, 0 differ", name, folders.Same(t, name, b.copied(name+"/"), want))
	}
}
