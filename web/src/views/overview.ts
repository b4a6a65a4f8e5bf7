// The overview: the verdict first, then each flow.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { bounded, captured, count, list, milliseconds, plain, plural, sure, text } from "../format";
import type { Cells } from "../wire";

const decoder = new TextDecoder();

export function overview(app: App, host: HTMLElement): View {
  clear(host, h("p", { class: "dim" }, "Reading the capture…"));
  void (async () => {
    const answer = await app.work("Reading the capture…",
      app.overview("overview", "--json", ...app.files.logs()));
    if (!answer) return;
    const line = decoder.decode(answer.out).split("\n")[0] ?? "";
    if (line === "") {
      app.problem(host, new Error(answer.complaints));
      return;
    }
    if (answer.complaints) app.warn(plain(answer.complaints));
    const o = JSON.parse(line) as Cells;
    draw(app, host, o);
    app.announce(text(o["sentence"]));
  })();
  return { shown: () => undefined };
}

function draw(app: App, host: HTMLElement, o: Cells): void {
  const worst = list(o["worst"]);
  const more = Number(o["flows"]) - worst.length;
  const common = o["common_cause"] as Cells | undefined;
  clear(host,
    h("p", { class: `verdict ${text(o["severity"])}` }, text(o["sentence"])),
    h("dl", { class: "facts" },
      ...fact("Packets", count(o["packets"])), ...fact("Span", milliseconds(o["span_ms"])),
      ...fact("Flows", count(o["flows"])), ...fact("In trouble", count(o["troubled"])),
      ...fact("Of no known protocol", count(o["others"])), ...fact("Missing in the capture", count(o["dropped"]))),
    common && h("p", {}, h("b", {}, "All flows together: "), text(common["sentence"])),
    worst.length === 0 && h("p", {}, "No flow is of a known protocol. The view Flows says of each why none explains it. ",
      "Encrypted traffic needs keys, and a format of your own needs a profile: drop them on the page."),
    h("div", { class: "cards" }, ...worst.map((f) => flow(app, f))),
    more > 0 && h("p", {}, `These are the worst ${worst.length}. `,
      h("button", { type: "button", click: () => app.show("flows") }, `All ${count(o["flows"])} flows`)),
    next(list(o["next"])));
}

function fact(name: string, value: string): Node[] {
  return [h("div", {}, h("dt", {}, name), h("dd", {}, value))];
}

// A figure of a side: its title, whether it is a number, and its text.
interface Figure {
  title: string;
  number: boolean;
  of: (s: Cells, flow: Cells) => string;
}

const figures: Figure[] = [
  { title: "Address", number: false, of: (s) => text(s["addr"]) },
  { title: "Known from", number: false, of: (s, f) => captured(s["near"] === true, f["vantage"]) },
  { title: "Packets", number: true, of: (s) => count(s["packets"]) },
  {
    title: "Lost on the way", number: false,
    of: (s) => bounded(s["loss"], s["loss_least"], s["loss_most"], s["loss_certainty"]) +
      (s["loss_round"] ? ", there and back" : ""),
  },
  { title: "RTT", number: true, of: (s) => measured(s["rtt_ms"]) },
  { title: "95% below", number: true, of: (s) => measured(s["rtt_p95_ms"]) },
  { title: "Jitter", number: true, of: (s) => measured(s["jitter_ms"]) },
  { title: "Sent again", number: false, of: resent },
  { title: "Version", number: false, of: (s) => text(s["version"]) || "not known" },
  {
    title: "Against the reference", number: false,
    of: (s) => `${text(s["verdict"]) || "not held against it"} ${text(s["behaviour"])}`,
  },
];

// A round trip is only measured where the side was captured.
function measured(v: unknown): string {
  return typeof v === "number" ? milliseconds(v) : "–";
}

function resent(s: Cells): string {
  const causes = list(s["causes"]).map((c) => `${count(c["count"])} ${text(c["cause"]).replaceAll("-", " ")}`);
  return count(s["resent"]) + (causes.length > 0 ? ` (${causes.join(", ")})` : "");
}

function flow(app: App, f: Cells): HTMLElement {
  const id = Number(f["flow"]);
  const sides = list(f["sides"]);
  const go = (tab: string, title: string): HTMLElement =>
    h("button", { type: "button", click: () => app.select(0, id, tab) }, title);
  const troubles = list(f["troubles"]);
  // Where the end is a trouble of its own, its first sentence need not stand twice.
  const end = text(f["end"]);
  const name = (s: Cells): string => text(s["side"]).toUpperCase();
  return h("section", { class: "card" },
    h("h2", {}, `Flow ${id} `, h("span", { class: "dim" }, `${text(f["protocol"])}/${text(f["dialect"])}`)),
    h("ul", { class: "troubles" }, ...troubles.map((t) => trouble(app, id, t))),
    end !== "" && h("p", {}, h("b", {}, "How it ended: "), end),
    h("table", { class: "wideonly" },
      h("caption", { class: "hidden" }, `The sides of flow ${id}`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Side"),
        ...figures.map((g) => h("th", { scope: "col", class: g.number ? "num" : "" }, g.title)))),
      h("tbody", {}, ...sides.map((s) => h("tr", {},
        h("th", { scope: "row", class: `side-${text(s["side"])}` }, name(s)),
        ...figures.map((g) => h("td", { class: g.number ? "num" : "" }, g.of(s, f))))))),
    // The same with a row for each figure, where there is no room for all of them in a row.
    h("table", { class: "narrowonly" },
      h("caption", { class: "hidden" }, `The sides of flow ${id}`),
      h("thead", {}, h("tr", {}, h("td", {}),
        ...sides.map((s) => h("th", { scope: "col", class: `side-${text(s["side"])}` }, name(s))))),
      h("tbody", {}, ...figures.map((g) => h("tr", {}, h("th", { scope: "row" }, g.title),
        ...sides.map((s) => h("td", {}, g.of(s, f))))))),
    h("p", { class: "actions" }, go("packets", "Packets"), go("state", "State"), go("graphs", "Graphs"),
      go("messages", "Messages"), go("findings", "Findings"),
      Number(f["notes"]) > 0 && h("span", { class: "dim" }, `and ${plural(Number(f["notes"]), "note")}`)));
}

// Where a trouble comes from, in words.
const origins: Record<string, string> = {
  network: "the network", library: "the library", code: "the code", unsaid: "no cause is shown",
};

function trouble(app: App, id: number, t: Cells): HTMLElement {
  const frame = Number(t["frame"]);
  const origin = text(t["origin"]);
  return h("li", {},
    h("span", { class: `badge ${text(t["severity"])}` }, text(t["severity"])), " ",
    h("span", { class: "dim" }, `${origins[origin] ?? origin}:`), " ",
    text(t["rule"]) && h("b", {}, `${text(t["rule"])}, `), `${text(t["side"]).toUpperCase()}: ${text(t["text"])}`,
    h("span", { class: "dim" }, sure(t["certainty"])), " ",
    h("button", { type: "button", class: "link", click: () => app.select(frame, id, "packets") }, `frame ${frame}`));
}

function next(list: Cells[]): HTMLElement {
  return h("details", {},
    h("summary", {}, "The same at the command line"),
    h("ul", {}, ...list.map((n) => h("li", {}, `${text(n["why"])} `, h("code", {}, text(n["command"]))))));
}
