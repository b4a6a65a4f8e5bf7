package reader

import "github.com/ackscope/ackscope/capture"

// Origin describes where the frames of a Save come from.
type Origin struct {
	Of    func(file, index int) capture.Interface // describes an interface as far as it is known now
	Files []OriginFile                            // nil if the frames come from no file
}

// OriginFile is a file of an open capture. Its own description is copied to the
// saved file.
type OriginFile struct {
	In    *capture.Input
	Index int
}

// OriginOf returns the origin of open captures.
func OriginOf(in *capture.Input) Origin {
	o := Origin{Of: func(file, index int) capture.Interface {
		if list := in.Interfaces(file); index < len(list) {
			return list[index]
		}
		return capture.Interface{}
	}}
	for i := range in.Files() {
		o.Files = append(o.Files, OriginFile{in, i})
	}
	return o
}
