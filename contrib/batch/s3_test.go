package batch_test

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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

// newBucket serves a bucket, and has the clients of S3 use it: of this process, and of those that it starts. The server
// has a number for an address, so the clients put the bucket into the path.
func newBucket(t *testing.T, name string) *bucket {
	t.Helper()
	b := &bucket{t, name, s3mem.New()}
	if err := b.objects.CreateBucket(name); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(b.objects).Server())
	t.Cleanup(server.Close)
	none := filepath.Join(t.TempDir(), "none")
	for variable, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "key",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none,
		"AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required", // this server sends none
	} {
		t.Setenv(variable, value)
	}
	return b
}

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

// TestS3: captures, manifest, options and tables in S3 give what files of this machine give. Beam's own file system
// of S3 lists, reads, writes and removes them.
func TestS3(t *testing.T) {
	b, folder, want := newBucket(t, "studio"), filepath.Dir(set(t)), filepath.Join(t.TempDir(), "want")
	const manifest, limits = "capture,region\ngood/*.pcapng,eu\nbroken/,\nrows/*.pcap,us/1\n", "loss: 1%\n"
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
			b.put("play/"+kind+"/"+file.Name(), content)
		}
	}
	odd, err := os.ReadFile(filepath.Join(folder, "good", "0.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	const name = "50%2F?a#b .pcapng" // no part of it is that of a URL
	b.put("play/good/"+name, odd)
	folders.Put(t, filepath.Join(folder, "good", name), odd)
	b.put("play/captures.csv", []byte(manifest))
	b.put("play/limits.yaml", []byte(limits))
	run(t, 2, "--manifest", "s3://studio/play/captures.csv", "-o", "s3://studio/tables", "--thresholds",
		"s3://studio/play/limits.yaml")
	local := folders.Put(t, filepath.Join(folder, "captures.csv"), []byte(manifest))
	ackscope(t, 2, "batch", "-q", "-o", want, "--join=false", "--manifest", local, "--thresholds",
		folders.Put(t, filepath.Join(folder, "limits.yaml"), []byte(limits)))
	count := folders.Same(t, "in S3", b.copied("tables/"), want)
	t.Logf("%d files of tables are equal", count)

	// Another run removes the parts of the first one, and replaces the rest.
	if said := run(t, 0, "-o", "s3://studio/tables", "s3://studio/play/good"); !strings.Contains(said, "4 ok") {
		t.Errorf("a folder of S3: %q", said)
	}
	again := b.copied("tables/")
	if s := summary(t, again); s.Captures != 4 {
		t.Errorf("%d captures after the second run, expected 4", s.Captures)
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
