package tracker

import "github.com/ackscope/ackscope/machine/gaffer"

// reliable and article return the rules of the two dialects that these tests use.
func reliable() *gaffer.Rules {
	return &gaffer.Rules{SequenceBits: 16, AckBits: 32, Sent: 256, Received: 256, Partial: 64}
}

func article() *gaffer.Rules {
	return &gaffer.Rules{SequenceBits: 16, AckBits: 32, Sent: 1024, Received: 1024}
}
