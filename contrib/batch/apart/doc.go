// Package apart analyses captures in processes of their own. So a capture that ends a process does not
// end the worker of the engine. The other captures of its bundle go on.
//
//	pool := apart.NewPool(start, 2)
//	outcome, err := pool.Analyze(ctx, &capture)
//	if err != nil {
//		// the bytes did not come
//	}
//	defer outcome.Release()
//
// A process serves one capture at a time, by batch.Serve. It writes what came of the capture into a
// file that has no name, and that both processes hold open. So the rows pass in blocks, and neither
// process holds a copy of them for the other.
package apart
