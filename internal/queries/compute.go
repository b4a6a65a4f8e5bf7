package queries

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// Row is a row of `ackscope flows --json` or `ackscope findings --json`. A column without a value is nil. Tests compute
// from such rows what a query must return.
type Row map[string]any

// Text returns a column of texts, or "".
func (r Row) Text(name string) string { s, _ := r[name].(string); return s }

// Number returns a column of whole numbers, or 0.
func (r Row) Number(name string) int { x, _ := r[name].(float64); return int(x) }

// Program builds ackscope for a test of any module of this repository.
func Program(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ackscope")
	build := exec.Command("go", "build", "-o", path, "./cmd/ackscope")
	build.Dir = Root(t)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	return path
}

// Root returns the folder of the repository.
func Root(t testing.TB) string {
	t.Helper()
	for dir := testenv.Module(t); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "ackscope")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("expected cmd/ackscope above the package, found none")
		}
	}
}

// RowsOf returns the rows that the program prints of a capture. It may complain of the capture.
func RowsOf(t testing.TB, program, table, path string) (rows []Row) {
	t.Helper()
	out, err := exec.Command(program, table, "--json", path).Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("%s %s: %v", table, path, err)
	}
	for line := range bytes.Lines(out) {
		r := Row{}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s %s: %v in %s", table, path, err, line)
		}
		rows = append(rows, r)
	}
	return rows
}

// Unexplained returns a capture of datagrams that no protocol explains.
func Unexplained() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 101, 0, 0, 0) // version 2.4, raw IP
	for i := range 20 {
		payload := []byte(fmt.Sprintf("HELO %d this is some text of a chat", i*i))
		length := uint16(28 + len(payload))
		ip := []byte{0x45, 0, byte(length >> 8), byte(length), 0, byte(i), 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
		ip = binary.BigEndian.AppendUint16(ip, 4000)
		ip = binary.BigEndian.AppendUint16(ip, 5000)
		ip = binary.BigEndian.AppendUint16(ip, length-20)
		ip = append(append(ip, 0, 0), payload...)
		for _, n := range []uint32{1_700_000_000 + uint32(i), 0, uint32(len(ip)), uint32(len(ip))} {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
		b = append(b, ip...)
	}
	return b
}

// PerThousand returns n of 1,000; nil if there is nothing to count.
func PerThousand(n, of int) any {
	if of == 0 {
		return nil
	}
	return 1000 * float64(n) / float64(of)
}

// Last compares texts or numbers, with nil behind all others.
func Last(x, y any) int {
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return 1
	case y == nil:
		return -1
	}
	if s, ok := x.(string); ok {
		return cmp.Compare(s, y.(string))
	}
	return cmp.Compare(x.(float64), y.(float64))
}

// Falling compares numbers: the larger one comes first, and nil last.
func Falling(x, y any) int {
	if x == nil || y == nil {
		return Last(x, y)
	}
	return -Last(x, y)
}

// Quantile returns a quantile between values; nil if there are none.
func Quantile(of float64, values []float64) any {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	at := of * float64(len(values)-1)
	low := int(at)
	high := min(low+1, len(values)-1)
	return values[low] + (values[high]-values[low])*(at-float64(low))
}

// Known returns the values of a column of both sides that are known, and how many are not.
func Known(flows []Row, column string) (values []float64, unknown int) {
	for _, f := range flows {
		for _, side := range []string{"_a", "_b"} {
			if x, ok := f[column+side].(float64); ok {
				values = append(values, x)
			} else {
				unknown++
			}
		}
	}
	return values, unknown
}
