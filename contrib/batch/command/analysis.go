package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/contrib/batch/apart"
	"github.com/ackscope/ackscope/contrib/batch/place"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/protocols"
	"github.com/ackscope/ackscope/schema/yamlfile"
	"github.com/ackscope/ackscope/unit"
)

// analysis are the flags that decide what is found in a capture. They are those of ackscope.
type analysis struct {
	decodeAs        []string
	profiles        []string
	keys, schema    string
	thresholds      string
	set             []string
	vantage, memory string
	packets         uint64
}

func (a *analysis) register(f *pflag.FlagSet) {
	f.StringArrayVarP(&a.decodeAs, "decode-as", "d", nil, "the protocol of a port: `udp.port==7777,gaffer`")
	f.StringSliceVar(&a.profiles, "profiles", nil, "`FILE` of profiles, as of ackscope")
	f.StringVar(&a.keys, "keys", "", "`FILE` of the game's keys, as of ackscope")
	f.StringVar(&a.schema, "schema", "", "`FILE` of a schema of messages, as of ackscope")
	f.StringVar(&a.thresholds, "thresholds", "", "`FILE` of limits of steady trouble, as of ackscope")
	f.StringSliceVar(&a.set, "set", nil, "set such limits: `loss=3%,rtt=150ms`; off switches one off")
	f.StringVar(&a.vantage, "vantage", "", "where the tap was: `a|b|both|between|unknown`")
	f.StringVar(&a.memory, "memory", "", "bound the analysis of one capture by `SIZE` (512MiB)")
	f.Uint64Var(&a.packets, "packets", 0, "read at most so many packets of each capture, 0 for all")
}

// arguments returns the flags for a process of any worker. Paths do not depend on its folder.
func (a *analysis) arguments() (args []string, err error) {
	add := func(flag, value string) {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	for _, x := range a.decodeAs {
		add("decode-as", x)
	}
	for _, x := range a.set {
		add("set", x)
	}
	add("vantage", a.vantage)
	add("memory", a.memory)
	if a.packets > 0 {
		add("packets", fmt.Sprint(a.packets))
	}
	files := []struct{ flag, path string }{{"keys", a.keys}, {"schema", a.schema}, {"thresholds", a.thresholds}}
	for _, path := range a.profiles {
		files = append(files, struct{ flag, path string }{"profiles", path})
	}
	for _, f := range files {
		path := f.path
		if path != "" {
			if path, err = anywhere(path); err != nil {
				return nil, err
			}
		}
		add(f.flag, path)
	}
	return args, nil
}

// anywhere returns a path that does not depend on the folder of the process. Addresses do not.
func anywhere(path string) (string, error) {
	if batch.IsAddress(path) {
		return path, nil
	}
	return filepath.Abs(path)
}

// leastMemory is the least that --memory accepts, as with ackscope.
const leastMemory = 64 << 20

// options reads the files, and returns the options of an analysis.
func (a *analysis) options() (o unit.Options, err error) {
	p := protocols.Options{DecodeAs: a.decodeAs}
	for _, path := range a.profiles {
		file, err := userFile(path)
		if err != nil {
			return o, err
		}
		p.Profiles = append(p.Profiles, *file)
	}
	if p.Keys, err = userFile(a.keys); err != nil {
		return o, err
	}
	if p.Schema, err = userFile(a.schema); err != nil {
		return o, err
	}
	set, err := protocols.New(p)
	if err != nil {
		return o, err
	}
	o = unit.Options{Registry: set.Registry, DecodeAs: set.DecodeAs, Packets: a.packets}
	if a.vantage != "" {
		v, ok := machine.ParseVantage(a.vantage)
		if !ok {
			return o, fmt.Errorf("--vantage %q: expected a, b, both, between or unknown", a.vantage)
		}
		o.Vantage = &v
	}
	if a.memory != "" {
		if o.Memory, err = app.ParseSize(a.memory); err != nil {
			return o, fmt.Errorf("--memory: %w", err)
		}
		if o.Memory < leastMemory {
			return o, fmt.Errorf("--memory %s: expected 64 MiB at least", a.memory)
		}
	}
	o.Thresholds, err = a.limits()
	return o, err
}

// mostUserFile bounds a file of the user in a store.
// Source: bound, memory; more than package yamlfile accepts
const mostUserFile = 64 << 20

// userFile returns a file of the user, with its content if that is in a store. "" is no file.
func userFile(path string) (*protocols.File, error) {
	switch {
	case path == "":
		return nil, nil
	case !batch.IsAddress(path):
		return &protocols.File{Path: path}, nil
	}
	b, err := place.Read(context.Background(), path, mostUserFile)
	return &protocols.File{Path: path, Data: b}, err
}

// limits returns the limits of steady trouble; nil for the default ones.
func (a *analysis) limits() (*analyze.Thresholds, error) {
	if a.thresholds == "" && len(a.set) == 0 {
		return nil, nil
	}
	t := analyze.DefaultThresholds()
	if a.thresholds != "" {
		file, err := userFile(a.thresholds)
		if err == nil && file.Data == nil {
			file.Data, err = yamlfile.ReadFile(file.Path)
		}
		if err == nil {
			err = yamlfile.Settings(file.Data, file.Path, t.Set)
		}
		if err != nil {
			return nil, fmt.Errorf("--thresholds: %w", err)
		}
	}
	for _, text := range a.set {
		name, value, ok := strings.Cut(text, "=")
		err := errors.New("expected NAME=VALUE, for example loss=3%")
		if ok {
			err = t.Set(name, value)
		}
		if err != nil {
			return nil, fmt.Errorf("--set %s: %w", text, err)
		}
	}
	return &t, nil
}

// serve analyses captures for the process that started this one.
func (a *analysis) serve() error {
	o, err := a.options()
	if err != nil {
		return err
	}
	return Serve(apart.NewAnalyzer(o))
}

// Serve serves the process that started this one with a worker.
func Serve(w batch.Worker) error {
	// That process ends this one. An interrupt at the terminal reaches both.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	return errors.Join(batch.Serve(os.Stdin, os.Stdout, w), w.Close())
}
