package place

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
)

// literal is the file system of a store that takes addresses for URLs, as Beam's ones of S3 and Google
// Cloud Storage do. They read "%2F" as a slash, and "?" as the end of the name. But they return names
// as they are, and names of this program are meant as they are. So this one writes a name as a URL.
type literal struct{ filesystem.Interface }

// urls are the schemes of such stores.
var urls = map[string]bool{"s3": true, "gs": true}

// asURL returns the address that such a store reads as the given one.
func asURL(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	bucket, name, _ := strings.Cut(rest, "/")
	return (&url.URL{Scheme: scheme, Host: bucket, Path: "/" + name}).String()
}

// List implements filesystem.Interface.
func (l literal) List(ctx context.Context, pattern string) ([]string, error) {
	return l.Interface.List(ctx, asURL(pattern))
}

// OpenRead implements filesystem.Interface.
func (l literal) OpenRead(ctx context.Context, address string) (io.ReadCloser, error) {
	return l.Interface.OpenRead(ctx, asURL(address))
}

// OpenWrite implements filesystem.Interface.
func (l literal) OpenWrite(ctx context.Context, address string) (io.WriteCloser, error) {
	return l.Interface.OpenWrite(ctx, asURL(address))
}

// Size implements filesystem.Interface.
func (l literal) Size(ctx context.Context, address string) (int64, error) {
	return l.Interface.Size(ctx, asURL(address))
}

// Remove implements filesystem.Remover, as both stores do.
func (l literal) Remove(ctx context.Context, address string) error {
	return l.Interface.(filesystem.Remover).Remove(ctx, asURL(address))
}
