// Package store holds a capture for the screens: its packets, its flows, and
// the background jobs that search it.
//
//	s := store.New(in, analyze.Options{Registry: registry}, false)
//	s.Start()               // reads in the background, and signals Changed
//	s.Lock()
//	f := s.FlowOf(300)      // the flow of entry 300
//	err := s.StateAt(f, 300, &views)
//	s.Unlock()
//
// The bytes of packets stay in the file. Every access requires the lock. Every
// job (FilterJob, Collect, Replay, Saving) releases the lock after a batch. The
// package does not draw.
package store
