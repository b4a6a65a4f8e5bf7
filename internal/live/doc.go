// Package live holds the tests of the program as it captures on a production
// host: full rate, privileges, kills, full disks. They make their own network
// namespaces and send only there.
package live
