// Package batch analyses many captures into one folder of tables, on one machine or on several that
// share a file system. Package unit analyses each capture; this package finds the captures, keeps
// what came of each one, and writes the tables:
//
//	DIR/flows/build=1.4.2/region=eu/HASH.parquet      rows of export.Flows
//	DIR/findings/build=1.4.2/region=eu/HASH.parquet   rows of export.Findings
//	DIR/captures.parquet                              what became of each capture
//	DIR/summary.json                                  counts and histograms; they merge
//	DIR/.batch/                                       what came of each capture, to go on from
//
// The bytes depend on the captures, their labels and the options alone. The order of the captures,
// the number of workers and interruptions are of no effect:
//
//   - The rows of a partition go to a fixed number of parts, by a hash of the capture's name. In a
//     part they are sorted by that name.
//   - A part has the hash of its bytes as its name, and appears under it whole.
//   - What came of a capture is kept under a key of its name, files, labels and options. So a run
//     after another one analyses only what is new.
package batch
