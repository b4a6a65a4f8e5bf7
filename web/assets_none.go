//go:build !webassets

package web

import "io/fs"

// Assets returns nil: this program was built without the page.
func Assets() fs.FS { return nil }
