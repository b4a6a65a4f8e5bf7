// Package fields is the vocabulary of display filters: every field that a filter, a
// column or `ackscope fields` can name, with its sentence and where its values come
// from.
//
//	table := fields.NewTable(fields.Options{Registry: registry, Rules: analyze.Rules})
//	f, err := table.Compile("flow.rtt > 80ms and gaffer.sequence in {1..9}")
//
// Frames and their headers are named as Wireshark names them. The fields of a
// protocol are those of its descriptor; flows, events, messages and findings follow.
// What a filter means is package filter's affair, which knows no field by name.
package fields
