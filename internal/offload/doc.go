// Package offload holds tests against the kernel: batches of datagrams that it segments, and
// ICMP errors that it sends. Its tests need a network namespace.
package offload
