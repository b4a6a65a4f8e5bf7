// What replay says of each side against the reference implementation.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { count, text } from "../format";
import type { Cells } from "../wire";
import { listing } from "./listing";

export function replay(app: App, host: HTMLElement): View {
  const detail = h("section", { class: "explanation", "aria-label": "The verdict", "aria-live": "polite" },
    h("p", { class: "dim" }, "Select a side to read its verdict."));
  return listing(app, host, {
    key: "replay", label: "Verdicts of replay", empty: "No flow has a reference to be held against.",
    command: ["replay", "--json"],
    columns: [
      { name: "flow", title: "Flow", width: "4.5rem", number: true },
      { name: "side", title: "Side", width: "4.5rem", cell: (r) => text(r["side"]).toUpperCase() },
      { name: "addr", title: "Address", width: "minmax(11rem, 1fr)" },
      { name: "behaviour", title: "Behaves as", width: "minmax(9rem, 1fr)" },
      {
        name: "verdict", title: "Verdict", width: "8rem",
        className: (r) => ({ diverges: "error", conforms: "good" })[text(r["verdict"])] ?? "",
      },
      { name: "packets", title: "Packets", width: "6rem", number: true, cell: (r) => count(r["packets"]) },
      { name: "undecided", title: "Undecided", width: "7rem", number: true },
      { name: "first_frame", title: "First frame", width: "7rem", number: true },
      { name: "rule", title: "Rule", width: "minmax(10rem, 1fr)" },
    ],
    select: (r, open) => {
      const frame = Number(r["first_frame"] ?? 0);
      if (open && frame) app.select(frame, Number(r["flow"]), "packets");
      else explain(app, detail, r);
    },
  }, detail);
}

// The parts of a verdict, in the order in which they are read.
const parts: [string, string][] = [
  ["because", "Because"], ["field", "Field"], ["expected", "Expected"], ["got", "Found"], ["reference_state", "Reference"],
  ["captured_state", "Capture"], ["undecided_why", "Left open"], ["certainty", "Certainty"], ["rests_on", "Rests on"],
];

function explain(app: App, host: HTMLElement, r: Cells): void {
  const frame = Number(r["first_frame"] ?? 0);
  clear(host,
    h("h2", {}, `Flow ${text(r["flow"])}, ${text(r["side"]).toUpperCase()}: ${text(r["verdict"])} `,
      h("span", { class: "dim" }, text(r["behaviour"]))),
    h("dl", { class: "parts" }, ...parts.filter(([key]) => text(r[key]) !== "").map(([key, title]) => h("div", {},
      h("dt", {}, title), h("dd", {}, Array.isArray(r[key]) ? (r[key] as string[]).join(", ") : text(r[key]))))),
    frame > 0 && h("p", {}, h("button", {
      type: "button", click: () => app.select(frame, Number(r["flow"]), "packets"),
    }, `Go to frame ${frame}`)));
}
