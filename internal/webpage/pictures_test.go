package webpage

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/chrome"
	"github.com/ackscope/ackscope/internal/testenv"
)

var update = flag.Bool("update", false, "make the pictures of docs/pictures anew")

// pictureBytes is the most that a picture of the page may take, since every clone has it.
const pictureBytes = 120 << 10

// The pictures of docs/pictures show the page as it is. Letters are drawn in another way on each
// machine, so the text of the page is compared: it stands beside each picture.
func TestPictures(t *testing.T) {
	long(t)
	b, p := open(t, 1280, 800, false)
	drop(t, p, testenv.Capture(t, "u210_timeout_kill.client.pcap.gz"))
	settled(t, p)
	picture(t, p, "overview")
	p.Eval(t, "location.hash = 'file=u210_timeout_kill.client.pcap.gz&view=state&flow=1&frame=247'", nil)
	has(t, p, ".where", "frame 247 ")
	picture(t, p, "state")
	p.Press(t, "3")
	p.Eval(t, "document.getElementById('filter').focus()", nil)
	p.Type(t, "fate == acked")
	p.Press(t, "Escape", "Enter")
	has(t, p, ".packets .counted", " of 881, flow 1")
	settled(t, p)
	p.Eval(t, "document.querySelector('.vtable').focus()", nil)
	p.Press(t, "Home", "j", "j", "j", "j", "j")
	p.Until(t, "document.querySelector('.vrows [aria-selected=true]')?.getAttribute('aria-rowindex') === '7'")
	settled(t, p)
	p.Eval(t, "[...document.querySelectorAll('.field')].find((f) => f.textContent.startsWith('Sequence')).click()", nil)
	picture(t, p, "packets")
	complaints(t, b)
}

// picture compares the text of the view with that of its picture, or makes both anew.
func picture(t *testing.T, p *chrome.Page, name string) {
	t.Helper()
	settled(t, p)
	p.Eval(t, "document.activeElement?.blur()", nil)
	p.Until(t, "document.querySelector('#status progress').hidden")
	p.Eval(t, "new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))", nil)
	base := filepath.Join(testenv.Module(t), "docs", "pictures", "web-"+name)
	var text string
	// How many rows of a table fit depends on the letters of the machine: the first twelve always do.
	p.Eval(t, `["header", "#view .host:not(.packets)", "#view .packets .filterbar", ".vhead", ".vrow:nth-child(-n+12)", ".detail"]
		.flatMap((s) => [...document.querySelectorAll(s)]).map((e) => e.innerText).join("\n")`, &text)
	text = strings.TrimSpace(text) + "\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(base), 0o750); err != nil {
			t.Fatal(err)
		}
		for path, content := range map[string][]byte{base + ".txt": []byte(text), base + ".png": small(t, p.Screenshot(t))} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := string(read(t, base+".txt")); text != want {
		t.Errorf("web-%s.png shows another text: run TestPictures with -update\npage:    %.900q\npicture: %.900q", name, text,
			want)
	}
	content := read(t, base+".png")
	made, err := png.DecodeConfig(bytes.NewReader(content))
	if err != nil || made.Width != 1280 || made.Height != 800 || len(content) > pictureBytes {
		t.Errorf("web-%s.png has %d by %d pixels and %d bytes: %v", name, made.Width, made.Height, len(content), err)
	}
}

// small returns a picture of at most 256 colours: those that it has most. The page is text on plain
// ground, so the others are edges of letters.
func small(t *testing.T, content []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[color.Color]int{}
	bounds := from.Bounds()
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			counts[color.NRGBAModel.Convert(from.At(x, y))]++
		}
	}
	var palette color.Palette
	for c := range counts {
		palette = append(palette, c)
	}
	slices.SortFunc(palette, func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) })
	to := image.NewPaletted(bounds, palette[:min(len(palette), 256)])
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			to.Set(x, y, from.At(x, y))
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
