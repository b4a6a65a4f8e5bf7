//go:build cgoring && cgo && linux

// cgoring writes the packets of an interface to a pcap file with gopacket's own
// ring, which needs cgo. `make benchlive` compares our captures with it.
//
//	cgoring INTERFACE FILE MIB
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/gopacket/afpacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "cgoring:", err)
		os.Exit(1)
	}
}

func run(device, path, mib string) error {
	size, err := strconv.Atoi(mib)
	if err != nil {
		return err
	}
	const block = 1 << 20
	ring, err := afpacket.NewTPacket(afpacket.OptInterface(device), afpacket.OptFrameSize(2048),
		afpacket.OptBlockSize(block),
		afpacket.OptNumBlocks(size), afpacket.OptPollTimeout(50*time.Millisecond), afpacket.TPacketVersion3)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	w := pcapgo.NewWriter(buffered)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		return err
	}
	var stop atomic.Bool
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	go func() {
		<-interrupt
		stop.Store(true)
	}()
	fmt.Fprintln(os.Stderr, "capturing on", device)
	captured := 0
	for {
		data, info, err := ring.ZeroCopyReadPacketData()
		switch {
		case errors.Is(err, afpacket.ErrTimeout):
			if stop.Load() {
				_, v3, err := ring.SocketStats()
				if err != nil {
					return err
				}
				fmt.Printf("{\"captured\":%d,\"dropped\":%d}\n", captured, v3.Drops())
				return errors.Join(buffered.Flush(), file.Close())
			}
			continue
		case err != nil:
			return err
		}
		captured++
		if err := w.WritePacket(info, data); err != nil {
			return err
		}
	}
}
