// The packets between both sides around the selected one. Time runs down.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { list, nanoseconds, text } from "../format";
import type { Cells } from "../wire";

const around = 60; // packets before the selected one, and as many after it
// A gap in time makes a gap between rows, up to so many px. One px stands for so many ns.
const widestGap = 64;
const perPixel = 1_000_000;

export function ladder(app: App, host: HTMLElement): View {
  let drawn = "";
  async function shown(): Promise<void> {
    const all = await app.frames;
    const known = await app.known();
    const frame = app.frame || Math.ceil(all / 2);
    let flow = app.flow;
    if (!known.some((f) => Number(f["flow"]) === flow)) flow = Number(known[0]?.["flow"] ?? 0);
    const key = `${flow}/${frame}`;
    if (key === drawn) return;
    drawn = key;
    const rows = flow > 0 ? await app.index.around(flow, frame - 1, around) : [];
    if (rows.length === 0) {
      clear(host, h("p", { class: "dim" }, "No flow of a known protocol is here. Select a packet of one."));
      return;
    }
    const about = known.find((f) => Number(f["flow"]) === flow) ?? {};
    draw(app, host, rows, about, flow, frame);
  }
  return { shown: () => void shown().catch((e: unknown) => app.fail(e)) };
}

function draw(app: App, host: HTMLElement, rows: Cells[], about: Cells, flow: number, frame: number): void {
  let before = 0n;
  const items = rows.map((r) => {
    const p = list(r["packets"])[0] ?? {};
    const at = nanoseconds(p["time"]);
    const gap = before === 0n ? 0 : Math.min(Number(at - before) / perPixel, widestGap);
    before = at;
    const a = p["side"] === "a";
    const fate = text(r["fate"]);
    const mine = Number(p["frame"]) === frame;
    const li = h("li", { class: `rung ${a ? "from-a" : "from-b"} fate-${fate || "open"}`, "aria-current": mine ? "true" : null },
      h("span", { class: "num dim" }, (Number(at - app.first) / 1e9).toFixed(6)),
      h("button", { type: "button", class: "link", click: () => app.select(Number(p["frame"]), flow, "packets") },
        text(p["frame"])),
      h("span", { class: "arrow", "aria-hidden": "true" }, h("span", { class: "info" }, text(p["info"]))),
      h("span", { class: "hidden" }, `${a ? "A to B" : "B to A"}: ${text(p["info"])}. `),
      h("span", { class: "dim" }, fate));
    li.style.marginTop = `${gap.toFixed(0)}px`;
    return li;
  });
  clear(host, h("div", { class: "ladderhead" },
    h("span", {}, "Time"), h("span", {}, "Frame"),
    h("span", { class: "ends" }, h("b", { class: "side-a" }, `A ${text(about["a"])}`),
      h("b", { class: "side-b" }, `B ${text(about["b"])}`)),
    h("span", {}, "Fate")),
  h("ol", { class: "rungs" }, ...items));
  host.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
}
