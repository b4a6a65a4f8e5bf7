// Package bench measures the whole program. It compares processor time with
// two other programs, in the same run and on the same file. One is libpcap's
// read loop in C (testdata/count.c). The other is tshark with a Lua dissector
// and tap (testdata/reconstruct.lua). For example, this compares `flows`:
//
//	make bench BENCH='Table/gaffer/flows'
//
// The programs take turns, so that a busy moment affects all. Figures are
// medians of 7 pairs. Wall time depends on the load of the machine. So it is
// compared only with wall time of another number of threads, and a pure CPU
// loop is measured beside it. ACKSCOPE_BENCH_BEFORE names an older program
// that takes turns too. No figure fails a test.
//
// `make growth` draws how the cost grows. `make large` runs a capture of 10 GB.
package bench
