package cli

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// browser loads a page in headless Chromium and returns its standard output.
func browser(t *testing.T, chromium, page string, width int, dark bool, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	theme := "1"
	if dark {
		theme = "0"
	}
	all := append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir=" + t.TempDir(), "--blink-settings=preferredColorScheme=" + theme,
		fmt.Sprintf("--window-size=%d,1400", width),
		// Every request to the network fails, and the script below counts it.
		"--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=6000",
	}, args...)
	c := exec.CommandContext(ctx, chromium, append(all, "file://"+page)...)
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, complaint.String())
	}
	return out.Bytes()
}

// probe is a script that reports in the page's title how the browser rendered
// the page.
const probe = `<script>addEventListener("load", () => { const first = document.querySelector("figure.graph"); if (first) first.scrollIntoView({ behavior: "instant" }); setTimeout(() => {
const wide = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, svg, pre, .tip"));
const cut = [...document.querySelectorAll(".scroll")].filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1);
const closer = document.querySelector("[data-do=in]");
const g = document.querySelector("figure.graph"), before = g && g.querySelector("svg").innerHTML;
if (closer) closer.click();
parent.postMessage(["probe", "scroll", document.documentElement.scrollWidth, "inner", innerWidth, "wide", wide.length, "live", document.querySelectorAll("svg.live").length,
 "figures", document.querySelectorAll("figure.graph").length, "zoomed", g ? g.querySelector("svg").innerHTML !== before : "-", "asked", performance.getEntriesByType("resource").length, "errors", window.faults || 0, "cut", innerWidth < 640 ? cut.length : 0].join(" "), "*");
}, 1500); }); for (const kind of ["error", "securitypolicyviolation"]) addEventListener(kind, () => { window.faults = (window.faults || 0) + 1; });</script>`

// The page in a browser: at both widths nothing overflows, the graphs are drawn
// and zoom, and no script fails. The page requests nothing from the network.
func TestReportInBrowser(t *testing.T) {
	testenv.Grid(t, "a browser")
	chromium := testenv.Need(t, "chromium")
	dir := t.TempDir()
	page := filepath.Join(dir, "report.html")
	output(t, "report", "-o", page, "--schema", testenv.Capture(t, "riptide-messages.yaml"),
		testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	probed := filepath.Join(dir, "probed.html")
	if err := os.WriteFile(probed, bytes.Replace(text, []byte("<head>"), []byte("<head>"+probe), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	// A window has a least width, but a frame in it has none.
	frame := filepath.Join(dir, "frame.html")
	title := regexp.MustCompile(`<title>(probe [^<]*)</title>`)
	for _, width := range []int{1280, 390} {
		outer := fmt.Sprintf(
			`<title>waiting</title><script>onmessage = (e) => { document.title = e.data; };</script><iframe src="probed.html" style="border:0;width:%dpx;height:1200px"></iframe>`, width)
		if err := os.WriteFile(frame, []byte(outer), 0o600); err != nil {
			t.Fatal(err)
		}
		got := title.FindSubmatch(browser(t, chromium, frame, 1400, false, "--dump-dom"))
		if got == nil {
			t.Fatalf("%d pixels: the page did not come to its end", width)
		}
		var scroll, inner, wide, live, figures, asked, faults, cut int
		var zoomed bool
		if _, err := fmt.Sscanf(string(got[1]),
			"probe scroll %d inner %d wide %d live %d figures %d zoomed %t asked %d errors %d cut %d", &scroll, &inner, &wide,
			&live, &figures, &zoomed, &asked, &faults, &cut); err != nil {
			t.Fatalf("%s: %v", got[1], err)
		}
		if scroll > inner || wide > 0 || live == 0 || figures < 10 || !zoomed || asked != 0 || faults != 0 || cut != 0 {
			t.Errorf("%d pixels: %s", width, got[1])
		}
	}
	shots(t, chromium, page, dir)
}

// shots takes pictures of the page in both themes. The background is the
// theme's, and something is drawn on it. ACKSCOPE_SHOTS is a folder that keeps
// them.
func shots(t *testing.T, chromium, page, dir string) {
	t.Helper()
	if to := os.Getenv("ACKSCOPE_SHOTS"); to != "" {
		dir = to
	}
	for _, dark := range []bool{false, true} {
		path := filepath.Join(dir, map[bool]string{false: "light.png", true: "dark.png"}[dark])
		browser(t, chromium, page, 1280, dark, "--screenshot="+path)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(f)
		if closeErr := f.Close(); err != nil || closeErr != nil {
			t.Fatal(err, closeErr)
		}
		back := color.GrayModel.Convert(img.At(2, 2)).(color.Gray).Y //nolint:forcetypeassert // the model gives nothing else
		if dark == (back > 100) {
			t.Errorf("dark %v: the background's brightness is %d", dark, back)
		}
		if n := ink(img, back); n < 2000 {
			t.Errorf("dark %v: %d pixels stand out from the background", dark, n)
		}
	}
}

// ink counts the pixels that clearly differ from a brightness.
func ink(img image.Image, back uint8) (n int) {
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			if d := int((r+g+b)/3>>8) - int(back); d > 90 || d < -90 {
				n++
			}
		}
	}
	return n
}

// A capture of 100,000 packets makes a page of less than 3 MB. Its graphs say
// that columns are merged.
func TestReportSize(t *testing.T) {
	testenv.Grid(t, "a page of 100,000 packets")
	dir := t.TempDir()
	capture, page := filepath.Join(dir, "long.pcapng"), filepath.Join(dir, "report.html")
	output(t, "simulate", "--protocol", "gaffer:reliable", "--seed", "3", "--loss", "3%", "--delay", "30ms", "--jitter",
		"10ms", "--rate", "60", "--duration", "833s", "--tap", "a", "-w", capture)
	output(t, "report", "--replay=false", "-o", page, capture)
	info, err := os.Stat(page)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "shows the least and the greatest") {
		t.Error("the page does not say that its columns are joined")
	}
	if info.Size() >= 3_000_000 {
		t.Errorf("the page has %d bytes", info.Size())
	}
	t.Logf("%d bytes", info.Size())
}
