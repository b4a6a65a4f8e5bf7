// Package truth compares what ackscope rebuilds from a capture with the logs of
// the endpoints, which they wrote while the capture was taken (testdata/pcaps).
// For example, the log has a line for each acked packet, and `ackscope events`
// must list the same acks.
//
// It has tests only. They run the command and read the JSON of `events` and
// `flows`, so that no fault inside the program can hide from them.
//
// There are two oracles, written independently of each other and of the
// product:
//
//	run_test.go, facts_test.go, estimates_test.go   Go, run by plain `go test`
//	truthcheck.py                                   Python; the stricter on the far endpoint
//
// The near endpoint is the one at the tap. All its facts must be found, no
// others, and each at a time that the log allows. The far endpoint is known by
// evidence. No fact graded certain may contradict its log, or be shown by a
// frame that is older than the fact.
//
// testdata/pcaps/README.md describes the logs.
package truth
