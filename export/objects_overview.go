package export

import "github.com/ackscope/ackscope/analyze"

// origins are the words of machine.Origin that troubles have.
var origins = []string{"network", "library", "code", "capture", "unsaid"}

func overviewObject() *Schema {
	side := []Column{
		field("side", Text, "Which side.", words(sides...)), addrField,
		field("near", Bool, "True where the capture was taken at this side."),
		field("role", Text, "Which end of the connection it is; null where that is not known.", nullable,
			words("client", "server")),
		field("version", Text, "Which versions of which library it can be; null where that is not known.", nullable),
		field("packets", Uint, "Packets that it sent."),
		field("loss_least", Float, "Share of them that the network lost on the way to the peer, at least, 0 to 1.", nullable),
		field("loss_most", Float, "The same, at most.", nullable),
		field("loss", Float, "The best estimate of that share.", nullable),
		field("loss_certainty", Text, "How surely.", words(certainties...)),
		field("loss_round", Bool, "True where the estimate covers the way there and back."),
		duration("rtt_ms", "Mean round trip of its packets, as captured.", nullable),
		duration("rtt_p95_ms", "95 % of the round trips are below.", nullable),
		duration("jitter_ms", "Mean difference of successive round trips.", nullable),
		duration("stall_ms", "The longest time in which it sent nothing, and usually sends.", nullable),
		field("messages", Uint, "Messages that it sent."),
		field("resent", Uint, "Of these, how many it sent more than once."),
		field("causes", JSON, "Why it sent something again.", listOf(
			field("cause", Text, "The cause, in a word or two with hyphens."),
			field("count", Uint, "How often."))),
		duration("arrival_p50_ms", "From the first sending of a message to its arrival: the median.", nullable),
		duration("arrival_p95_ms", "95 % are below.", nullable),
		field("waited", Uint, "Messages that had arrived and waited for an earlier one."),
		duration("waited_max_ms", "The longest such time; null where none waited.", nullable),
		field("behaviour", Text, "What replay held it against; null where it did not.", nullable),
		field("verdict", Text, "What came of that; null where it did not.", nullable,
			words("conforms", "consistent", "diverges")),
	}
	trouble := []Column{
		field("origin", Text, "Where its cause most likely lies; unsaid for a connection that ended without a goodbye.",
			words(origins...)),
		field("severity", Text, "How grave it is.", words(severities[1:]...)),
		certainty("certainty", "How surely the capture shows it."),
		field("side", Text, "Whose doing it is, or whose packets it concerns.", words(sides...)),
		field("rule", Text, "Name of the finding or of the divergence, as `ackscope explain` knows it; null for the end of "+
			"a connection.", nullable),
		field("divergence", Bool, "True for what replay found."),
		field("count", Uint, "How often."),
		field("frame", Uint, "The first frame that shows it."),
		field("text", Text, "What happened, with figures."),
		field("host", Text, "Where in the capturing host datagrams died or waited; left out without samples of it.", optional,
			words(analyze.HostCauses()...)),
		field("host_certainty", Text, "How surely that is so.", optional, words(certainties...)),
		field("host_reason", Text, "The same in words; or why it is unknown.", optional),
		field("log", Text, "What the game's own log says of it.", optional),
	}
	return object("overview", "What is wrong with a capture, and where the cause most likely lies: a line a capture.",
		severalFile,
		field("name", Text, "Name of the capture."),
		field("sentence", Text, "The worst trouble and its likely place, with figures."),
		field("severity", Text, "Severity of the worst trouble; null where there is none.", nullable,
			words(severities[1:]...)),
		field("problem", Text, "How reading ended, where not at the end of the capture.", optional),
		field("packets", Uint, "Packets of the capture."),
		field("first", Time, "When the first was captured; null where there is none.", nullable),
		field("span_ms", Float, "From the first to the last.", unit("ms")),
		field("dropped", Uint, "Packets that the capturing host is known to have dropped."),
		field("flows", Uint, "Flows of known protocols."),
		field("troubled", Uint, "Of these, how many have a warning or an error."),
		field("others", Uint, "Flows of no known protocol."),
		field("icmp_errors", Uint, "ICMP errors that quote UDP datagrams."),
		field("icmp_unknown", Uint, "Of these, how many quote datagrams of no flow of the capture."),
		field("worst", JSON, "The flows with the worst trouble: five, or all with --all.", listOf(
			flowField, protocolField, dialectField, vantageField,
			field("sides", JSON, "Both sides, a first.", listOf(side...)),
			field("troubles", JSON, "Its warnings and errors, the gravest first.", listOf(trouble...)),
			field("notes", Uint, "Its findings of severity note."),
			field("end", Text, "How its connection ended, where that is known.", optional),
		)),
		field("common_cause", JSON, "What the troubles of the flows have in common; left out below six flows.", optional,
			of(
				field("sentence", Text, "The cause that concerns most flows."),
				field("flows", Uint, "Flows that were compared."),
				field("left_out", Uint, "Flows that were not, beyond 100,000."),
				field("causes", JSON, "Each cause; none: no common cause.", listOf(commonCause()...)))),
		field("logs", JSON, "The game's own logs (--log).", optional, listOf(gameLog()...)),
		field("next", JSON, "Commands that show more.", listOf(
			field("why", Text, "What it shows."),
			field("command", Text, "The command line, quoted for a shell."))),
	)
}

