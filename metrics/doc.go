// Package metrics counts the results of an analysis for Prometheus:
//
//	analyze.Record  -> Collector.Take  \
//	analyze.Finding -> Collector.Found  >  Collector.Append -> text exposition
//	analyze.Session, Capture           /
//
// It counts per protocol and side, never per flow or address. So the number of
// series is bounded, however many hosts send.
//
// Source: Prometheus' text-based exposition format 0.0.4,
// https://prometheus.io/docs/instrumenting/exposition_formats/
package metrics
