package machine

import "testing"

// Lost packets that are settled in a row count the same as one by one, whatever
// block they begin in.
func TestPathLossRow(t *testing.T) {
	for before := range uint64(2 * PathBlock) {
		for _, n := range []uint64{0, 1, 7, PathBlock - 1, PathBlock, PathBlock + 1, 3*PathBlock + 5} {
			var row, alone PathLoss
			for range before {
				row.Settle(false)
				alone.Settle(false)
			}
			row.SettleLost(n)
			for range n {
				alone.Settle(true)
			}
			row.Settle(false)
			alone.Settle(false)
			if row != alone {
				t.Fatalf("%d lost after %d: %+v, expected %+v", n, before, row, alone)
			}
		}
	}
	var jump PathLoss
	jump.SettleLost(1 << 60) // at once, or the test would never end
	if jump.Lost != 1<<60 || jump.Settled != 1<<60 || jump.Blocks != 1<<54 {
		t.Errorf("a jump: %+v", jump)
	}
}

// A late packet is not lost, and a packet that the capture lost is not settled.
func TestPathLossTakenBack(t *testing.T) {
	var p PathLoss
	p.Found()
	p.Forget()
	if p != (PathLoss{}) || p.Share() != -1 {
		t.Errorf("nothing settled: %+v, share %v", p, p.Share())
	}
	p.SettleLost(3)
	p.Settle(false)
	p.Found()
	p.Forget()
	if p.Lost != 1 || p.Settled != 3 {
		t.Errorf("%+v: expected 1 of 3", p)
	}
}

// The loss of a path of two parts is that of both, one after the other.
func TestPathLossAfter(t *testing.T) {
	var before, beyond PathLoss
	for i := range 1000 {
		before.Settle(i%5 == 0)
		beyond.Settle(i%4 == 0)
	}
	if whole := before.After(beyond); whole.Settled != 1000 || whole.Lost != 200+800/4 {
		t.Errorf("%+v: expected 400 of 1000", whole)
	}
	if whole := (PathLoss{}).After(beyond); whole != beyond {
		t.Errorf("nothing before the tap: %+v", whole)
	}
	if whole := before.After(PathLoss{}); whole.Lost != before.Lost {
		t.Errorf("nothing beyond the tap: %+v", whole)
	}
}

// AtMost lies above the share, nears it with more packets, and bounds nothing without any.
func TestPathLossAtMost(t *testing.T) {
	above := 1.0
	for _, n := range []uint64{0, 10, 100, 1000, 100_000} {
		p := PathLoss{Settled: n, Lost: n / 10}
		most := p.AtMost()
		if n == 0 && most != 1 || n > 0 && (most <= 0.1 || most >= above) {
			t.Errorf("of %d packets a tenth was lost: at most %.3f, before %.3f", n, most, above)
		}
		above = most
	}
	if above > 0.11 {
		t.Errorf("of 100,000 packets a tenth was lost, and at most %.3f", above)
	}
}