func commonCause() []Column {
	return []Column{
		field("trouble", Text, "What the flows have in common.", words("stall", "loss", "rtt-rise")),
		field("kind", Text, "What the affected flows share.",
			words("none", "server", "prefix", "version", "interface", "player", "all")),
		field("group", Text, "Which server, network, version or interface; null for a player and for all.", nullable),
		field("also", Text, "Another group of the very same flows.", optional),
		field("flow", Uint, "Number of the player's flow.", optional),
		certainty("certainty", "How surely; never certain."),
		field("p", Float, "How often chance explains it."),
		field("from_server", Bool, "True where packets from the server show it."),
		field("to_server", Bool, "True where packets to the server show it."),
		field("affected", Uint, "Flows that show it."),
		field("in_group", Uint, "Of them, those of the group."),
		field("of_group", Uint, "Flows of the group that could have shown it."),
		field("loss_least", Float, "Least loss of an affected flow of the group, 0 to 1.", optional),
		field("loss_most", Float, "The most.", optional),
		field("loss_others", Float, "Median loss of the other flows.", optional),
		field("moments", Uint, "How many stalls or rises.", optional),
		field("within_ms", Float, "From the first to the last flow of one, at most.", unit("ms"), optional),
		field("longest_ms", Float, "The longest stall, or the greatest rise.", unit("ms"), optional),
		field("first", Time, "When the first ended.", optional),
		field("frame", Uint, "The packet that ended the first.", optional),
		field("text", Text, "The same in words."),
	}
}

func gameLog() []Column {
	return []Column{
		field("name", Text, "Name of the file."),
		field("aligned", Bool, "True where its times have a place on the clock of the capture."),
		field("reason", Text, "Why not.", optional),
		field("flow", Uint, "Number of the flow that aligned it.", optional),
		field("side", Text, "Whose log it is.", optional, words(sides...)),
		field("addr", Text, "Address and port of that side.", optional),
		field("method", Text, "What aligned it.", optional, words("sequences", "intervals", "counters")),
		field("certainty", Text, "How surely it is of this run; never certain.", optional, words(certainties...)),
		field("matched", Uint, "Packets, or values of a counter, that were matched.", optional),
		field("first", Time, "When its first line was written, on the clock of the capture.", optional),
		field("offset_s", Float, "What to add to its times to get seconds since 1970, at its first line.", unit("s"),
			optional),
		field("unit_s", Float, "Unit of its times in seconds.", unit("s"), optional),
		field("skew_ppm", Float, "How much faster its clock runs than the capture's, in millionths.", optional),
		field("skew_error_ppm", Float, "How far that may be off.", optional),
		field("error_ms", Float, "How far its times may be off between the first and the last match.", unit("ms"), optional),
		field("way_in_error", Bool, "True where the capture was taken elsewhere: half of the round trip is in error_ms.",
			optional),
		field("way_unknown", Bool, "True where the place of capture is unknown: the way to it is not in error_ms.", optional),
		field("compared", JSON, "Its counters and round-trip times beside what the capture has.", listOf(
			field("name", Text, "Name of the counter, as in the log."),
			field("what", Text, "What the capture has: the definition that both are held against."),
			field("values", Uint, "Values that were compared."),
			field("agrees", Bool, "True where none of them differs."),
			field("line", Uint, "The first line that differs.", optional),
			field("time", Time, "When it was written, on the clock of the capture.", optional),
			field("frame", Uint, "The first packet of the side from then on.", optional),
			field("log", Float, "What the log has there; of counters: since their first value.", optional),
			field("least", Float, "What the capture has, at least.", optional),
			field("most", Float, "The same, at most.", optional),
			field("certainty", Text, "How surely they differ.", optional, words(certainties...)))),
		field("lines", Uint, "Lines of the file."),
		field("frames", Uint, "Lines that say how long a frame took."),
		field("left_out", Uint, "Lines that were left out."),
		field("bad", JSON, "The first of these, eight at most.", listOf(
			field("line", Uint, "Number of the line."),
			field("reason", Text, "What is wrong with it."))),
	}
}
