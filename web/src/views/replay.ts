// What replay says of each side against the reference implementation.
import type { App, View } from "../app";
import { h } from "../dom";
import { count, text } from "../format";
import type { Cells } from "../wire";
import { listing } from "./listing";

export function replay(app: App, host: HTMLElement): View {
  return listing(app, host, {
    key: "replay", label: "Verdicts of replay", command: ["replay", "--json"],
    empty: "No flow has a reference to be held against: none is of a known protocol and version.",
    hint: "Select a side to read its verdict. Enter opens the packet where it diverges.",
    columns: [
      { name: "flow", title: "Flow", width: "4.5rem", number: true, narrow: "3.5rem" },
      { name: "side", title: "Side", width: "4.5rem", narrow: "3.2rem", cell: (r) => text(r["side"]).toUpperCase() },
      { name: "addr", title: "Address", width: "minmax(11rem, 1fr)" },
      { name: "behaviour", title: "Behaves as", width: "minmax(9rem, 1fr)", narrow: "minmax(6rem, 1fr)" },
      {
        name: "verdict", title: "Verdict", width: "8rem", narrow: "6.5rem",
        className: (r) => ({ diverges: "error", conforms: "good" })[text(r["verdict"])] ?? "",
      },
      { name: "packets", title: "Packets", width: "6rem", number: true, cell: (r) => count(r["packets"]) },
      { name: "undecided", title: "Undecided", width: "7rem", number: true, cell: (r) => text(r["undecided"]) || "0" },
      { name: "first_frame", title: "First frame", width: "7.9rem", number: true, cell: (r) => text(r["first_frame"]) || "–" },
      { name: "rule", title: "Rule", width: "minmax(10rem, 1fr)", cell: (r) => text(r["rule"]) || "–" },
      {
        name: "", title: "About", width: "0", narrow: "below",
        cell: (r) => `${text(r["addr"])}, ${count(r["packets"])} packets, undecided ${text(r["undecided"]) || "0"}` +
          (r["rule"] ? `, ${text(r["rule"])} from frame ${text(r["first_frame"])}` : ""),
      },
    ],
    open: (r) => {
      const frame = Number(r["first_frame"] ?? 0);
      app.select(frame, Number(r["flow"]), "packets");
    },
    pane: (r) => explain(app, r),
  });
}

// The parts of a verdict, in the order in which they are read.
const parts: [string, string][] = [
  ["because", "Because"], ["field", "Field"], ["expected", "Expected"], ["got", "Found"], ["reference_state", "Reference"],
  ["captured_state", "Capture"], ["undecided_why", "Left open"], ["certainty", "Certainty"], ["rests_on", "Rests on"],
];

// What a verdict says, in words: conforms and consistent are easily mixed up.
const verdicts: Record<string, string> = {
  conforms: "All of its packets are those that the reference sends.",
  consistent: "Nothing contradicts the reference. Some packets are left open, as the capture does not decide them.",
  diverges: "A packet is not what the reference sends.",
};

function explain(app: App, r: Cells): Node[] {
  const frame = Number(r["first_frame"] ?? 0);
  const go = h("p", {}, h("button", {
    type: "button", click: () => app.select(frame, Number(r["flow"]), "packets"),
  }, `Go to frame ${frame}`));
  return [
    h("h2", {}, `Flow ${text(r["flow"])}, ${text(r["side"]).toUpperCase()}: ${text(r["verdict"])} `,
      h("span", { class: "dim" }, text(r["behaviour"]))),
    h("p", {}, verdicts[text(r["verdict"])] ?? ""),
    h("dl", { class: "parts" }, ...parts.filter(([key]) => text(r[key]) !== "").map(([key, title]) => h("div", {},
      h("dt", {}, title), h("dd", {}, Array.isArray(r[key]) ? (r[key] as string[]).join(", ") : text(r[key]))))),
    ...(frame > 0 ? [go] : []),
  ];
}
