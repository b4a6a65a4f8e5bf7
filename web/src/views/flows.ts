// Every conversation of two endpoints.
import type { App, View } from "../app";
import { count, milliseconds, share, text } from "../format";
import { listing } from "./listing";

export function flows(app: App, host: HTMLElement): View {
  return listing(app, host, {
    key: "flows", label: "Flows", empty: "The capture has no flows.", command: ["flows", "--json"],
    columns: [
      { name: "flow", title: "Flow", width: "4rem", number: true },
      {
        name: "protocol", title: "Protocol", width: "minmax(9rem, 1fr)",
        cell: (r) => r["protocol"] ? `${text(r["protocol"])}/${text(r["dialect"])}` : "not known",
      },
      { name: "a", title: "A", width: "minmax(10rem, 1.2fr)" },
      { name: "b", title: "B", width: "minmax(10rem, 1.2fr)" },
      { name: "packets_a", title: "Packets A", width: "6rem", number: true, cell: (r) => count(r["packets_a"]) },
      { name: "packets_b", title: "Packets B", width: "6rem", number: true, cell: (r) => count(r["packets_b"]) },
      { name: "path_loss_a", title: "Loss A→B", width: "6rem", number: true, cell: (r) => share(r["path_loss_a"]) },
      { name: "path_loss_b", title: "Loss B→A", width: "6rem", number: true, cell: (r) => share(r["path_loss_b"]) },
      {
        name: "wire_rtt_ms_a", title: "RTT A", width: "6rem", number: true, cell: (r) => milliseconds(r["wire_rtt_ms_a"]),
      },
      {
        name: "wire_rtt_ms_b", title: "RTT B", width: "6rem", number: true, cell: (r) => milliseconds(r["wire_rtt_ms_b"]),
      },
      {
        name: "errors", title: "Errors", width: "5rem", number: true,
        className: (r) => Number(r["errors"]) > 0 ? "error" : "",
      },
      {
        name: "warnings", title: "Warnings", width: "6rem", number: true,
        className: (r) => Number(r["warnings"]) > 0 ? "warn" : "",
      },
    ],
    select: (r, open) => app.select(0, Number(r["flow"]), open ? "packets" : undefined),
  });
}
