// Package metrics counts what an analysis tells, for Prometheus: per protocol
// and side, never per flow or address, so that the number of series is bounded
// whoever sends.
//
//	analyze.Record  -> Collector.Take  \
//	analyze.Finding -> Collector.Found  >  Collector.Append -> text exposition
//	analyze.Session, Capture           /
//
// Ring 4 of the house. Source of truth for the format: Prometheus' text-based
// exposition format 0.0.4, https://prometheus.io/docs/instrumenting/exposition_formats/
package metrics
