// The packets between both sides around the selected one. Time runs down.
import type { App, View } from "../app";
import { clear, h, svg } from "../dom";
import { list, milliseconds, nanoseconds, text } from "../format";
import type { Cells } from "../wire";

const around = 60; // packets before the selected one, and as many after it
// Lengths in rem: of a row, of a row where there is little room, and what a gap in time adds.
const rowRem = 1.7;
const tallRowRem = 2.9;
const widestGapRem = 4;
const remPerNs = 1 / 15e6;
// An arrow can begin before the first row or end after the last one, by so much.
const marginRem = 6;
// A lost packet comes this far.
const lostAt = 0.6;

const little = matchMedia("(max-width: 44em)");

export function ladder(app: App, host: HTMLElement): View {
  let drawn = "", at = -1;
  async function shown(): Promise<void> {
    const all = await app.frames;
    const known = await app.known();
    const frame = Math.min(app.frame, all) || Math.ceil(all / 2);
    let flow = app.flow;
    if (!known.some((f) => Number(f["flow"]) === flow)) flow = Number(known[0]?.["flow"] ?? 0);
    const key = `${flow}/${frame}/${little.matches}`;
    if (key === drawn) return;
    drawn = key;
    at = frame - 1;
    const rows = flow > 0 ? await app.index.around(flow, at, around) : [];
    if (key !== drawn) return;
    if (rows.length === 0) {
      clear(host, h("p", {}, "No flow of this capture is of a known protocol. The view Flows says of each why none explains it."));
      return;
    }
    app.flow = flow;
    draw(app, host, rows, known.find((f) => Number(f["flow"]) === flow) ?? {}, frame, select);
  }

  function select(frame: number): void {
    app.select(frame, app.flow);
    void show();
  }

  async function step(way: number): Promise<void> {
    const next = await app.index.beside(app.flow, at, way).catch(() => -1);
    if (next >= 0) select(next + 1);
  }

  const show = (): Promise<void> => shown().catch((e: unknown) => app.problem(host, e));
  little.addEventListener("change", () => { if (host.isConnected) void show(); });
  return {
    shown: () => void show(),
    key: (e) => {
      if (e.key !== "[" && e.key !== "]") return false;
      void step(e.key === "[" ? -1 : 1);
      return true;
    },
  };
}

interface Rung {
  row: Cells;
  packet: Cells;
  ns: bigint; // when the place of capture had it
  y: number; // rem from the top
  fromA: boolean;
}

// place gives each packet a line. Long gaps in time are shortened, so y is no even scale of time.
function place(rows: Cells[]): Rung[] {
  const spacing = little.matches ? tallRowRem : rowRem;
  let y = 0;
  let before: bigint | null = null;
  return rows.map((row) => {
    const packet = list(row["packets"])[0] ?? {};
    const ns = nanoseconds(packet["time"]);
    if (before !== null) y += spacing + Math.min(Number(ns - before) * remPerNs, widestGapRem);
    before = ns;
    return { row, packet, ns, y, fromA: packet["side"] === "a" };
  });
}

// height returns where a moment lies among the rungs: later moments are lower.
function height(rungs: Rung[], ns: bigint): number {
  let low = 0, high = rungs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rungs[middle] as Rung).ns <= ns) low = middle + 1;
    else high = middle;
  }
  const before = rungs[low - 1], after = rungs[low];
  if (!before) return -Math.min(Number((rungs[0] as Rung).ns - ns) * remPerNs, marginRem);
  if (!after) return before.y + Math.min(Number(ns - before.ns) * remPerNs, marginRem);
  return before.y + ((after.y - before.y) * Number(ns - before.ns)) / Number(after.ns - before.ns);
}

