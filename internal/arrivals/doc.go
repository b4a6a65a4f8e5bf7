// Package arrivals compares when messages arrived, as a capture shows it, with the logs of the
// endpoints that received them. For example, a capture says that message 7 arrived between 20.1
// and 24.3 ms after its sending. The log of its receiver has 22.9 ms.
//
// The tests check these statements over the recorded runs of each library:
//
//   - the logged time lies within the bounds, in every case that is graded certain;
//   - most messages that were delivered have such bounds;
//   - the bounds are as narrow as docs/arrival.md says.
//
// That page has a table of the figures, which `make arrivals` writes. The package has tests only.
package arrivals
