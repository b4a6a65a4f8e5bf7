// Package threads checks that the program writes the same bytes on 1, 2 and 8
// threads. It runs the listings over the captures of testdata, and over made
// ones. Several cores share the flows of some of these, and cannot share those
// of others. For example:
//
//	go test ./internal/threads                       a sample of testdata, and all made captures
//	ACKSCOPE_REQUIRE=1 go test ./internal/threads    all of them (make full)
package threads
