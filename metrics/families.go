package metrics

// Family describes one metric. docs/metrics.md documents all of them.
type Family struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// The program knows all values of most labels. These are protocol (those of the
// registry, and "none"), side (a, b), rule, severity, cause, event, reason,
// fate, trouble, kind and certainty. Only the values of interface come from the command line.
var (
	buildInfo = Family{"ackscope_build_info", "gauge", []string{"version", "goversion"}, "1, with the build as labels"}

	framesRead = Family{
		"ackscope_capture_frames_total", "counter",
		[]string{"interface"},
		"Frames that were captured and read",
	}
	accepted = Family{
		"ackscope_capture_accepted_packets_total", "counter",
		[]string{"interface"},
		"Packets that passed the capture filter: those read, those dropped and those that wait in the ring",
	}
	dropped = Family{
		"ackscope_capture_dropped_packets_total", "counter",
		[]string{"interface", "where"},
		"Packets that the capture lost: for want of room in the ring (ring), or by the interface before (interface)",
	}
	ringFreezes = Family{
		"ackscope_capture_ring_freezes_total", "counter",
		[]string{"interface"},
		"How often the ring was full",
	}
	unsaved = Family{
		"ackscope_capture_unsaved_frames_total", "counter", nil,
		"Frames that were analysed and could not be written to -w",
	}
	twice = Family{
		"ackscope_capture_duplicates_total", "counter", nil,
		"Datagrams that were captured twice; kept out of all else",
	}
	fragments   = Family{"ackscope_ip_fragments_total", "counter", nil, "IP fragments seen"}
	reassembled = Family{
		"ackscope_ip_datagrams_total", "counter",
		[]string{"fate"},
		"Fragmented datagrams: reassembled, expired (30 s), or evicted for want of room",
	}
	lastPacket = Family{
		"ackscope_last_packet_timestamp_seconds", "gauge", nil,
		"Time stamp of the newest packet, since 1970",
	}
	packets = Family{
		"ackscope_packets_total", "counter",
		[]string{"protocol", "side"},
		"Packets by their sender: datagrams, over TCP messages. Those of a flow count once its protocol is worked out",
	}
	payload = Family{
		"ackscope_bytes_total", "counter",
		[]string{"protocol", "side"},
		"Payload bytes of these packets on the wire",
	}
	lost = Family{
		"ackscope_lost_packets_total", "counter",
		[]string{"protocol", "side"},
		"The side's packets that can no longer be acked",
	}
	acked = Family{
		"ackscope_acked_packets_total", "counter",
		[]string{"protocol", "side"},
		"The side's packets that it learned to have arrived",
	}
	events = Family{
		"ackscope_events_total", "counter",
		[]string{"protocol", "side", "event"},
		"Events as `ackscope events` tells them",
	}
	roundTrips = Family{
		"ackscope_rtt_seconds", "histogram",
		[]string{"protocol", "side"},
		"Round-trip times as the side measured them by acks",
	}
	lossEstimate = Family{
		"ackscope_loss_ratio", "gauge",
		[]string{"protocol", "side"},
		"Mean over the flows followed now of the loss that the side's own library would show, 0 to 1",
	}
	resends = Family{
		"ackscope_resends_total", "counter",
		[]string{"protocol", "side", "cause"},
		"Packets and messages that were sent again, by cause, where one is known",
	}
	findings = Family{
		"ackscope_findings_total", "counter",
		[]string{"protocol", "side", "rule", "severity"},
		"Occurrences of each rule of `ackscope findings`",
	}
	causeFlows = Family{
		"ackscope_common_cause_flows", "gauge",
		[]string{"trouble", "kind", "certainty"},
		"Flows that a common cause concerns, by their trouble and what they share; no series without a common cause",
	}
	causeCompared = Family{
		"ackscope_common_cause_compared_flows", "gauge", nil,
		"Flows that were compared for a common cause, at most each 10 s; 0 before the first comparison",
	}
	flowsActive  = Family{"ackscope_flows", "gauge", []string{"protocol"}, "Flows remembered now"}
	flowsPending = Family{"ackscope_flows_pending", "gauge", nil, "Of them, flows whose protocol is being worked out"}
	flowsBegun   = Family{"ackscope_flows_begun_total", "counter", nil, "Flows that there were"}
	flowsLetGo   = Family{
		"ackscope_flows_let_go_total", "counter",
		[]string{"reason"},
		"Flows that were ended and forgotten: silent (idle), too many (flows), too large (memory), followed by another " +
			"session on their addresses (session)",
	}
	stateBytes = Family{"ackscope_state_bytes", "gauge", nil, "Bytes of the state of all flows"}
	stateLimit = Family{"ackscope_state_limit_bytes", "gauge", nil, "Their limit; 0 for none"}
	resident   = Family{"process_resident_memory_bytes", "gauge", nil, "Resident memory of the process"}
	cpuSeconds = Family{"process_cpu_seconds_total", "counter", nil, "User and system time that the process took"}
	startTime  = Family{"process_start_time_seconds", "gauge", nil, "When the process started, since 1970"}
)

// Families returns all metrics, in the order in which they are exposed.
func Families() []Family {
	return []Family{
		buildInfo,
		framesRead, accepted, dropped, ringFreezes, unsaved, twice, fragments, reassembled, lastPacket,
		packets, payload, acked, lost, events, roundTrips, lossEstimate, resends, findings,
		causeFlows, causeCompared,
		flowsActive, flowsPending, flowsBegun, flowsLetGo, stateBytes, stateLimit,
		resident, cpuSeconds, startTime,
	}
}

// Buckets are the upper bounds of ackscope_rtt_seconds, in seconds.
var Buckets = []float64{.001, .0025, .005, .01, .02, .03, .05, .075, .1, .15, .2, .3, .5, .75, 1, 2, 5}
