// What the rules found, and what it means.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { text } from "../format";
import type { Cells } from "../wire";
import { listing } from "./listing";

const decoder = new TextDecoder();

export function findings(app: App, host: HTMLElement): View {
  const detail = h("section", { class: "explanation", "aria-label": "Explanation of the finding", "aria-live": "polite" },
    h("p", { class: "dim" }, "Select a finding to read what it means."));
  return listing(app, host, {
    key: "findings", label: "Findings", empty: "Nothing was found.", command: ["findings", "--json"],
    columns: [
      {
        name: "severity", title: "Severity", width: "6rem",
        cell: (r) => h("span", { class: `badge ${text(r["severity"])}` }, text(r["severity"])),
      },
      { name: "flow", title: "Flow", width: "4rem", number: true },
      { name: "side", title: "Side", width: "4rem", cell: (r) => text(r["side"]).toUpperCase() },
      { name: "rule", title: "Rule", width: "minmax(14rem, 17rem)" },
      { name: "certainty", title: "Certainty", width: "7rem" },
      { name: "count", title: "Times", width: "5rem", number: true },
      { name: "frame", title: "Frame", width: "6rem", number: true },
      { name: "message", title: "What", width: "minmax(16rem, 3fr)" },
    ],
    select: (r, open) => {
      if (open) app.select(Number(r["frame"]), Number(r["flow"]) || 0, "packets");
      else void explain(app, detail, r);
    },
  }, detail);
}

async function explain(app: App, detail: HTMLElement, r: Cells): Promise<void> {
  const answer = await app.commands.run(["explain", text(r["rule"])]).catch(() => null);
  const frames = Array.isArray(r["frames"]) ? (r["frames"] as number[]).slice(0, 12) : [];
  const flow = Number(r["flow"]) || 0;
  clear(detail,
    h("h2", {}, text(r["rule"])), h("p", {}, text(r["message"])),
    h("p", {}, "Frames: ", ...frames.flatMap((f) => [
      h("button", { type: "button", class: "link", click: () => app.select(f, flow, "packets") }, String(f)), " ",
    ])),
    answer && h("pre", { tabindex: 0, role: "region", "aria-label": "Explanation" }, decoder.decode(answer.out)));
}
