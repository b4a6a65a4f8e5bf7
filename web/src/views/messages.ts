// The messages that the flows carried, and when they arrived.
import type { App, View } from "../app";
import { milliseconds, text } from "../format";
import { listing } from "./listing";

export function messages(app: App, host: HTMLElement): View {
  return listing(app, host, {
    key: "messages", label: "Messages", empty: "The capture shows no messages that can be read.",
    command: ["messages", "--json"],
    columns: [
      { name: "frame", title: "Frame", width: "6rem", number: true },
      { name: "flow", title: "Flow", width: "4rem", number: true },
      { name: "side", title: "Side", width: "4rem", cell: (r) => text(r["side"]).toUpperCase() },
      { name: "mode", title: "Mode", width: "7rem" },
      { name: "message_id", title: "Id", width: "5rem", number: true },
      {
        name: "type", title: "Type", width: "minmax(8rem, 12rem)",
        cell: (r) => text(r["name"]) || (r["type"] === null || r["type"] === undefined ? "" : `type ${text(r["type"])} (no schema)`),
      },
      { name: "bits", title: "Bits", width: "5rem", number: true },
      { name: "attempts", title: "Sent", width: "4.5rem", number: true },
      {
        name: "delivered", title: "Delivered", width: "6.5rem",
        className: (r) => r["delivered"] === "no" ? "error" : "",
      },
      { name: "arrival_ms", title: "Arrived after", width: "8rem", number: true, cell: (r) => milliseconds(r["arrival_ms"]) },
      { name: "wait_ms", title: "Waited", width: "6rem", number: true, cell: (r) => milliseconds(r["wait_ms"]) },
      { name: "certainty", title: "Certainty", width: "7rem" },
    ],
    select: (r, open) => {
      if (open) app.select(Number(r["frame"]), Number(r["flow"]), "packets");
      else app.select(Number(r["frame"]), Number(r["flow"]));
    },
  });
}
