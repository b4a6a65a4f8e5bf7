package serving

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/web"
)

// WebCommand builds `ackscope web`.
func WebCommand(a *app.App) *cobra.Command {
	var assets, listen string
	c := &cobra.Command{
		Use:   "web",
		Short: "Serve the page that analyzes captures in a browser, on this machine only",
		Long: `web serves a page on a loopback address. Drop a capture on the page: the analysis runs in the
browser, and the capture stays there. The server sends the files of the page and receives nothing.

The page is part of the program where it was built with "make web". Otherwise --assets names the
folder web/dist that "make web" writes in the source of ackscope (docs/web.md). Any web server can
serve that folder too.`,
		Example: `  ackscope web
  ackscope web --listen 127.0.0.1:8080
  ackscope web --assets web/dist`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			files, err := web.Open(assets)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serve(ctx, a.Out, listen, files)
		},
	}
	p := c.Flags()
	p.StringVar(&assets, "assets", "", "serve the page in the folder `DIR`, which `make web` wrote")
	_ = c.MarkFlagDirname("assets")
	p.StringVar(&listen, "listen", "127.0.0.1:0", "loopback `ADDRESS` and port; port 0 takes a free one")
	return c
}

// A browser on the same machine sends a request at once, and reads 30 MB in well under a second.
const (
	requestTime = 5 * time.Second
	answerTime  = time.Minute
	headerBytes = 16 << 10
)

// serve serves the page until ctx ends. It prints its address.
func serve(ctx context.Context, out io.Writer, listen string, files fs.FS) error {
	at, err := netip.ParseAddrPort(listen)
	if err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("--listen %q: expected a loopback address and a port, as 127.0.0.1:8080 or [::1]:0", listen)
	}
	var listening net.ListenConfig
	l, err := listening.Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	s := &http.Server{
		Handler: Handler(files, l.Addr().String()), ReadTimeout: requestTime, ReadHeaderTimeout: requestTime,
		WriteTimeout: answerTime, MaxHeaderBytes: headerBytes, ErrorLog: log.New(io.Discard, "", 0),
	}
	fmt.Fprintf(out, "http://%s/\n", l.Addr())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return s.Close()
	}
}

// policy is the CSP of the page and of its worker. It allows the files of the page only. The one
// of index.html adds what concerns a document alone.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; worker-src 'self'; " +
	"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types are the MIME types of the page's files. The system's own table may lack some.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".wasm": "application/wasm",
}

// Handler serves the files of the page to a browser that asks for host. A page of another site
// cannot ask: by a name of its own that it points to this machine, the Host header differs.
func Handler(files fs.FS, host string) http.Handler {
	_, port, _ := net.SplitHostPort(host)
	hosts := map[string]bool{host: true, "localhost:" + port: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cache-Control", "no-cache")
		switch {
		case !hosts[r.Host]:
			http.Error(w, "expected the address that ackscope web printed", http.StatusMisdirectedRequest)
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "expected GET", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		if name == "" {
			name = "index.html"
		}
		kind, ok := types[path.Ext(name)]
		if !ok || strings.Contains(name, "/") {
			http.NotFound(w, r)
			return
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		head.Set("Content-Type", kind)
		head.Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text) // the browser may be gone
	})
}
