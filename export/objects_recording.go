package export

// recordingObject declares what stands beside a recording of capture --on.
func recordingObject() *Schema {
	return object("recording", "A recording around a trouble, once it is written.",
		field("recording", Text, "Name of the capture file."),
		field("on", Text, "What asked for it: a rule, a condition or SIGUSR1."),
		field("at", Time, "When the trouble was."), field("told", Time, "When the rule told of it."),
		field("from", Time, "The window's beginning."), field("to", Time, "Its end."),
		field("severity", Text, "How grave the finding is; null for a condition and a signal.", nullable,
			words(severities...)),
		field("certainty", Text, "How sure the finding is; null for a condition and a signal.", nullable),
		field("message", Text, "The finding with its figures, as the run that recorded it saw them."),
		field("live_flow", Uint, "The flow's number in that run; null for a signal.", nullable),
		field("side", Text, "The side in that run; null for a signal.", nullable, words("a", "b")),
		field("a", Text, "Address of side A in that run.", optional),
		field("b", Text, "Address of side B in that run.", optional),
		field("again", Bool, "Whether the recording shows the finding; null for a condition and a signal.", nullable),
		field("frame", Uint, "Frame of the recording that shows the trouble; null if there are no frames.", nullable),
		field("all", Bool, "Whether all flows were recorded."), field("flows", Uint, "Flows that triggered."),
		field("triggers", Uint, "Triggers that joined."),
		field("triggers_unlisted", Uint, "Those of flows beyond 4,096, whose frames are missing."),
		field("frames", Uint, "Frames."),
		field("first_frames", Uint, "How many of them are the first of their flows, from long before."),
		field("bytes", Uint, "Bytes of the frames."),
		field("evicted", Uint, "Frames of the window, of any flow, that the memory had no room for, at least."),
		field("limited", Uint, "Frames that -b filesize left out."),
		field("dropped", Uint, "Packets that the capturing host dropped in this time or shortly after; null for -r.",
			nullable),
		field("overview", Text, "The first sentence of the overview."),
		field("missing", Texts, "What the recording lacks, in sentences."),
		field("diagnosis", Texts, "The overview, line by line."),
		field("state", Texts, "What both sides knew after the frame of the trouble, line by line."),
		field("recorded", JSON, "The flows of the recording.", listOf(
			flowField, field("a", Text, "Address of side A."), field("b", Text, "Address of side B."),
			field("protocol", Text, "Its protocol and profile."), field("findings", Texts, "The rules of its findings."))))
}
