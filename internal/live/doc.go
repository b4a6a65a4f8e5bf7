// Package live tests the program as it captures on a production host: full
// rate, privileges, kills, full disks. The tests make network namespaces of
// their own and send packets only there.
package live
