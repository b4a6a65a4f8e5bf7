// The overview: the verdict first, then each flow.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { count, list, milliseconds, plural, share, text } from "../format";
import type { Cells } from "../wire";

const decoder = new TextDecoder();

export function overview(app: App, host: HTMLElement): View {
  clear(host, h("p", { class: "dim" }, "Reading the capture…"));
  void (async () => {
    const answer = await app.work("Reading the capture…",
      app.commands.run(app.command("overview", "--json", ...app.files.logs())));
    if (!answer) return;
    const line = decoder.decode(answer.out).split("\n")[0] ?? "";
    if (answer.complaints) app.say(answer.complaints.trim());
    if (line === "") {
      clear(host, h("h2", {}, "This cannot be read"), h("pre", {}, answer.complaints));
      return;
    }
    draw(app, host, JSON.parse(line) as Cells);
  })();
  return { shown: () => undefined };
}

function draw(app: App, host: HTMLElement, o: Cells): void {
  const worst = list(o["worst"]);
  clear(host,
    h("p", { class: `verdict ${text(o["severity"])}` }, text(o["sentence"])),
    h("dl", { class: "facts" },
      ...fact("Packets", count(o["packets"])), ...fact("Span", milliseconds(o["span_ms"])),
      ...fact("Flows", count(o["flows"])), ...fact("In trouble", count(o["troubled"])),
      ...fact("Of no known protocol", count(o["others"])), ...fact("Missing in the capture", count(o["dropped"]))),
    ...worst.map((f) => flow(app, f)),
    next(list(o["next"])));
}

function fact(name: string, value: string): Node[] {
  return [h("div", {}, h("dt", {}, name), h("dd", {}, value))];
}

function flow(app: App, f: Cells): HTMLElement {
  const id = Number(f["flow"]);
  const sides = list(f["sides"]);
  return h("section", { class: "card" },
    h("h2", {}, `Flow ${id} `, h("span", { class: "dim" }, `${text(f["protocol"])}/${text(f["dialect"])}`)),
    h("p", { class: "actions" },
      h("button", { type: "button", click: () => app.select(0, id, "packets") }, "Packets"),
      h("button", { type: "button", click: () => app.select(0, id, "findings") }, "Findings")),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `The sides of flow ${id}` },
      h("table", {},
        h("caption", { class: "hidden" }, `The sides of flow ${id}`),
        h("thead", {}, h("tr", {}, ...["Side", "Address", "Packets", "Loss", "RTT", "p95", "Jitter", "Resent", "Version",
          "Against the reference"].map((t) => h("th", { scope: "col" }, t)))),
        h("tbody", {}, ...sides.map((s) => h("tr", {},
          h("th", { scope: "row" }, text(s["side"]).toUpperCase(), s["near"] ? " captured here" : ""),
          h("td", {}, text(s["addr"])), h("td", { class: "num" }, count(s["packets"])),
          h("td", { class: "num" }, share(s["loss"])), h("td", { class: "num" }, milliseconds(s["rtt_ms"])),
          h("td", { class: "num" }, milliseconds(s["rtt_p95_ms"])),
          h("td", { class: "num" }, milliseconds(s["jitter_ms"])), h("td", { class: "num" }, count(s["resent"])),
          h("td", {}, text(s["version"])), h("td", {}, text(s["verdict"]))))))),
    h("ul", { class: "troubles" }, ...list(f["troubles"]).map((t) => trouble(app, id, t))),
    Number(f["notes"]) > 0 && h("p", { class: "dim" }, `and ${plural(Number(f["notes"]), "note")}`));
}

function trouble(app: App, id: number, t: Cells): HTMLElement {
  const frame = Number(t["frame"]);
  return h("li", {},
    h("span", { class: `badge ${text(t["severity"])}` }, text(t["severity"])), " ",
    h("span", { class: "dim" }, text(t["origin"])), " ",
    text(t["rule"]) && h("b", {}, `${text(t["rule"])}, `), `${text(t["side"]).toUpperCase()}: ${text(t["text"])} `,
    h("span", { class: "dim" }, `(${text(t["certainty"])}) `),
    h("button", { type: "button", class: "link", click: () => app.select(frame, id, "packets") }, `frame ${frame}`));
}

function next(list: Cells[]): HTMLElement {
  return h("details", {},
    h("summary", {}, "The same at the command line"),
    h("ul", {}, ...list.map((n) => h("li", {}, `${text(n["why"])} `, h("code", {}, text(n["command"]))))));
}
