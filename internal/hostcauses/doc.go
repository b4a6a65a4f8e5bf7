// Package hostcauses plants causes of loss in real sockets and interfaces, and compares what
// ackscope says of each with what was planted:
//
//	namespace H                          namespace R              namespace P
//	server ─ capture ─ veth0 ──────────── veth1 · vethr ────────── vethp ─ client
//
// Its tests need network namespaces.
package hostcauses
