package place

import (
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/gcsx"
)

// TestLiteral: Google Cloud Storage gets names as they are. TestS3 shows it of S3.
func TestLiteral(t *testing.T) {
	for _, name := range []string{
		"a/b.pcapng", "region=us%2F1/x", "50%?a#b c", "[a-z]*.pcap", "", "a//b", "\n\xff", "%", "ü/",
	} {
		bucket, object, err := gcsx.ParseObject(asURL("gs://studio/" + name))
		if err != nil || bucket != "studio" || object != name {
			t.Errorf("%q: bucket %q, object %q, %v", name, bucket, object, err)
		}
	}
}
