// Package live tests the program as it captures on a production host: full
// rate, privileges, kills, full disks. For example, TestNoDropUncounted sends
// 200,000 packets a second, and every packet must be captured or counted as
// dropped.
//
// The tests make network namespaces of their own and send packets only there.
package live
