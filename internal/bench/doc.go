// Package bench compares the whole program with two other programs, in the same
// run and on the same file. One is libpcap's read loop in C (testdata/count.c).
// The other is tshark with a Lua dissector and tap (testdata/reconstruct.lua).
// For example, this compares `ackscope flows`:
//
//	make bench BENCH=Flows
//
// It compares only processor time (user and system, of the whole process) and
// peak memory. Wall time depends on the load of the machine. The programs take
// turns, so that a busy moment affects all. No figure fails a test.
package bench
