// The messages that the flows carried, and when they arrived.
import type { App, View } from "../app";
import { h } from "../dom";
import { milliseconds, text } from "../format";
import type { Cells } from "../wire";
import { facts, listing } from "./listing";

export function messages(app: App, host: HTMLElement): View {
  return listing(app, host, {
    key: "messages", label: "Messages", byFlow: true, below: 2, command: ["messages", "--json"],
    empty: "The capture shows no messages that can be read. Drop the schema, profile or keys that they need.",
    hint: "Select a message to read how it went. Enter opens its first packet.",
    columns: [
      { name: "frame", title: "Frame", width: "6rem", number: true, narrow: "4.2rem" },
      { name: "flow", title: "Flow", width: "4rem", number: true },
      { name: "side", title: "Side", width: "4rem", narrow: "3.2rem", cell: (r) => text(r["side"]).toUpperCase() },
      { name: "mode", title: "Mode", width: "7rem" },
      { name: "message_id", title: "Id", width: "5rem", number: true },
      { name: "type", title: "Type", width: "minmax(8rem, 12rem)", narrow: "minmax(5rem, 1fr)", cell: typed },
      { name: "bits", title: "Bits", width: "5rem", number: true },
      { name: "attempts", title: "Sent", width: "4.5rem", number: true },
      {
        name: "delivered", title: "Delivered", width: "6.5rem",
        className: (r) => r["delivered"] === "no" ? "error" : "",
      },
      {
        name: "arrival_ms", title: "Arrived after", width: "8.5rem", number: true, narrow: "7rem",
        cell: (r) => milliseconds(r["arrival_ms"]),
      },
      { name: "wait_ms", title: "Waited", width: "6rem", number: true, cell: (r) => milliseconds(r["wait_ms"]) },
      { name: "certainty", title: "Certainty", width: "7rem" },
      {
        name: "", title: "Course", width: "0", narrow: "below",
        cell: (r) => `${text(r["mode"])}, id ${text(r["message_id"])}, ${text(r["bits"])} bits, sent ${times(r)}, ` +
          `delivered: ${text(r["delivered"])} (${text(r["certainty"])})`,
      },
    ],
    select: (r) => app.select(Number(r["frame"]), app.flow),
    open: (r) => app.select(Number(r["frame"]), Number(r["flow"]), "packets"),
    pane: (r) => about(app, r),
  });
}

function typed(r: Cells): string {
  if (text(r["name"])) return text(r["name"]);
  return r["type"] === null || r["type"] === undefined ? "" : `type ${text(r["type"])} (no schema)`;
}

function times(r: Cells): string {
  return Number(r["attempts"]) === 1 ? "once" : `${text(r["attempts"])} times`;
}

function about(app: App, r: Cells): Node[] {
  const flow = Number(r["flow"]);
  const frames = Array.isArray(r["frames"]) ? (r["frames"] as number[]).slice(0, 24) : [];
  const range = (least: unknown, most: unknown): string => typeof least === "number" && typeof most === "number"
    ? `, between ${milliseconds(least)} and ${milliseconds(most)}` : "";
  const arrived = typeof r["arrival_ms"] === "number"
    ? `${milliseconds(r["arrival_ms"])}${range(r["arrival_ms_least"], r["arrival_ms_most"])}` : "not known";
  const blocker = r["blocked_by"];
  return [
    h("h2", {}, `Message ${text(r["message_id"])} of ${text(r["side"]).toUpperCase()}, flow ${flow}`),
    facts(["Type", typed(r)], ["Mode", text(r["mode"])], ["Bits", text(r["bits"])],
      ["Sent", times(r)],
      ["Delivered", `${text(r["delivered"])} (${text(r["certainty"])})`],
      ["Arrived after", arrived], ["Then waited for others", milliseconds(r["wait_ms"])],
      ["Held back by", blocker === null || blocker === undefined ? "" : text(blocker)]),
    h("p", {}, "In frames: ", ...frames.flatMap((f) => [
      h("button", { type: "button", class: "link", click: () => app.select(f, flow, "packets") }, String(f)), " ",
    ])),
  ];
}
