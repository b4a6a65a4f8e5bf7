// Package app holds what the commands of one run share: flags, standard
// streams, output files, memory limits, and the printing of text and JSON.
//
//	a := &app.App{Streams: streams, Registry: protocols}
//	o, err := a.Options() // of the analysis, as the flags say
package app
