//go:build !linux

package main

import "github.com/ackscope/ackscope/capture/afpacket"

// openWithLeast has nothing to give up where there is no live capture.
func openWithLeast([]afpacket.Options, string) error { return nil }
