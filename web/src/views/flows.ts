// Every conversation of two endpoints.
import type { App, View } from "../app";
import { h } from "../dom";
import { bounded, count, milliseconds, share, sure, text } from "../format";
import type { Cells } from "../wire";
import { facts, listing } from "./listing";

export function flows(app: App, host: HTMLElement): View {
  return listing(app, host, {
    key: "flows", label: "Flows", empty: "The capture has no flows: no packet in it is UDP or TCP.",
    command: ["flows", "--json"], hint: "Select a flow to read about both its sides. Enter opens its packets.",
    columns: [
      { name: "flow", title: "Flow", width: "4rem", number: true, narrow: "3.5rem" },
      {
        name: "protocol", title: "Protocol", width: "minmax(9rem, 1fr)", narrow: "minmax(6rem, 1fr)",
        cell: (r) => named(r),
      },
      { name: "a", title: "A", width: "minmax(10rem, 1.2fr)" },
      { name: "b", title: "B", width: "minmax(10rem, 1.2fr)" },
      { name: "packets_a", title: "Packets A", width: "6.5rem", number: true, cell: (r) => count(r["packets_a"]) },
      { name: "packets_b", title: "Packets B", width: "6.5rem", number: true, cell: (r) => count(r["packets_b"]) },
      { name: "path_loss_a", title: "Loss A→B", width: "6.5rem", number: true, cell: (r) => share(r["path_loss_a"]) },
      { name: "path_loss_b", title: "Loss B→A", width: "6.5rem", number: true, cell: (r) => share(r["path_loss_b"]) },
      { name: "rtt_ms_a", title: "RTT A", width: "6rem", number: true, cell: (r) => milliseconds(r["rtt_ms_a"]) },
      { name: "rtt_ms_b", title: "RTT B", width: "6rem", number: true, cell: (r) => milliseconds(r["rtt_ms_b"]) },
      {
        name: "errors", title: "Errors", width: "5rem", number: true, narrow: "4.5rem",
        className: (r) => Number(r["errors"]) > 0 ? "error" : "",
      },
      {
        name: "warnings", title: "Warnings", width: "6.5rem", number: true, narrow: "6rem",
        className: (r) => Number(r["warnings"]) > 0 ? "warn" : "",
      },
      {
        name: "", title: "Ends", width: "0", narrow: "below",
        cell: (r) => `${text(r["a"])} → ${text(r["b"])}`,
      },
    ],
    select: (r) => app.select(0, Number(r["flow"])),
    open: (r) => app.select(0, Number(r["flow"]), "packets"),
    pane: (r) => about(app, r),
  });
}

function named(r: Cells): string {
  return r["protocol"] ? `${text(r["protocol"])}/${text(r["dialect"])}` : "not known";
}

function about(app: App, r: Cells): Node[] {
  const id = Number(r["flow"]);
  const go = (tab: string, title: string): HTMLElement =>
    h("button", { type: "button", click: () => app.select(0, id, tab) }, title);
  const known = r["vantage"] !== undefined;
  return [
    h("h2", {}, `Flow ${id}: ${named(r)}`), h("p", {}, text(r["reason"])),
    h("p", { class: "actions" }, go("packets", "Packets"), known && go("state", "State"), known && go("ladder", "Ladder"),
      known && go("graphs", "Graphs"), known && go("messages", "Messages"), go("findings", "Findings")),
    h("p", {}, r["was"] ? `It continues flow ${text(r["was"])}, where the player had the address ${text(r["was_addr"])} ` +
      `(${text(r["was_certainty"])}): ${text(r["was_reason"])}` : ""),
    h("div", { class: "sides" }, ...["a", "b"].map((s) => side(r, s))),
  ];
}

function side(r: Cells, s: string): HTMLElement {
  const other = s === "a" ? "B" : "A";
  const at = (name: string): unknown => r[`${name}_${s}`];
  const ms = (name: string): string => typeof at(name) === "number" ? milliseconds(at(name)) : "";
  return h("section", {},
    h("h3", { class: `side-${s}` }, `${s.toUpperCase()} ${text(r[s])}`),
    facts(
      ["Version", text(at("version"))], ["Packets", count(at("packets"))], ["Bytes", count(at("bytes"))],
      [`Loss on the way to ${other}`, bounded(at("path_loss"), at("loss_least"), at("loss_most"), "")],
      ["Loss as its library has it", typeof at("loss") === "number" ? `${share(at("loss"))}${sure(at("loss_certainty"))}` : ""],
      ["Round trip on the wire", ms("wire_rtt_ms")],
      ["Round trip as its library has it", ms("rtt_ms") && `${ms("rtt_ms")}${sure(at("rtt_certainty"))}`],
      ["95% below", ms("rtt_p95_ms")], ["Jitter", ms("jitter_ms")],
      ["Sent again", typeof at("resends") === "number" ? count(at("resends")) : ""],
      ["Received", typeof at("received") === "number" ? count(at("received")) : ""],
    ));
}
