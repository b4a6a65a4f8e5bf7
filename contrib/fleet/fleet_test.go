// Package fleet_test runs whole fleets: processes that are killed, hostile sensors, and thousands of them.
package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ackscope/ackscope/contrib/fleet/command"
	"github.com/ackscope/ackscope/contrib/fleet/hub"
)

// roleVariable makes the test program one of the processes of a fleet.
const roleVariable = "ACKSCOPE_FLEET_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "program":
		os.Exit(command.Main(os.Args[1:], os.Stdout, os.Stderr))
	case "numbers":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := numbers(ctx, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	default:
		fmt.Fprintln(os.Stderr, "unknown role", role)
		os.Exit(2)
	}
}

// process is one process of a fleet. It can be killed and started again.
type process struct {
	t    *testing.T
	role string
	args []string

	lock  sync.Mutex
	cmd   *exec.Cmd
	out   bytes.Buffer // of all its runs
	ended chan error
}

func start(t *testing.T, role string, args ...string) *process {
	t.Helper()
	p := &process{t: t, role: role, args: args}
	p.again()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %v said:\n%s", role, args, p.said())
		}
	})
	return p
}

// again starts the process. It must not be running.
func (p *process) again() {
	p.t.Helper()
	p.lock.Lock()
	defer p.lock.Unlock()
	p.cmd = exec.Command(os.Args[0], p.args...)
	p.cmd.Env = append(os.Environ(), roleVariable+"="+p.role)
	p.cmd.Stdout, p.cmd.Stderr = &locked{p: p}, &locked{p: p}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	cmd, ended := p.cmd, make(chan error, 1)
	p.ended = ended
	go func() { ended <- cmd.Wait(); close(ended) }()
}

// locked collects what a process says.
type locked struct{ p *process }

func (l *locked) Write(b []byte) (int, error) {
	l.p.lock.Lock()
	defer l.p.lock.Unlock()
	return l.p.out.Write(b)
}

func (p *process) said() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.out.String()
}

// kill sends SIGKILL, and waits until the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop sends SIGTERM, and returns how the process ended.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait(time.Minute)
}

func (p *process) wait(most time.Duration) error {
	select {
	case err := <-p.ended:
		return err
	case <-time.After(most):
		return fmt.Errorf("%s %v: it did not end within %v; it said:\n%s", p.role, p.args, most, p.said())
	}
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// says waits until a process has said a text.
func (p *process) says(text string, most time.Duration) {
	p.t.Helper()
	until(p.t, most, func() bool { return strings.Contains(p.said(), text) || !p.running() })
	if !strings.Contains(p.said(), text) {
		p.t.Fatalf("%s %v: expected that it says %q, found:\n%s", p.role, p.args, text, p.said())
	}
}

// until waits for a condition.
func until(t *testing.T, most time.Duration, is func() bool) {
	t.Helper()
	for end := time.Now().Add(most); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("expected a condition within %v, found it is not so", most)
		}
	}
}

// ports returns free ports of this host.
func ports(t *testing.T, n int) (list []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		list = append(list, l.Addr().(*net.TCPAddr).Port)
	}
	return list
}

// fleet is a hub with keys, on this host.
type fleet struct {
	t      *testing.T
	folder string
	hubs   []*process
	urls   []string
}

// newFleet makes keys for an operator and for sites, and starts servers.
func newFleet(t *testing.T, servers int, sites []string, args ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, folder: t.TempDir()}
	for _, site := range append([]string{""}, sites...) {
		if _, err := hub.AddKey(f.folder, site); err != nil {
			t.Fatal(err)
		}
	}
	free := ports(t, 2*servers)
	var routes []string
	for i := range servers {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", free[servers+i]))
	}
	for i := range servers {
		f.urls = append(f.urls, fmt.Sprintf("nats://127.0.0.1:%d", free[i]))
		a := append([]string{
			"hub", "--name", fmt.Sprintf("hub-%d", i), "--listen", fmt.Sprintf("127.0.0.1:%d", free[i]),
			"--store", filepath.Join(f.folder, fmt.Sprintf("hub-%d", i)), "--access", hub.AccessFile(f.folder),
		}, args...)
		if servers > 1 {
			a = append(a, "--cluster", fmt.Sprintf("127.0.0.1:%d", free[servers+i]), "--routes", strings.Join(routes, ","))
		}
		f.hubs = append(f.hubs, start(t, "program", a...))
	}
	for _, h := range f.hubs {
		h.says("ready", time.Minute)
	}
	return f
}

func (f *fleet) url() string             { return strings.Join(f.urls, ",") }
func (f *fleet) key(site string) string  { return filepath.Join(f.folder, "site-"+site+".key") }
func (f *fleet) operator() string        { return filepath.Join(f.folder, "operator.key") }
func (f *fleet) file(name string) string { return filepath.Join(f.folder, name) }

// collector starts a collector of the folder "tables".
func (f *fleet) collector(args ...string) *process {
	return start(f.t, "program", append([]string{
		"collect", "--hub", f.url(), "--key", f.operator(), "-o", f.file("tables"), "--every", "300ms", "--rows", "4096",
	}, args...)...)
}

// sensor starts a sensor of numbered rows.
func (f *fleet) numbers(site, name string, rows, rate int, args ...string) *process {
	return start(f.t, "numbers", append([]string{
		"--hub", f.url(), "--key", f.key(site), "--site", site, "--name", name, "--spool", f.file("spool-" + name),
		"--journal", f.file("journal-" + name), "--rows", fmt.Sprint(rows), "--rate", fmt.Sprint(rate),
	}, args...)...)
}

// run runs the program to its end, in this process.
func run(ctx context.Context, args ...string) (string, int) {
	var out bytes.Buffer
	code := command.Run(ctx, args, &out, &out)
	return out.String(), code
}

// newKey makes an operator's key in a folder.
func newKey(t *testing.T, folder string) {
	t.Helper()
	if _, err := hub.AddKey(folder, ""); err != nil {
		t.Fatal(err)
	}
}
