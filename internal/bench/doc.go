// Package bench measures the whole program against what a sceptic would put
// beside it, in the same run and on the same file: libpcap's own read loop in C
// (testdata/count.c), and tshark with a Lua dissector and tap (testdata/reconstruct.lua).
//
//	make bench BENCH=Flows
//
// Only processor time (user and system, of the whole process) and peak memory
// are compared: wall time depends on who else uses the machine. The programs take
// turns, so that a busy spell hits all. A figure never fails a test.
package bench
