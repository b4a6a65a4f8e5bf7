// Package app is one run of the program: the flags that all commands take, standard
// streams, output files, memory, and how text and JSON are printed.
//
//	a := &app.App{Streams: streams, Registry: protocols}
//	o, err := a.Options() // of the analysis, as the flags say
package app