function draw(
  app: App, host: HTMLElement, rows: Cells[], about: Cells, frame: number, select: (frame: number) => void,
): void {
  const rungs = place(rows);
  const chosen = rungs.find((r) => Number(r.packet["frame"]) === frame);
  const entry = Number(chosen?.row["entry"] ?? -1);
  const ends = rungs.map((r) => {
    const moment = (key: string): number => height(rungs, r.ns + BigInt(Math.round(Number(r.row[key] ?? 0))));
    return { leaves: moment("leaves_ns"), arrives: moment("arrives_ns") };
  });
  const top = Math.min(0, ...ends.map((e) => e.leaves)) - 1;
  const total = Math.max(...rungs.map((r) => r.y), ...ends.map((e) => e.arrives)) - top + 2;
  const percent = (y: number): string => `${((100 * (y - top)) / total).toFixed(3)}%`;
  const lines = svg("svg", { class: "arrows", "aria-hidden": "true" }, svg("defs", {}, ...["a", "b", "lost"].map(head)));
  const items = rungs.map((r, i) => {
    const fate = text(r.row["fate"]);
    const lost = fate === "lost";
    const settles = entry >= 0 && Number(r.row["settled"]) === entry && r !== chosen;
    const end = ends[i] as { leaves: number; arrives: number };
    const reach = lost ? lostAt : 1;
    const last = end.leaves + reach * (end.arrives - end.leaves);
    const x = (way: number): string => `${(r.fromA ? way : 1 - way) * 96 + 2}%`;
    const side = lost ? "lost" : r.fromA ? "a" : "b";
    lines.append(svg("line", {
      class: `way-${side}${r === chosen ? " chosen" : ""}`, x1: x(0), y1: percent(end.leaves), x2: x(reach), y2: percent(last),
      "marker-end": `url(#head-${side})`,
    }));
    const number = Number(r.packet["frame"]);
    const li = h("li", {
      class: `rung fate-${fate || "open"}`, "aria-current": r === chosen ? "true" : null, click: () => select(number),
    },
    h("span", { class: "num dim" }, (Number(r.ns - app.first) / 1e9).toFixed(6)),
    h("button", {
      type: "button", class: "link", "aria-label": `Frame ${number}`,
      click: (e) => { e.stopPropagation(); app.select(number, app.flow, "packets"); },
    }, String(number)),
    h("span", { class: "hidden" }, r.fromA ? "A to B: " : "B to A: "),
    h("span", { class: `info side-${r.fromA ? "a" : "b"}` }, text(r.packet["info"])),
    h("span", { class: "fate" }, fate || "–", settles && h("span", {}, " ✓ by the selected one")));
    li.style.top = `${(r.y - top).toFixed(3)}rem`;
    return li;
  });
  const body = h("div", { class: "ladderbody" }, h("ol", { class: "rungs", "aria-label": "Packets" }, ...items));
  body.append(lines);
  body.style.height = `${total.toFixed(3)}rem`;
  clear(host, h("p", { class: "dim" }, explained(about, rungs)), h("div", { class: "ladderhead" },
    h("span", { class: "num" }, "Time"), h("span", { class: "num" }, "Frame"),
    h("span", { class: "ends" }, h("b", { class: "side-a" }, "A"), h("b", { class: "side-b" }, "B")),
    h("span", {}, "Packet"), h("span", { class: "fate" }, "Fate")), body);
  host.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
}

function head(kind: string): SVGElement {
  const lost = kind === "lost";
  return svg("marker", {
    id: `head-${kind}`, class: `way-${kind}`, markerWidth: 10, markerHeight: 10, refX: lost ? 5 : 9, refY: 5, orient: "auto",
    markerUnits: "userSpaceOnUse",
  }, svg("path", { d: lost ? "M1 1L9 9M9 1L1 9" : "M0 1L10 5L0 9z" }));
}

// explained says what the slopes rest on. Only times at the place of capture are measured.
function explained(about: Cells, rungs: Rung[]): string {
  const ends = `A is ${text(about["a"])}, B is ${text(about["b"])}. Time runs down; long gaps are shortened. `;
  const first = rungs.find((r) => r.row["leaves_ns"] !== undefined);
  if (!first) return `${ends}How long packets travel is not known, so the arrows are level.`;
  const way = milliseconds((Number(first.row["arrives_ns"]) - Number(first.row["leaves_ns"])) / 1e6);
  const vantage = text(about["vantage"]);
  if (vantage === "both") return `${ends}Both sides were captured in one place, so the arrows are level.`;
  const measured = vantage === "a" || vantage === "b"
    ? `Times at ${vantage.toUpperCase()} are measured, those at ${vantage === "a" ? "B" : "A"} are estimated`
    : "Times at both sides are estimated";
  return `${ends}${measured}: half a round trip, ${way}.`;
}
