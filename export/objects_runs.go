package export

func replayObject() *Schema {
	begin := []Column{fileField, flowField, protocolField, dialectField, sideField, addrField}
	settings := []Column{
		field("name", Text, "The setting."), field("value", Float, "Its value."),
		field("unit", Text, "Its unit; empty for none."),
		certainty("certainty", "How surely the capture tells it."), field("why", Text, "What tells it."),
	}
	run := []Column{
		field("packets", Uint, "Packets that the side sent."), field("bytes", Uint, "What they came to.", unit("bytes")),
		field("resends", Uint, "Messages sent again."), field("lost", Uint, "Packets that were lost."),
		field("guessed", Uint, "Packets whose fate was taken from others'."),
		field("doubtful", Uint, "Packets whose fate the capture leaves open."),
		field("delivered", Uint, "Messages that were delivered."),
		field("undelivered", Uint, "Messages that were not, by the end."),
		field("refused", Uint, "Messages that the library refused.", optional),
	}
	for _, x := range []struct{ name, doc string }{
		{"latency_ms_", "Time from a message's first send to its delivery: "},
		{"wait_ms_", "Time that messages were held by earlier ones: "},
	} {
		for _, q := range []struct{ name, doc string }{
			{"p50", "the median."},
			{"p95", "95 % are below."},
			{"p99", "99 % are below."},
			{"max", "the longest."},
		} {
			run = append(run, duration(x.name+q.name, x.doc+q.doc, nullable))
		}
	}
	return several("replay", "A capture against the reference: a line for each side of a flow.",
		object("verdict", "Whether a side behaved as the reference does.", append(begin[:len(begin):len(begin)],
			field("behaviour", Text, "What it was held against."),
			field("verdict", Text, "What came of it.", words("conforms", "consistent", "diverges")),
			vantageField,
			field("packets", Uint, "Packets that were compared."),
			field("undecided", Uint, "Of them, how many the capture leaves open.", optional),
			field("undecided_why", Text, "Why.", optional),
			field("first_frame", Uint,
				"Where it diverges first. This and what follows, up to rests_on: where it diverges.", optional),
			field("time", Time, "When that frame was captured.", optional),
			field("rule", Text, "Name of the divergence: see divergences.md, or `ackscope explain`.", optional),
			field("field", Text, "Which field differs.", optional),
			field("expected", Text, "What the reference would have sent.", optional),
			field("got", Text, "What was captured.", optional),
			field("because", Text, "Why the reference would have.", optional),
			field("frames", Uints, "The earlier frames that it follows from.", optional),
			field("absence", Bool, "True where a capture that lacks a packet would show the same.", optional),
			field("certainty", Text, "How surely the capture shows it.", words(certainties...), optional),
			field("reference_state", Text, "The reference's state there.", optional),
			field("captured_state", Text, "The side's, as the capture shows it.", optional),
			field("severity", Text, "How grave the divergence is.", words(severities...), optional),
			field("rests_on", Texts, "What the reason for it rests on: own (the side's own packets alone), peer (what the "+
				"peer's packets say), absence (some packet was not captured), or peer and absence.", optional),
			field("submitted", Uint, "Messages that the application handed over, as inferred."),
			field("refused", Uint, "Packets that the application refused, as inferred."),
			duration("tick_ms", "The side's frame time, as inferred.", optional),
			field("resend", Text, "When the side's messages go out again, as inferred: a time, a multiple of the RTT, or a "+
				"back-off. Left out where it is unknown, or where the profile says it.", optional),
			field("resend_certainty", Text, "How surely.", words(certainties...), optional),
			field("expected_behaviour", Bool, "With --matrix: true where this is the behaviour that the flow's dialect has.",
				optional),
			field("drift", Bool, "Where the capture has a baseline: true where the side differs from it.", optional),
		)...),
		object("what_if", "With --what-if: an estimate of other settings.", append(begin[:len(begin):len(begin)],
			vantageField,
			field("settings", JSON, "The settings of the capture.", listOf(settings...)),
			field("what_if", JSON, "Those that were changed.", listOf(settings...)),
			field("original", JSON, "What the capture shows.", of(run...)),
			field("rehearsal", JSON, "The same settings, run again.", of(run...)),
			field("estimate", JSON, "The other settings.", of(run...)),
			field("silences", Uint, "Times that the runs step over, since nobody sent for longer than an endpoint at work is "+
				"silent; left out where there is none.", optional),
			field("silent_ms", Float, "Their length in all, in ms.", optional),
			field("fit", Float, "How far the rehearsal is from the original, as a share."),
			certainty("certainty", "How surely, by that."),
		)...))
}

