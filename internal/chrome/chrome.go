// Package chrome drives a headless Chromium for tests, over the DevTools protocol on two pipes:
//
//	b := chrome.Start(t, testenv.Need(t, "chromium"))
//	p := b.Open(t, "http://127.0.0.1:4242/", 1280, 800, false)
//	var title string
//	p.Eval(t, "document.title", &title)
//
// A message is JSON and ends with a zero byte.
// Source: Chrome DevTools Protocol; --remote-debugging-pipe reads descriptor 3 and writes 4
package chrome

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// answerTime is how long a command may take. The longest is an analysis of a large capture.
const answerTime = 3 * time.Minute

// Browser is a running Chromium.
type Browser struct {
	to io.Writer

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	events  []Event
	ended   error
}

// Event is what the browser told without being asked.
type Event struct {
	Session string
	Method  string
	Params  json.RawMessage
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts the browser, and ends it with the test. No name resolves, so that a page reaches
// addresses of this machine only.
func Start(t testing.TB, program string) *Browser {
	t.Helper()
	hear, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, answer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(),
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--enable-precise-memory-info", "about:blank")
	cmd.ExtraFiles = []*os.File{hear, answer}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = hear.Close(), answer.Close()
	b := &Browser{to: tell, waiting: map[int]chan message{}}
	read := make(chan struct{})
	go func() {
		b.read(from)
		close(read)
	}()
	t.Cleanup(func() {
		b.Call(t, "", "Browser.close", nil, nil)
		_ = cmd.Wait() // it was told to end; how it did does not matter
		<-read
		_, _ = tell.Close(), from.Close()
	})
	return b
}

// read passes answers to those who wait, and keeps events.
func (b *Browser) read(from io.Reader) {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := r.ReadBytes(0)
		b.mu.Lock()
		if err != nil {
			b.ended = err
			for _, c := range b.waiting {
				close(c)
			}
			b.waiting = nil
			b.mu.Unlock()
			return
		}
		var m message
		if err := json.Unmarshal(line[:len(line)-1], &m); err == nil {
			if c := b.waiting[m.ID]; m.ID != 0 && c != nil {
				c <- m
				delete(b.waiting, m.ID)
			} else {
				b.events = append(b.events, Event{m.Session, m.Method, m.Params})
			}
		}
		b.mu.Unlock()
	}
}

// Call runs a command of the protocol in a session, "" for that of the browser. It stores the
// result in into, unless that is nil.
func (b *Browser) Call(t testing.TB, session, method string, params, into any) {
	t.Helper()
	if err := b.call(session, method, params, into); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

func (b *Browser) call(session, method string, params, into any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer := make(chan message, 1)
	b.mu.Lock()
	if b.waiting == nil {
		b.mu.Unlock()
		return fmt.Errorf("the browser has ended: %w", b.ended)
	}
	b.last++
	m := message{ID: b.last, Session: session, Method: method, Params: text}
	if params == nil {
		m.Params = nil
	}
	b.waiting[m.ID] = answer
	line, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(line, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case got, ok := <-answer:
		switch {
		case !ok && method == "Browser.close":
			return nil
		case !ok:
			return fmt.Errorf("the browser has ended: %w", b.ended)
		case got.Error != nil:
			return fmt.Errorf("%s", got.Error.Message)
		case into != nil:
			return json.Unmarshal(got.Result, into)
		}
		return nil
	case <-time.After(answerTime):
		return fmt.Errorf("no answer in %v", answerTime)
	}
}

// Events returns the events so far whose method is one of those named.
func (b *Browser) Events(methods ...string) (list []Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		for _, m := range methods {
			if e.Method == m {
				list = append(list, e)
			}
		}
	}
	return list
}

// Page is a page that is open.
type Page struct {
	browser *Browser
	session string
}

