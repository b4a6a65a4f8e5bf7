// Package rebinding tests that ackscope joins the flows of a player whose address changes in
// the middle of a connection. It takes the recorded captures and gives the client another port
// or another address from one packet on:
//
//	packets 1 to 500     10.77.1.2:30000   <-> 10.77.1.1:40000    flow 1
//	packets 501 to 1000  198.51.100.7:999  <-> 10.77.1.1:40000    flow 2, was 1
//
// It also makes pairs of different players behind one address, which must stay apart.
package rebinding
