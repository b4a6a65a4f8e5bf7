package export

func compareObject() *Schema {
	set := []Column{
		field("path", Text, "The argument that names it."),
		field("captures", Uint, "Captures that were read."),
		field("flows", Uint, "Flows of known protocols."),
		field("other_flows", Uint, "Flows of no known protocol."),
		field("seconds", Float, "How long the captures last together.", unit("s")),
	}
	difference := []Column{
		protocolField,
		field("way", Text, "Whose packets: A→B is from the client to the server, where the captures show the roles.",
			words("A→B", "B→A", "both ways")),
		field("type", Text, "Of which messages; null for all.", nullable),
		field("figure", Text, "Name of the figure, as --fail-if knows it."),
		field("there_and_back", Bool, "True if a loss is that of packets or of their answers. Other figures lack it.",
			optional),
		field("unit", Text, "Unit of the numbers.", words("share", "ms", "bytes/s")),
		field("before", Float, "The figure before.", nullable), field("after", Float, "The figure after.", nullable),
		field("change", Float, "Their difference.", nullable),
		field("change_least", Float, "Lower bound of the 95 % interval of the difference.", nullable),
		field("change_most", Float, "Upper bound of it.", nullable),
		field("seen_from", Float, "A difference of this size is found in four of five such pairs.", nullable),
		field("chance", Float, "Chance that captures without a difference differ as much, 0 to 1.", nullable),
		field("real", Bool, "True if the difference is larger than chance."),
		field("grade", Text, "What a real difference means.", optional, words("worse", "better", "other")),
		field("sentence", Text, "A real difference in a sentence.", optional),
	}
	return object("compare", "How two sets of captures differ.",
		field("before", JSON, "The set from before.", of(set...)),
		field("after", JSON, "The set from after.", of(set...)),
		field("headline", Text, "The result in a sentence."),
		field("compared", Uint, "Figures and rules that were compared."),
		field("worse", Uint, "Real differences and findings that are for the worse."),
		field("differences", JSON, "The differences to tell.", listOf(difference...)),
		field("figures", JSON, "All figures of all messages.", listOf(difference...)),
		field("findings", JSON, "Rules that fired before or after.", listOf(
			protocolField,
			field("way", Text, "Whose doing, as above.", words("A→B", "B→A")),
			field("rule", Text, "Name of the rule."),
			field("severity", Text, "How grave it is.", words(severities...)),
			field("before", Uint, "Occurrences before."), field("after", Uint, "Occurrences after."),
			field("kind", Text, "How it differs.", words("only after", "only before", "more often", "less often", "as often")),
			field("chance", Float, "Chance that captures without a difference differ as much, 0 to 1.", nullable),
			field("real", Bool, "True if the difference is larger than chance."))),
		field("notes", Texts, "What the comparison cannot tell, and why."))
}
