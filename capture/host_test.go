package capture

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// sampled writes frames with a sample after each, whose socket has dropped as many datagrams as frames came.
func sampled(t *testing.T, frames int) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteHost(&host.Sample{}); err != nil { // there is no interface yet
		t.Fatal(err)
	}
	if _, err := w.AddInterface(Interface{Name: "eth0", LinkType: LinkEthernet}); err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		at := machine.Instant(1e18 + int64(i)*1e9)
		if err := w.WriteFrame(&Frame{At: at, Length: 60, Data: make([]byte, 60)}); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHost(&host.Sample{
			At: at, Addresses: []netip.Addr{server.Addr()}, Ports: []uint16{server.Port()},
			Sockets: []host.Socket{{Local: server, Remote: netip.MustParseAddrPort("0.0.0.0:0"), Drops: uint64(i)}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	w.SetStatistics(0, Statistics{OSDropped: 5, Known: KnownOSDropped})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

var (
	server = netip.MustParseAddrPort("10.9.1.1:40000")
	client = netip.MustParseAddrPort("10.9.2.2:50000")
)

func openSampled(t *testing.T, b []byte) *Input {
	t.Helper()
	in, err := Open([]string{"-"}, Options{Stdin: bytes.NewReader(b), Keep: KeepPipes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

// numbers reads an input to its end, and returns the numbers of its frames.
func numbers(t *testing.T, in *Input) (list []uint64) {
	t.Helper()
	var f Frame
	for in.Next(&f) == nil {
		list = append(list, f.Ref.Frame())
	}
	return list
}

// TestHostSamples: samples come back as they were written, in every pass, and change neither the frames nor the
// statistics.
func TestHostSamples(t *testing.T) {
	in := openSampled(t, sampled(t, 4))
	for range 2 {
		if got := numbers(t, in); len(got) != 4 || got[3] != 4 {
			t.Fatalf("frames %d, expected 1 to 4", got)
		}
		x := in.Host().Endpoint(server, client, 1e18, 1e18+3e9)
		if !x.Here || !x.Socket || x.Drops.N != 3 || !x.Drops.Known {
			t.Errorf("%+v", x)
		}
		if st := in.Interfaces(0)[0].Statistics; st == nil || st.OSDropped != 5 {
			t.Errorf("statistics %+v", st)
		}
		if err := in.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
	if name := in.InterfaceName(0, 0); name != "eth0" {
		t.Errorf("interface %q", name)
	}
	if name := in.InterfaceName(0, 1); name != "" {
		t.Errorf("interface %q that the file has not", name)
	}
}

// TestHostDamaged: what is no sample is skipped.
func TestHostDamaged(t *testing.T) {
	whole := sampled(t, 4)
	mark := binary.LittleEndian.AppendUint32(nil, sampleEnterprise)
	for name, change := range map[string]func(at []byte){
		"another enterprise": func(at []byte) { at[0]++ },
		"another version":    func(at []byte) { at[7]++ },
		"a wrong length":     func(at []byte) { at[len(mark)+4] = 0xff },
	} {
		b := bytes.Clone(whole)
		for at := b; ; {
			i := bytes.Index(at, mark)
			if i < 0 {
				break
			}
			change(at[i:])
			at = at[i+1:]
		}
		in := openSampled(t, b)
		if got := numbers(t, in); len(got) != 4 {
			t.Errorf("%s: frames %d", name, got)
		}
		if name != "a wrong length" && !in.Host().Empty() {
			t.Errorf("%s: there are samples", name)
		}
	}
}

// TestHostNumbers: tshark numbers the frames of a file with samples as ackscope does.
func TestHostNumbers(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	b := sampled(t, 4)
	path := filepath.Join(t.TempDir(), "sampled.pcapng")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", path, "-T", "fields", "-e", "frame.number").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(out)); len(got) != 4 || got[3] != "4" || len(numbers(t, openSampled(t, b))) != 4 {
		t.Errorf("tshark's frames %q, expected 1 to 4", got)
	}
}
