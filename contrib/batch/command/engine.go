package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/dataflow"  // --runner dataflow
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/flink"     // --runner flink
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"     // --runner prism
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/spark"     // --runner spark
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal" // --runner portable
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/contrib/batch/pipeline"
)

// engine says where the pipeline runs.
type engine struct {
	runner      string
	endpoint    string
	environment string
	config      string
	further     []string // further ones of Beam: NAME=VALUE
	log         string
}

var (
	runners      = []string{"prism", "flink", "spark", "dataflow", "portable"}
	environments = []string{"LOOPBACK", "PROCESS", "EXTERNAL", "DOCKER"}
	logLevels    = []string{"debug", "info", "warn", "error", "none"}
)

func (e *engine) register(f *pflag.FlagSet) {
	f.StringVar(&e.runner, "runner", "prism", "the engine: `"+strings.Join(runners, "|")+"`")
	f.StringVar(&e.endpoint, "endpoint", "", "`ADDRESS` of the engine's job service (default: Prism in this process)")
	f.StringVar(&e.environment, "environment", "", "where its workers run: `"+strings.Join(environments, "|")+
		"` (default: with Prism LOOPBACK, else DOCKER)")
	f.StringVar(&e.config, "environment-config", "", "`TEXT` for the environment: of EXTERNAL the address of a pool, of "+
		"PROCESS the program, of DOCKER the image")
	f.StringArrayVar(&e.further, "beam", nil, "set a further option of Beam: `NAME=VALUE` (repeatable)")
	f.StringVar(&e.log, "log", "none", "tell what the engine does, from the level `"+strings.Join(logLevels, "|")+"`")
}

func (e *engine) check() error {
	e.environment = strings.ToUpper(e.environment)
	switch {
	case !slices.Contains(runners, e.runner):
		return fmt.Errorf("--runner %q: expected %s", e.runner, strings.Join(runners, ", "))
	case e.environment != "" && !slices.Contains(environments, e.environment):
		return fmt.Errorf("--environment %q: expected %s", e.environment, strings.Join(environments, ", "))
	case !slices.Contains(logLevels, e.log):
		return fmt.Errorf("--log %q: expected %s", e.log, strings.Join(logLevels, ", "))
	case e.endpoint == "" && e.runner != "prism" && e.runner != "dataflow":
		return fmt.Errorf("--runner %s: expected --endpoint with the address of its job service", e.runner)
	case e.environment == "EXTERNAL" && e.config == "":
		return errors.New("--environment EXTERNAL: expected --environment-config with the address of a pool, as that of " +
			"`ackscope-beam worker`")
	}
	for _, x := range e.further {
		name, _, ok := strings.Cut(x, "=")
		if !ok || flag.Lookup(name) == nil {
			return fmt.Errorf("--beam %q: expected NAME=VALUE, with an option of Beam's Go SDK", x)
		}
	}
	return nil
}

// set passes the options to Beam, which has them as flags of the process.
func (e *engine) set() error {
	if e.environment == "" && e.runner == "prism" {
		e.environment = "LOOPBACK"
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	config := e.config
	if e.environment == "PROCESS" && !strings.HasPrefix(config, "{") {
		if config == "" {
			config = program
		}
		b, err := json.Marshal(map[string]string{"command": config})
		if err != nil {
			return err
		}
		config = string(b)
	}
	*jobopts.Endpoint, *jobopts.EnvironmentType, *jobopts.EnvironmentConfig = e.endpoint, e.environment, config
	if e.environment == "PROCESS" || e.environment == "EXTERNAL" {
		*jobopts.WorkerBinary = program // else Beam may compile one
	}
	for _, x := range e.further {
		name, value, _ := strings.Cut(x, "=")
		if err := flag.Set(name, value); err != nil {
			return fmt.Errorf("--beam %s: %w", name, err)
		}
	}
	return nil
}

// ownTemporary gives this process, and those that it starts, a folder of their own for temporary
// files. Beam leaves a file there at each run. clean removes the folder.
func ownTemporary() (clean func() error, err error) {
	folder, err := os.MkdirTemp("", "ackscope-beam-*")
	if err != nil {
		return nil, err
	}
	was := os.TempDir()
	return func() error { return errors.Join(os.Setenv("TMPDIR", was), os.RemoveAll(folder)) }, os.Setenv("TMPDIR", folder)
}

// logTo sets from which level on the engine's messages are shown.
func logTo(level string) {
	least := slog.LevelError + 1 // "none": the error of the job tells what matters
	if level != "none" {
		_ = least.UnmarshalText([]byte(level)) // it was checked
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: least})))
}

// brief returns the error of a job without the plan of the engine around it.
func brief(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if i := strings.LastIndex(text, "] failed:\n"); i >= 0 {
		return errors.New("the job failed: " + text[i+len("] failed:\n"):])
	}
	return err
}

// execute runs a job to its end.
func (e *engine) execute(ctx context.Context, job pipeline.Job) (err error) {
	if err := e.set(); err != nil {
		return err
	}
	if !beam.Initialized() {
		beam.Init()
	}
	defer func() { err = errors.Join(err, pipeline.ClosePools()) }()
	clean, err := ownTemporary()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean()) }()
	p := pipeline.Build(job)
	logTo(e.log) // Beam sets its own logger when it builds a pipeline
	ended := make(chan error, 1)
	go func() {
		_, err := beam.Run(ctx, e.runner, p)
		ended <- brief(err)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done(): // Beam's servers may wait for ever for calls that have not ended
		return errors.New("interrupted: the same command runs the job again")
	}
}
