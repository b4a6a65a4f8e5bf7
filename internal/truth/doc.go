// Package truth holds what ackscope rebuilds from a capture against what the
// endpoints themselves logged while the capture was taken (testdata/pcaps).
// It has tests only, and they look at the program from outside: they run the
// command and read its JSON, as the contract of `events` and `flows` has it, so
// that no fault inside can hide from them.
//
// Two oracles, written apart from each other and from the product:
//
//	run_test.go, facts_test.go, estimates_test.go   Go, run by plain `go test`
//	truthcheck.py                                   Python; the stricter on the far endpoint
//
// The near endpoint is the one at the tap: there every fact must be found, none
// more, and each at the time that the log allows. The far endpoint is known by
// evidence: there no fact graded certain may contradict its log, or be told by
// a frame that is older than the fact.
//
// The logs' form is described in testdata/pcaps/README.md.
package truth
