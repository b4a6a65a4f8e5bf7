//go:build !js

package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent lets the heap grow by a fifth between collections. A packet allocates nothing in steady
	// state, so collecting more often costs nothing. With very many flows it saves a third of the memory.
	gcPercent = 20
	// gcPercentStart lets it grow to some 16 MB before the first collection.
	gcPercentStart = 300
	// gcRoom lets a small heap grow by so many bytes at least. The program's own tables cost more to scan
	// than a collection frees.
	// Source: measured, on two threads `findings` makes 7 collections, not 13
	gcRoom = 6 << 20
	// paceLeast and paceMost bound how long it takes until a collection is noticed. A program that rests
	// wakes seldom.
	// Source: bound, at the most the heap has doubled some times meanwhile
	paceLeast, paceMost = 10 * time.Millisecond, time.Second
)

// percentFor returns by what percentage the heap may grow that a collection left. marked is what it
// marked: on the heap, and in global variables.
func percentFor(marked uint64) int {
	return max(gcPercent, min(gcPercentStart, int(100*gcRoom/max(marked, 1))))
}

// paceCollector sets after each collection by how much the heap may grow. The runtime says that one
// has ended, but late where one thread is busy. So paceCollector also looks for itself.
func paceCollector() {
	debug.SetGCPercent(gcPercentStart)
	go func() {
		sample := []metrics.Sample{
			{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/globals:bytes"},
		}
		ended := collections()
		seen, percent, pause := uint64(0), gcPercentStart, paceLeast
		for {
			select {
			case <-ended:
			case <-time.After(pause):
			}
			metrics.Read(sample)
			cycles := sample[0].Value.Uint64()
			if cycles == seen {
				pause = min(2*pause, paceMost)
				continue
			}
			seen, pause = cycles, paceLeast
			if p := percentFor(sample[1].Value.Uint64() + sample[2].Value.Uint64()); p != percent {
				percent = p
				debug.SetGCPercent(p)
			}
		}
	}()
}

// collections returns a channel that gets a value when a collection has ended.
func collections() <-chan struct{} {
	ended := make(chan struct{}, 1)
	var wait func()
	wait = func() {
		runtime.AddCleanup(new([16]byte), func(struct{}) {
			wait()
			select {
			case ended <- struct{}{}:
			default: // the one before is not noticed yet
			}
		}, struct{}{})
	}
	wait()
	return ended
}
