// Package reader reads the captures of a command.
//
//	in, err := reader.Open(a, reader.File("match.pcapng"), reader.Options{Keep: capture.KeepPipes, Passes: 2})
//	session, err := in.Study(options) // reads the file twice
//
// A Reader opens files, pipes and interfaces, copies frames to the file of -w,
// ends at -c or -a, and shows progress. The other types are:
//
//   - Recording: the files of the command line that form one capture
//     (docs/files.md);
//   - Listing: packets one by one, of files or live;
//   - RowFilter: a display filter for events, messages and findings;
//   - Running: an analysis of live traffic, with metrics and alerts;
//   - Save: a capture file, or a row of capture files.
package reader