// Open opens a page in a window of so many pixels. The network and the console of the page and of
// its workers are recorded as events.
func (b *Browser) Open(t testing.TB, url string, width, height int, dark bool) *Page {
	t.Helper()
	var target struct {
		TargetID string `json:"targetId"`
	}
	b.Call(t, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.Call(t, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &Page{b, attached.SessionID}
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		p.Call(t, domain+".enable", nil, nil)
	}
	// Otherwise the browser keeps what arrives for the test, and the page's thread decodes it a second time.
	p.Call(t, "Network.enable", map[string]any{"maxTotalBufferSize": 1, "maxResourceBufferSize": 1}, nil)
	p.Resize(t, width, height, dark)
	p.Call(t, "Page.navigate", map[string]any{"url": url}, nil)
	p.Until(t, "document.readyState === 'complete'")
	return p
}

// Call runs a command of the protocol for the page.
func (p *Page) Call(t testing.TB, method string, params, into any) {
	t.Helper()
	p.browser.Call(t, p.session, method, params, into)
}

// Resize sets the size of the window and the theme.
func (p *Page) Resize(t testing.TB, width, height int, dark bool) {
	t.Helper()
	p.Call(t, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
	}, nil)
	theme := map[bool]string{false: "light", true: "dark"}[dark]
	p.Call(t, "Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}},
	}, nil)
}

// Eval evaluates an expression, which may be a promise, and stores its value in into, unless that
// is nil.
func (p *Page) Eval(t testing.TB, expression string, into any) {
	t.Helper()
	var got struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	p.Call(t, "Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true,
	}, &got)
	if got.Exception != nil {
		t.Fatalf("%s: %s %s", expression, got.Exception.Text, got.Exception.Exception.Description)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(got.Result.Value, into); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
}

// Until waits until an expression is true.
func (p *Page) Until(t testing.TB, expression string) {
	t.Helper()
	deadline := time.Now().Add(answerTime)
	for {
		var ok bool
		p.Eval(t, "!!("+expression+")", &ok)
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so within %v", expression, answerTime)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Choose gives files to the input element that a selector finds.
func (p *Page) Choose(t testing.TB, selector string, paths ...string) {
	t.Helper()
	var got struct {
		Result struct {
			ObjectID string `json:"objectId"`
		} `json:"result"`
	}
	p.Call(t, "Runtime.evaluate", map[string]any{
		"expression": fmt.Sprintf("document.querySelector(%q)", selector),
	}, &got)
	p.Call(t, "DOM.setFileInputFiles", map[string]any{"files": paths, "objectId": got.Result.ObjectID}, nil)
}

// Screenshot returns a picture of the window as PNG.
func (p *Page) Screenshot(t testing.TB) []byte {
	t.Helper()
	var got struct {
		Data string `json:"data"`
	}
	p.Call(t, "Page.captureScreenshot", map[string]any{"format": "png"}, &got)
	text, err := base64.StdEncoding.DecodeString(got.Data)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// keyCodes are the codes of the keys that have no letter. Without its code, a browser does nothing
// of its own at a key: it closes no dialog and moves no focus.
// Source: Windows virtual key codes, which Input.dispatchKeyEvent takes
var keyCodes = map[string]int{
	"Tab": 9, "Enter": 13, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36, "ArrowLeft": 37,
	"ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
}

// Press presses keys where the focus is: letters, or names as "Enter".
func (p *Page) Press(t testing.TB, keys ...string) {
	t.Helper()
	for _, key := range keys {
		text := ""
		if len(key) == 1 {
			text = key
		} else if key == "Enter" {
			text = "\r"
		}
		p.Call(t, "Input.dispatchKeyEvent", map[string]any{
			"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": keyCodes[key],
		}, nil)
		p.Call(t, "Input.dispatchKeyEvent", map[string]any{
			"type": "keyUp", "key": key, "windowsVirtualKeyCode": keyCodes[key],
		}, nil)
	}
}

// Type types a text where the focus is.
func (p *Page) Type(t testing.TB, text string) {
	t.Helper()
	p.Call(t, "Input.insertText", map[string]any{"text": text}, nil)
}
