package show

import "github.com/ackscope/ackscope/analyze"

// HostLine says what became of the datagrams of a finding inside the capturing host: "host: the kernel dropped 491
// datagrams at B's socket (certain)".
func HostLine(v *analyze.HostVerdict) string {
	if v.Cause == analyze.HostUnknown {
		return "host: " + v.Text
	}
	return "host: " + v.Text + " (" + v.Certainty.String() + ")"
}
