// Package export hands what the analysis found to other tools: as tables, as
// qlog, as captures with comments, and as a script for Wireshark.
//
// A table is declared once, column by column: its name, its type, its unit, what
// it means, and how it is taken from the analysis. What `--json` prints, CSV,
// Parquet (package export/parquet), `ackscope schema` and docs/tables.md all come
// from that declaration, so they cannot differ:
//
//	analyze.Record, Flow, Finding -> Table.Fill -> []Cell -> Encoder -> bytes
//
// Ring 4 of the house: it knows no protocol by name.
package export
