package export

// captureStates are the states of captures, as package unit and a run of many give them.
var captureStates = []struct{ name, doc string }{
	{"ok", "read to their end."},
	{"bounded", "of which a bound was reached."},
	{"cut", "that end inside a record."},
	{"damaged", "with a record that cannot be read."},
	{"unreadable", "that are no captures."},
	{"panic", "on which the analysis panicked."},
	{"unread", "whose bytes did not come."},
	{"timeout", "whose analysis took longer than --timeout."},
	{"quarantined", "that ended the process of their worker three times."},
}

// statusObject declares the JSON form of the Status of package unit. No command prints it: programs that import the
// package keep it.
func statusObject() *Schema {
	var states []string
	for _, x := range captureStates {
		states = append(states, x.name)
	}
	return object("status", "What became of one capture of very many. No command prints it: it is the JSON form of "+
		"unit.Status, for programs that import package unit.",
		field("capture", Text, "Name of the capture."),
		field("state", Text, "What became of it, in one word. Runs of many captures have unread, timeout and quarantined "+
			"too.", words(states...)),
		field("bound", Text, "The bound that was reached.", optional, words("memory", "packets", "time")),
		field("error", Text, "What is wrong with the capture.", optional),
		field("stack", Text, "Where the analysis panicked, without what differs from run to run.", optional),
		field("files", Uint, "Its files."),
		field("bytes", Int, "Their stated sizes; -1 if one is not known.", unit("bytes")),
		field("packets", Uint, "Frames that the rows of flows are made of."),
		field("studied", Uint, "Frames that the rows of findings and the aggregates are made of."),
		field("flows", Uint, "Rows of flows."), field("findings", Uint, "Rows of findings."),
		field("ended_early", Uint, "Flows that the bound of memory ended early; left out for none.", optional),
		field("rows_left_out", Uint, "Rows that the bound of memory left out; left out for none.", optional),
		field("first", Time, "Time of the first frame; left out if there is none.", optional),
		field("last", Time, "The newest time of a frame.", optional))
}

// batchObject declares what `ackscope batch --json` prints.
func batchObject() *Schema {
	states := []Column{}
	for _, x := range captureStates {
		states = append(states, field(x.name, Uint, "Captures "+x.doc, optional))
	}
	return several("batch", "What a run over many captures did, and with --baseline a line for all that was compared.",
		object("batch", "The run.",
			field("kind", Text, "Says that this is the run.", words("batch")),
			field("output", Text, "The folder that was written."),
			field("captures", Uint, "Captures that the arguments and the manifest name, in this share."),
			field("analysed", Uint, "Of them, those that this run analysed."),
			field("kept", Uint, "Those that an earlier run has analysed."),
			field("written", Bool, "True if the tables were written: not with --share."),
			field("states", JSON, "What became of the captures, if the tables were written.", optional, of(states...)),
			field("packets", Uint, "Frames of the captures; null unless the tables were written.", nullable),
			field("flows", Uint, "Rows of flows.", nullable), field("findings", Uint, "Rows of findings.", nullable),
			field("partitions", Uint, "Partitions.", nullable)),
		object("baseline", "With --baseline: what was compared.",
			field("kind", Text, "Says that this is the comparison.", words("baseline")),
			field("before", Text, "The set from before."), field("after", Text, "The set from after."),
			field("headline", Text, "The result in a sentence."),
			field("compared", Uint, "Rules and figures that were compared."),
			field("real", Uint, "Of them, those that chance does not explain."),
			field("worse", Uint, "Of these, those for the worse."),
			field("notes", Texts, "What the comparison cannot tell, and why.")),
		Differences)
}

// Differences is the table of a comparison of two sets of captures. `batch --parquet` writes it.
var Differences = object("difference", "A rule, or a figure of flows, before and after.",
	field("protocol", Text, "Its protocol."),
	field("rule", Text, "Name of the rule; null for a figure.", nullable),
	field("severity", Text, "How grave its findings are.", nullable, words(severities...)),
	field("figure", Text, "The figure of both sides of each flow; null for a rule.", nullable,
		words("rtt_ms", "loss", "delay_ms")),
	field("change_kind", Text, "How the rates of a rule differ; null for a figure.", nullable,
		words("new", "gone", "more", "less", "same")),
	field("flows_before", Uint, "Flows that have the rule, before.", nullable),
	field("of_before", Uint, "Flows of the protocol, before.", nullable),
	field("flows_after", Uint, "Flows that have it after.", nullable),
	field("of_after", Uint, "Flows of the protocol, after.", nullable),
	decimal("before", "Of 1,000 flows, how many have the rule; of a figure its median."),
	decimal("after", "The same after."),
	decimal("change", "The difference of the rates; null for a figure."),
	decimal("change_least", "Lower bound of its 95 % interval."), decimal("change_most", "Upper bound of it."),
	decimal("p95_before", "The 95 % quantile of a figure."), decimal("p95_after", "The same after."),
	decimal("distance", "Largest difference of the cumulative shares of a figure, 0 to 1."),
	decimal("design_effect", "By how much flows of one capture count for less than flows of several."),
	decimal("chance", "Chance that equal sets differ as much, 0 to 1, among all that is compared."),
	field("verdict", Text, "chance, or what a real difference means.", words("chance", "worse", "better", "differs")),
	field("example_capture", Text, "A capture that shows the rule.", nullable),
	field("example_frame", Uint, "Its frame.", nullable))

// decimal is a number of a comparison, which may not be known.
func decimal(name, doc string) Column {
	return field(name, Float, doc, nullable, func(c *Column) { c.Digits = 6 })
}
