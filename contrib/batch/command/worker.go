package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
)

// workerCommand builds `ackscope-beam worker`.
func (p *program) workerCommand() *cobra.Command {
	listen := ""
	c := &cobra.Command{
		Use: "worker", Args: cobra.NoArgs,
		Short: "Serve an engine as a pool of workers",
		Long: `worker starts a worker each time that an engine asks for one, as the environment EXTERNAL
of Beam. It runs beside the engine, for example as a sidecar. Each worker is a process. It ends with
its job, or with the pool.

Who can reach the address can have this host read and write files, as this user. So expose it to the
engine alone. By default only this host reaches it.`,
		Example: `  ackscope-beam worker
  ackscope-beam run --runner flink --endpoint localhost:8099 --environment EXTERNAL \
    --environment-config localhost:50000 -o /data/tables /data/captures`,
		RunE: func(c *cobra.Command, _ []string) error { return p.serveWorkers(c.Context(), listen) },
	}
	c.Flags().StringVar(&listen, "listen", "localhost:50000", "`ADDRESS` that the engine asks")
	return c
}

func (p *program) serveWorkers(ctx context.Context, listen string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	w, err := newWorkers(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := grpc.NewServer()
	fnpb.RegisterBeamFnExternalWorkerPoolServer(server, w)
	context.AfterFunc(ctx, server.Stop)
	p.notice(fmt.Sprintf("workers: %s", l.Addr()))
	err = server.Serve(l)
	w.wait.Wait()
	return err
}

// workers are the worker processes of this host, by their ids.
type workers struct {
	fnpb.UnimplementedBeamFnExternalWorkerPoolServer
	ctx     context.Context // ends all of them
	program string
	wait    sync.WaitGroup

	mu   sync.Mutex
	stop map[string]context.CancelFunc
}

func newWorkers(ctx context.Context) (*workers, error) {
	program, err := os.Executable()
	return &workers{ctx: ctx, program: program, stop: map[string]context.CancelFunc{}}, err
}

// StartWorker implements the service of Beam.
func (w *workers) StartWorker(_ context.Context, q *fnpb.StartWorkerRequest) (*fnpb.StartWorkerResponse, error) {
	id := q.GetWorkerId()
	refused := func(why string) (*fnpb.StartWorkerResponse, error) {
		return &fnpb.StartWorkerResponse{Error: fmt.Sprintf("worker %q: %s", id, why)}, nil
	}
	provision := q.GetProvisionEndpoint()
	switch {
	case id == "" || provision.GetUrl() == "":
		return refused("expected its id and the address that provisions it")
	case provision.GetAuthentication() != nil:
		return refused("addresses with authentication are not supported")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop[id] != nil {
		return refused("runs already")
	}
	ctx, stop := context.WithCancel(w.ctx)
	command := exec.CommandContext(ctx, w.program, "--id="+id, "--provision_endpoint="+provision.GetUrl(),
		"--control_endpoint="+q.GetControlEndpoint().GetUrl(), "--logging_endpoint="+q.GetLoggingEndpoint().GetUrl())
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Start(); err != nil {
		stop()
		return refused(err.Error())
	}
	w.stop[id] = stop
	w.wait.Go(func() {
		_ = command.Wait() // the engine sees that its worker is gone
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.stop, id)
	})
	return &fnpb.StartWorkerResponse{}, nil
}

// StopWorker implements the service of Beam.
func (w *workers) StopWorker(_ context.Context, q *fnpb.StopWorkerRequest) (*fnpb.StopWorkerResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stop := w.stop[q.GetWorkerId()]
	if stop == nil {
		return &fnpb.StopWorkerResponse{Error: fmt.Sprintf("worker %q: does not run", q.GetWorkerId())}, nil
	}
	stop()
	return &fnpb.StopWorkerResponse{}, nil
}
