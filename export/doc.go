// Package export writes the results of the analysis for other tools: as tables,
// as qlog, as captures with comments, and as a script for Wireshark.
//
//	analyze.Record, Flow, Finding -> Table.Fill -> []Cell -> Encoder -> bytes
//
// A table is declared once, column by column: name, type, unit, meaning, and
// the function that takes the value from the analysis. This declaration is the
// source of `--json`, CSV, Parquet (package export/parquet), `ackscope schema`
// and docs/tables.md. So they cannot differ. The package knows no protocol by
// name.
package export
