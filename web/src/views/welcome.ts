// The page before a capture is open.
import type { App } from "../app";
import { clear, h } from "../dom";

export function welcome(app: App, host: HTMLElement): void {
  const wanted = app.wanted();
  const waiting = app.files.names();
  clear(host, h("div", { class: "welcome" },
    h("h2", {}, wanted ? `Drop ${wanted} here` : "Drop a capture here"),
    wanted !== "" && h("p", {}, "The link goes to a place in this capture."),
    waiting.length > 0 && h("p", { role: "status" },
      `Ready: ${waiting.map(([kind, name]) => `${name} (${kind})`).join(", ")}. Now drop the capture that it belongs to.`),
    h("p", {}, "pcap or pcapng, plain, gzip or zstd. Also drop the keys, schemas and profiles that it needs."),
    h("p", {}, app.picker("Choose files…")),
    h("p", { class: "dim" }, "Nothing leaves this machine: the page asks for nothing after it has loaded, and its ",
      "security policy allows no other address."),
  ));
}
