// Command ackscope, built for a browser, answers the page of `ackscope web` from a Web Worker.
package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime/debug"
	"syscall/js"

	"github.com/ackscope/ackscope/web/engine"
)

// gcPercentPage lets the heap grow by a half between collections: the browser has one thread for
// both.
const gcPercentPage = 50

// main registers the engine as the global object "ackscope" of the worker. Each function takes
// its arguments and, last, a callback that receives the exit code, the output as bytes and the
// complaints as text.
func main() {
	debug.SetGCPercent(gcPercentPage)
	e := engine.New(registry())
	object := js.Global().Get("Object").New()
	method := func(name string, run func(args []js.Value, out, complaints *bytes.Buffer) int) {
		object.Set(name, js.FuncOf(func(_ js.Value, args []js.Value) any {
			last := len(args) - 1
			go func() { // a function that JavaScript called must not wait
				var out, complaints bytes.Buffer
				code := guarded(&complaints, func() int { return run(args[:last], &out, &complaints) })
				answer := js.Global().Get("Uint8Array").New(out.Len())
				js.CopyBytesToJS(answer, out.Bytes())
				args[last].Invoke(code, answer, complaints.String())
			}()
			return nil
		}))
	}
	wrote := func(err error, complaints *bytes.Buffer) int {
		if err != nil {
			fmt.Fprintln(complaints, err)
			return 2
		}
		return 0
	}
	method("run", func(args []js.Value, out, complaints *bytes.Buffer) int {
		return e.Run(texts(args[0]), out, complaints)
	})
	method("overview", func(args []js.Value, out, complaints *bytes.Buffer) int {
		x := trade{give: args[2]}
		defer x.end()
		other := engine.Beside{Verdicts: newPromised(args[1]), Trade: x.with}
		return e.Overview(&other, texts(args[0]), out, complaints)
	})
	method("verdicts", func(args []js.Value, out, complaints *bytes.Buffer) int {
		x := trade{give: args[1]}
		defer x.end()
		return e.Verdicts(&engine.Beside{Trade: x.with}, texts(args[0]), out, complaints)
	})
	method("open", func(args []js.Value, out, complaints *bytes.Buffer) int {
		code := e.Open(texts(args[0]), complaints)
		fmt.Fprint(out, e.Len())
		return code
	})
	method("filter", func(args []js.Value, out, complaints *bytes.Buffer) int {
		code := e.Filter(args[0].String(), args[1].Int(), complaints)
		fmt.Fprint(out, e.Len())
		return code
	})
	method("rows", func(args []js.Value, out, complaints *bytes.Buffer) int {
		return wrote(e.Rows(out, args[0].Int(), args[1].Int()), complaints)
	})
	method("packet", func(args []js.Value, out, complaints *bytes.Buffer) int {
		return wrote(e.Packet(out, args[0].Int()), complaints)
	})
	method("state", func(args []js.Value, out, complaints *bytes.Buffer) int {
		return wrote(e.State(out, args[0].Int(), args[1].Int()), complaints)
	})
	method("beside", func(args []js.Value, out, _ *bytes.Buffer) int {
		fmt.Fprint(out, e.Beside(args[0].Int(), args[1].Int(), args[2].Int()))
		return 0
	})
	method("around", func(args []js.Value, out, complaints *bytes.Buffer) int {
		return wrote(e.Around(out, args[0].Int(), args[1].Int(), args[2].Int()), complaints)
	})
	method("row", func(args []js.Value, out, _ *bytes.Buffer) int {
		row, ok := e.Row(args[0].Int())
		if !ok {
			row = -1
		}
		fmt.Fprint(out, row)
		return 0
	})
	method("at", func(args []js.Value, out, _ *bytes.Buffer) int {
		fmt.Fprint(out, e.At(int64(args[0].Float())))
		return 0
	})
	js.Global().Set("ackscope", object)
	js.Global().Call("ackscopeReady")
	select {}
}

// guarded turns a panic into a complaint, so that the page can show it.
func guarded(complaints *bytes.Buffer, run func() int) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Fprintf(complaints, "a fault of ackscope itself: %v\n%s", fault, debug.Stack())
			code = 2
		}
	}()
	return run()
}

// texts returns the elements of a list of texts.
func texts(list js.Value) []string {
	out := make([]string, list.Length())
	for i := range out {
		out[i] = list.Index(i).String()
	}
	return out
}

// bytesOf returns a copy of bytes for JavaScript.
func bytesOf(b []byte) js.Value {
	to := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(to, b)
	return to
}

// trade is the other worker of a first run that two share. The function give of JavaScript takes what
// this worker learned. It returns a promise of what the other one did.
type trade struct {
	give  js.Value
	given bool
}

func (t *trade) with(own []byte) []byte {
	t.given = true
	other, _ := io.ReadAll(newPromised(t.give.Invoke(bytesOf(own)))) // it returns no error
	return other
}

// end tells the other worker that nothing comes, if it may wait.
func (t *trade) end() {
	if !t.given {
		t.give.Invoke(bytesOf(nil))
	}
}

// promised reads the bytes that a promise of JavaScript resolves to.
type promised struct {
	arrived <-chan []byte
	rest    []byte
}

func newPromised(promise js.Value) *promised {
	arrived := make(chan []byte, 1)
	var resolved js.Func
	resolved = js.FuncOf(func(_ js.Value, args []js.Value) any {
		text := make([]byte, args[0].Length())
		js.CopyBytesToGo(text, args[0])
		arrived <- text // there is room, so JavaScript does not wait
		close(arrived)
		resolved.Release()
		return nil
	})
	promise.Call("then", resolved)
	return &promised{arrived: arrived}
}

// Read implements io.Reader. It waits for the promise.
func (p *promised) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		if p.rest = <-p.arrived; len(p.rest) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
