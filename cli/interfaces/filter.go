//go:build !js

package interfaces

import (
	"github.com/ackscope/ackscope/capture/afpacket"
	"github.com/ackscope/ackscope/capture/pcapfilter"
)

// checkFilter refuses a wrong capture filter.
func checkFilter(text string) error {
	_, err := pcapfilter.Compile(text, pcapfilter.EthernetSocket, 1)
	return err
}

// readProgram sets the filter to a BPF program in the form of tcpdump -ddd.
func readProgram(o *afpacket.Options, text string) (err error) {
	o.Program, err = pcapfilter.ParseRaw(text)
	return err
}
