// Package reader reads what a command looks at. One type, Reader, opens files, pipes
// and interfaces, copies what it reads where -w asks for that, ends where -c or -a says
// so, and shows progress. Around it stand
//
//   - Recording: which files of the command line are one capture (docs/files.md);
//   - Listing: packets one by one, of files or as they come;
//   - Asker: a display filter that is asked about events, messages and findings;
//   - Running: an analysis of traffic as it comes, with metrics and alerts;
//   - Save: capture files, and rows of them.
package reader