func mergeObject() *Schema {
	flow := []Column{
		field("flow_a", Uint, "Number of the flow at tap A."), field("flow_b", Uint, "Number of the flow at tap B."),
		field("protocol", Text, "Its protocol; null where none explains it.", nullable),
		field("side", Text, "Which side sent, as tap A names it.", words(sides...)),
	}
	way := append([]Column{field("kind", Text, "Says that this is a direction of a flow.", words("way"))}, flow...)
	way = append(way,
		field("addr_a", Text, "The sender's address and port, at tap A."), field("addr_b", Text, "The same at tap B."),
		field("first_tap", Text, "The tap that captured its packets first: upstream.", words(sides...)),
		certainty("first_tap_certainty", "How surely."))
	for _, x := range []struct{ name, doc string }{
		{"upstream", "Packets that the upstream tap captured."},
		{"downstream", "Packets that passed the other."},
		{"both", "Packets that passed both."},
		{"lost", "Lost between the taps."},
		{"lost_at_ends", "Of these, before the first or after the last packet that the other tap recorded: likely only."},
		{"missed", "Received, but missed by the downstream tap."},
		{"undecided", "Captured while the other tap may not have been recording."},
		{"copies", "Doubled between the taps."},
		{"unseen", "Seen downstream only."},
		{"outside", "Seen downstream before the upstream tap had begun, or after its end."},
		{"reordered", "Overtaken between the taps by one that was sent later."},
		{"ambiguous", "Paired with one of several of the same content."},
		{"died_before", "Numbers of the sender that neither tap saw."},
		{"died_after", "Seen downstream, and never acknowledged: likely lost behind the taps."},
	} {
		way = append(way, field(x.name, Uint, x.doc))
	}
	way = append(way, field("loss", Float, "Share of packets lost between the taps, 0 to 1."))
	for _, x := range []struct{ name, doc string }{
		{"min", "the least"},
		{"mean", "the mean"},
		{"p50", "the median"},
		{"p95", "95 % are below"},
		{"p99", "99 % are below"},
		{"max", "the longest"},
	} {
		way = append(way, duration("delay_"+x.name+"_ms", "One-way delay from tap to tap: "+x.doc+".", nullable))
	}
	return several("merge", "What two captures tell together: a line for the clocks, then one for each direction of "+
		"each flow; with --packets, one for each packet.",
		object("clock", "How B's clock lies to A's.",
			field("kind", Text, "Says that this is about the clocks.", words("clock")),
			field("file_a", Text, "The first capture."), field("file_b", Text, "The second."),
			field("reference_time", Time, "The instant, by A's clock, that the offset holds at."),
			duration("offset_ms", "By how much B's clock is ahead of A's; null where packets went one way only.", nullable),
			duration("offset_uncertainty_ms", "How far that may be wrong, either way.", nullable),
			field("drift_ppm", Float, "What B's clock gains on A's.", unit("ppm")),
			field("drift_uncertainty_ppm", Float, "How far that may be wrong, either way.", unit("ppm")),
			field("drift_proved", Bool, "True where that is what causality bounds, false where it is three standard errors."),
			field("matches_ab", Uint, "Packets from A to B that the clocks were solved by."),
			field("matches_ba", Uint, "Packets from B to A."),
			field("unpaired_flows_a", Uint, "Flows at A that B has nothing of."),
			field("unpaired_flows_b", Uint, "Flows at B that A has nothing of.")),
		object("way", "One direction of a flow.", way...),
		object("packet", "With --packets: a packet.", append(append([]Column{
			field("time", Time, "When the first tap that saw it captured it, by A's clock."),
		}, flow...),
			field("frame_a", Uint, "Its frame at tap A; null where it was not seen there.", nullable),
			field("frame_b", Uint, "Its frame at tap B; null where it was not seen there.", nullable),
			field("outcome", Text, "What became of it.", words("crossed", "lost", "missed", "undecided", "copy", "unseen")),
			duration("delay_ms", "From tap to tap; null where it was not seen at both.", nullable))...))
}

