package tracker

import "github.com/ackscope/ackscope/machine/gaffer"

// reliable and article give the rules of the two forms that tests here use.
func reliable() *gaffer.Rules {
	return &gaffer.Rules{SequenceBits: 16, AckBits: 32, Sent: 256, Received: 256, Partial: 64}
}

func article() *gaffer.Rules {
	return &gaffer.Rules{SequenceBits: 16, AckBits: 32, Sent: 1024, Received: 1024}
}
