// The page before a capture is open.
import type { App } from "../app";
import { clear, h } from "../dom";

export function welcome(app: App, host: HTMLElement): void {
  const wanted = app.wanted();
  clear(host, h("div", { class: "welcome" },
    h("h2", {}, wanted ? `Drop ${wanted} here` : "Drop a capture here"),
    h("p", {}, "pcap or pcapng, plain, gzip or zstd. Also drop the keys, schemas and profiles that it needs."),
    h("p", {}, app.picker("Choose files…")),
    h("p", { class: "dim" }, "Nothing leaves this machine: the page asks for nothing after it has loaded, and its ",
      "security policy allows no other address."),
  ));
}
