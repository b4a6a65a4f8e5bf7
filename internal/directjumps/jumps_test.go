package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// bodyOf returns a function with the table 0, 1, 2, 2 and a block around its loop, as one that calls
// has. Sections 0 and 1 are given.
func bodyOf(first, second []byte) []byte {
	return slices.Concat(
		[]byte{1, 2, 0x7f, opGlobalGet, 0, opLocalSet, 1},
		[]byte{opBlock, 0x40, opLoop, 0x40, opBlock, 0x40, opBlock, 0x40, opBlock, 0x40},
		[]byte{opLocalGet, 0, opBrTable, 3, 0, 1, 2, 2, opEnd}, first,
		[]byte{opEnd}, second,
		[]byte{opEnd, opI32Const, 0, opReturn, opEnd, 0, opEnd, opI32Const, 1, opEnd},
	)
}

// to is a jump by the table to what a number means, over so many open blocks to the loop.
func to(number, around byte) []byte {
	return []byte{opI32Const, number, opLocalSet, 0, opBr, around}
}

// in puts code into a block that an i32 chooses.
func in(code []byte) []byte {
	return slices.Concat([]byte{opLocalGet, 1, opIf, 0x40}, code, []byte{opEnd})
}

// Jumps forward become direct, wherever they stand. All others stay as they are.
func TestJumps(t *testing.T) {
	nothing := []byte{opNop}
	call := []byte{opI32Const, 5, opLocalSet, 0, opI32Const, 0, opLocalGet, 0, opCallIndirect, 0, 0, opBrIf, 3}
	for _, x := range []struct {
		name          string
		first, second []byte
		want          []byte // in place of the first section; nil if the function stays
		jumps         jumps
	}{
		{"next", to(1, 2), nothing, []byte{opBr, 0}, jumps{direct: 1}},
		{"over one", to(2, 2), nothing, []byte{opBr, 1}, jumps{direct: 1}},
		{"the rest of the table", to(9, 2), nothing, []byte{opBr, 1}, jumps{direct: 1}},
		{"nested", in(in(to(1, 4))), nothing, in(in([]byte{opBr, 2})), jumps{direct: 1}},
		{"itself", in(to(0, 3)), nothing, nil, jumps{back: 1}},
		{"back", in(to(1, 3)), in(to(0, 2)), in([]byte{opBr, 1}), jumps{direct: 1, back: 1}},
		{"not to the loop", in(to(1, 2)), nothing, nil, jumps{}},
		{"to another local", in([]byte{opI32Const, 1, opLocalSet, 1, opBr, 3}), nothing, nil, jumps{}},
		{
			"local 0 for a call", slices.Concat(call, to(1, 2)), nothing, slices.Concat(call, []byte{opBr, 0}),
			jumps{direct: 1},
		},
		{
			"local 0 for something else", slices.Concat([]byte{opLocalGet, 0, opDrop}, to(1, 2)), nothing, nil,
			jumps{other: 1},
		},
		{
			"local 0 kept", slices.Concat([]byte{opI32Const, 1, opLocalTee, 0, opDrop}, to(1, 2)), nothing, nil,
			jumps{other: 1},
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			body, want := bodyOf(x.first, x.second), bodyOf(x.first, x.second)
			if x.want != nil {
				want = bodyOf(x.want, x.second)
			}
			var got jumps
			of := &decoder{}
			after := got.rewrite(body, of)
			if of.err != nil || !bytes.Equal(after, want) {
				t.Errorf("got      %x (%v)\nexpected %x", after, of.err, want)
			}
			if got != x.jumps {
				t.Errorf("counted %+v, expected %+v", got, x.jumps)
			}
			if a, b := meaning(t, body), meaning(t, after); !slices.Equal(a, b) {
				t.Errorf("before %q\nafter  %q", a, b)
			}
		})
	}
}

// A function without the loop or the table stays.
func TestOtherFunctions(t *testing.T) {
	for _, body := range [][]byte{
		{0, opEnd},
		{0, opLocalGet, 0, opDrop, opEnd},
		slices.Concat(
			[]byte{0, opBlock, 0x40, opBlock, 0x40, opLocalGet, 0, opBrTable, 1, 0, 1, opEnd},
			to(1, 0), []byte{opEnd, opEnd},
		),
	} {
		var got jumps
		of := &decoder{}
		if after := got.rewrite(body, of); of.err != nil || !bytes.Equal(after, body) || got != (jumps{}) {
			t.Errorf("%x became %x (%v), %+v", body, after, of.err, got)
		}
	}
}

// A file that is cut anywhere, or has an instruction that is not known, is an error.
func TestDamaged(t *testing.T) {
	body := bodyOf(to(1, 2), []byte{opNop})
	section := append([]byte{1, byte(len(body))}, body...)
	module := slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), []byte{sectionCode, byte(len(section))}, section)
	if _, got, err := rewrite(module); err != nil || got.direct != 1 {
		t.Fatal(got, err)
	}
	for n := range len(module) {
		if _, _, err := rewrite(module[:n]); err == nil && n != 8 { // 8 bytes are a module without sections
			t.Errorf("the first %d bytes are no error", n)
		}
	}
	strange := bodyOf([]byte{0xd0, 0x70}, to(1, 1))
	of := &decoder{}
	if new(jumps).rewrite(strange, of); of.err == nil {
		t.Error("an instruction that is not known is no error")
	}
}

// functions returns the bodies of a module's functions.
func functions(t *testing.T, module []byte) (list [][]byte) {
	t.Helper()
	d := &decoder{b: module, at: 8}
	for d.err == nil && d.at < len(module) {
		id, section := d.byte(), &decoder{b: d.part()}
		if id != sectionCode {
			continue
		}
		for n := section.unsigned(); n > 0; n-- {
			list = append(list, section.part())
		}
		if section.err != nil {
			t.Fatal(section.err)
		}
	}
	if d.err != nil {
		t.Fatal(d.err)
	}
	return list
}

// Every function of a real program means the same after it, and the program does the same. Most of
// the jumps are direct.
func TestProgram(t *testing.T) {
	testenv.Grid(t, "a build for the browser")
	wasm := filepath.Join(t.TempDir(), "jumps.wasm")
	c := exec.Command("go", "build", "-o", wasm, "./testdata/jumps")
	c.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	before := read(t, wasm)
	printed := prints(t, wasm)
	if err := run([]string{wasm}); err != nil {
		t.Fatal(err)
	}
	if got := prints(t, wasm); got != printed || len(printed) < 100 {
		t.Errorf("it prints %q, expected %q", got, printed)
	}
	_, all, err := rewrite(before)
	if err != nil || all.direct < 5*all.back || all.other != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	after := read(t, wasm)
	old, made := functions(t, before), functions(t, after)
	if len(old) != len(made) || len(old) < 1000 {
		t.Fatalf("%d functions became %d", len(old), len(made))
	}
	for i := range old {
		if was, is := meaning(t, old[i]), meaning(t, made[i]); !slices.Equal(was, is) {
			t.Fatalf("function %d differs:\nbefore %q\nafter  %q", i, was, is)
		}
	}
	if _, again, err := rewrite(after); err != nil || again.direct != 0 || again.back != all.back {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// prints returns what a program prints.
func prints(t *testing.T, wasm string) string {
	t.Helper()
	root := strings.TrimSpace(string(testenv.Output(t, "go", "env", "GOROOT")))
	loader := filepath.Join(root, "lib", "wasm", "wasm_exec_node.js")
	return string(testenv.Output(t, testenv.Need(t, "node"), "--stack-size=8192", loader, wasm))
}
