// Package store holds a capture for the screens: its packets, its flows, and the jobs
// that look through it in the background.
//
//	s := store.New(in, analyze.Options{Registry: registry}, false)
//	s.Start()               // reads in the background, and tells Changed
//	s.Lock()
//	f := s.FlowOf(300)      // the flow of entry 300, of so many as there are so far
//	err := s.StateAt(f, 300, &views)
//	s.Unlock()
//
// Packet bytes stay in the file. Every look at it wants the lock held, and every job
// (FilterJob, Collect, Replay, Saving) lets go of it after a batch. It knows no terminal.
package store