func anonymiseObject() *Schema {
	replaced := func(kind, what string) *Schema {
		return object(kind, "A replacement.",
			field("kind", Text, "Says that it is of "+what+".", words(kind)),
			field("from", Text, "What stood in the original."), field("to", Text, "What stands in its place."))
	}
	return several("anonymise", "What was replaced by what.",
		replaced("address", "an address"), replaced("port", "a port"),
		object("content", "Contents that were replaced, by field.",
			field("kind", Text, "Says that it is of contents.", words("content")),
			field("field", Text, "The field."), field("count", Uint, "How many."),
			field("bits", Uint, "How much.", unit("bits"))),
		object("frames", "The end: what was written.",
			field("kind", Text, "Says that it is the end.", words("frames")),
			field("frames", Uint, "Frames written."),
			field("blanked", Uint, "Of them, those of which only time and length are left.")))
}

func simulateObject() *Schema {
	return object("simulate", "With --fault list: a fault of a reference.",
		protocolField,
		field("fault", Text, "Its name."), field("doc", Text, "What is wrong with the endpoint then."),
		field("unobservable", Text, "Why it never shows on the wire; null where it does.", nullable),
		field("explained", Text, "How a right endpoint could send the same; null where none could.", nullable),
		field("scenario", Text, "Flags with which it shows; may be empty."))
}

func captureObject() *Schema {
	return several("capture", "What each interface came to, at the end; with --on, a recording; with -D, what there is.",
		recordingObject(),
		object("totals", "An interface at the end of a capture.",
			field("interface", Text, "Its name."), field("captured", Uint, "Packets that were captured."),
			field("accepted", Uint, "Packets that passed the capture filter."),
			field("dropped", Uint, "Of them, those that the system dropped for want of room."),
			field("interface_received", Uint, "Packets that the interface received.", optional),
			field("interface_dropped", Uint, "Packets that the interface dropped.", optional)),
		interfacesObject())
}

func interfacesObject() *Schema {
	return object("interfaces", "An interface that can be captured on: what -D lists, of any command that has it.",
		field("name", Text, "Its name, for -i."), field("up", Bool, "Whether it is up."),
		field("loopback", Bool, "Whether it is a loopback."),
		field("addresses", Texts, "Its addresses, with their prefixes."))
}

func fieldsObject() *Schema {
	return object("fields", "What filters and columns can name.",
		field("name", Text, "The field."), field("type", Text, "What its values are."),
		field("unit", Text, "Their unit; null for none.", nullable), field("doc", Text, "What it is, in a sentence."),
		field("protocol", Text, "The protocol that it is decoded of.", optional),
		field("column_only", Bool, "True if only columns (packets -e) can name it, and filters cannot.", optional),
		field("values", Texts, "The closed list of its values.", optional))
}

func explainObject() *Schema {
	return object("explain", "A rule that findings or divergences can have.",
		field("rule", Text, "Its name. Several rules can have one name."),
		field("severity", Text, "How grave it is.", words(severities...)),
		field("summary", Text, "What it says, in a line."),
		field("explain", Text, "What it means, how ackscope recognises it, what to do about it."),
		field("kind", Text, "What it is the rule of.", words("finding", "divergence")),
		field("protocol", Text, "The protocol that has it; left out for a finding of any protocol.", optional))
}

func thresholdsObject() *Schema {
	return object("thresholds", "A limit from which steady trouble is a finding.",
		field("threshold", Text, "Its name, as --set and --thresholds take it."),
		field("value", Text, "The limit, as --set takes it: 3%, 150ms, 125kB/s, off."),
		field("rule", Text, "The finding, as `explain` names it; several with commas."),
		field("doc", Text, "What is compared with the limit."))
}

func protocolsObject() *Schema {
	return object("protocols", "A profile of a protocol.",
		protocolField, field("title", Text, "Its name for people."),
		field("profile", Text, "The profile."), field("doc", Text, "What it reads, in a sentence."))
}
