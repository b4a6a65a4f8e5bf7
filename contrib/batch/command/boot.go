package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/harness"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"

	"github.com/ackscope/ackscope/contrib/batch/pipeline"
)

// boot makes this process a worker, as the boot program of Beam's containers would. This program
// holds the steps already, so boot fetches no program from the engine.
func boot(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	id := f.String("id", "", "")
	provision := f.String("provision_endpoint", "", "")
	control, logging := f.String("control_endpoint", "", ""), f.String("logging_endpoint", "", "")
	f.String("artifact_endpoint", "", "") // has the program
	f.String("semi_persist_dir", "", "")  // of no use without it
	if err := f.Parse(args); err != nil {
		return err
	}
	// Prism 2.77 starts a process with --id='…', and the quotes in it. It then waits for a worker
	// without them.
	*id = strings.Trim(*id, "'")
	if *id == "" || *provision == "" {
		return errors.New("a worker: expected --id and --provision_endpoint")
	}
	ctx = grpcx.WriteWorkerID(ctx, *id)
	info, err := tools.ProvisionInfo(ctx, *provision)
	if err != nil {
		return fmt.Errorf("%s: %w", *provision, err)
	}
	if url := info.GetControlEndpoint().GetUrl(); url != "" {
		*control = url
	}
	if url := info.GetLoggingEndpoint().GetUrl(); url != "" {
		*logging = url
	}
	if *control == "" || *logging == "" {
		return fmt.Errorf("%s: expected the addresses of control and logging", *provision)
	}
	text, err := tools.ProtoToJSON(info.GetPipelineOptions())
	if err != nil {
		return err
	}
	var options runtime.RawOptionsWrapper
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		return fmt.Errorf("%s: the options of the job: %w", *provision, err)
	}
	runtime.GlobalOptions.Import(options.Options)
	beam.Init()
	err = harness.MainWithOptions(ctx, *logging, *control, harness.Options{
		RunnerCapabilities: info.GetRunnerCapabilities(), StatusEndpoint: info.GetStatusEndpoint().GetUrl(),
	})
	return errors.Join(err, pipeline.ClosePools())
}
