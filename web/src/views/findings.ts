// What the rules found, and what it means.
import type { App, View } from "../app";
import { h } from "../dom";
import { text } from "../format";
import type { Cells } from "../wire";
import { listing } from "./listing";

const decoder = new TextDecoder();

export function findings(app: App, host: HTMLElement): View {
  return listing(app, host, {
    key: "findings", label: "Findings", byFlow: true, below: 2, command: ["findings", "--json", ...app.files.logs()],
    empty: "No rule found anything wrong. `ackscope explain` lists the rules.",
    hint: "Select a finding to read what it means. Enter opens its first packet.",
    columns: [
      {
        name: "severity", title: "Severity", width: "6rem", narrow: "5rem",
        cell: (r) => h("span", { class: `badge ${text(r["severity"])}` }, text(r["severity"])),
      },
      { name: "flow", title: "Flow", width: "4rem", number: true, narrow: "3.2rem" },
      { name: "side", title: "Side", width: "4rem", narrow: "3.2rem", cell: (r) => text(r["side"]).toUpperCase() },
      { name: "rule", title: "Rule", width: "minmax(14rem, 17rem)", narrow: "minmax(6rem, 1fr)" },
      { name: "certainty", title: "Certainty", width: "7rem" },
      { name: "count", title: "Times", width: "5rem", number: true },
      { name: "frame", title: "Frame", width: "6rem", number: true },
      { name: "message", title: "What", width: "minmax(16rem, 3fr)", narrow: "below" },
    ],
    open: (r) => app.select(Number(r["frame"]), Number(r["flow"]) || 0, "packets"),
    pane: (r) => explain(app, r),
  });
}

async function explain(app: App, r: Cells): Promise<Node[]> {
  const answer = await app.commands.run(["explain", text(r["rule"])]).catch(() => null);
  const frames = Array.isArray(r["frames"]) ? (r["frames"] as number[]).slice(0, 12) : [];
  const flow = Number(r["flow"]) || 0, times = Number(r["count"]);
  const explanation = h("pre", { tabindex: 0, role: "region", "aria-label": "Explanation" },
    answer ? decoder.decode(answer.out) : "");
  return [
    h("h2", {}, text(r["rule"])), h("p", {}, text(r["message"])),
    h("p", {}, text(r["log_text"])), // what the game's own log says of it
    h("p", { class: "dim" }, `${text(r["certainty"])}, ${times === 1 ? "once" : `${times} times`}`),
    h("p", {}, frames.length === 1 ? "Frame: " : "Frames: ", ...frames.flatMap((f) => [
      h("button", { type: "button", class: "link", click: () => app.select(f, flow, "packets") }, String(f)), " ",
    ]), frames.length > 0 && h("button", {
      type: "button", click: () => app.select(frames[0] ?? 0, flow, "state"),
    }, "State then")),
    explanation,
  ];
}
