// Package fields is the vocabulary of display filters: every field that a
// filter, a column or `ackscope fields` can name. Each field has a description
// and a source of its values.
//
//	table := fields.NewTable(fields.Options{Registry: registry, Rules: analyze.Rules})
//	f, err := table.Compile("flow.rtt > 80ms and gaffer.sequence in {1..9}")
//
// Frames and their headers have Wireshark's names. The fields of a protocol
// come from its descriptor. Flows, events, messages and findings follow.
// Package filter defines what a filter means, and knows no field by name.
package fields
