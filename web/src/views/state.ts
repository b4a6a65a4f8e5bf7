// What both sides of a flow knew at a packet, with a slider over time.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { captured, list, nanoseconds, sure, text } from "../format";
import type { Cells } from "../wire";

const perRow = 32; // cells of a window in a row, as `ackscope state` draws them
const rowsShown = 4; // the newest; the rest is folded

const noState = "No flow of this capture is of a known protocol, so no side has a state. The view Flows says why. " +
  "Encrypted traffic needs keys, and a format of your own needs a profile: drop them on the page.";

const cellWords: Record<string, string> = {
  "?": "unknown", ".": "empty", s: "sent", a: "acked", r: "received", x: "lost", "~": "claimed, not seen",
};

export function state(app: App, host: HTMLElement): View {
  let entry = -1, wanted = -1, running = false, drawnFlow = -1;
  const slider = h("input", {
    type: "range", min: 0, max: 1000, value: 0, id: "scrub", step: "any", input: () => scrub(),
  });
  const where = h("output", { for: "scrub", class: "where" });
  const sides = h("div", { class: "sides" });
  const flow = h("select", { id: "state-flow", change: () => { app.flow = Number(flow.value); void show(entry); } });
  clear(host,
    h("div", { class: "filterbar" },
      h("label", { for: "state-flow" }, "Flow"), flow, h("label", { for: "scrub" }, "Time"), slider,
      h("button", { type: "button", "aria-keyshortcuts": "[", click: () => void step(-1) }, "◀ earlier"),
      h("button", { type: "button", "aria-keyshortcuts": "]", click: () => void step(1) }, "later ▶"),
      h("button", { type: "button", click: () => app.select(app.frame, app.flow, "packets") }, "Packet")),
    where, sides);

  // The flows that can be shown are those of a known protocol.
  const known = app.known().then((all) => {
    clear(flow, ...all.map((f) => h("option", { value: text(f["flow"]) }, `${text(f["flow"])} ${text(f["protocol"])}`)));
    if (all.length === 0) clear(sides, h("p", {}, noState));
    return all;
  });
  known.catch(() => undefined); // shown() says it

  function scrub(): void {
    const span = Number(app.last - app.first);
    wanted = Math.round((Number(slider.value) / 1000) * span);
    if (!running) void follow();
  }

  // follow goes to the newest place of the slider, one request at a time.
  async function follow(): Promise<void> {
    running = true;
    try {
      while (wanted >= 0) {
        const at = wanted;
        wanted = -1;
        await show(await app.index.at(at));
      }
    } catch (e) {
      app.fail(e);
    } finally {
      running = false;
    }
  }

  async function step(way: number): Promise<void> {
    const next = await app.index.beside(app.flow, entry, way).catch(() => -1);
    if (next >= 0) await show(next, true);
  }

  async function show(n: number, move = true): Promise<void> {
    entry = n;
    let views: Cells[];
    try {
      views = await app.index.state(app.flow, n);
    } catch (e) {
      app.problem(sides, e);
      return;
    }
    const first = views[0];
    if (!first) return;
    const at = nanoseconds(first["time"]);
    app.frame = Number(first["frame"]);
    drawnFlow = app.flow;
    flow.value = String(app.flow);
    if (move && document.activeElement !== slider && app.last > app.first) {
      slider.value = String((1000 * Number(at - app.first)) / Number(app.last - app.first));
    }
    const seconds = (Number(at - app.first) / 1e9).toFixed(6);
    where.textContent = `frame ${app.frame} · ${seconds} s · flow ${text(first["flow"])} ${text(first["protocol"])}/` +
      text(first["dialect"]);
    slider.setAttribute("aria-valuetext", `${seconds} seconds, frame ${app.frame}`);
    clear(sides, ...views.map((v) => side(app, v)));
    app.link();
  }

  async function shown(): Promise<void> {
    const count = await app.frames;
    const all = await known;
    if (all.length === 0) return;
    if (!all.some((f) => Number(f["flow"]) === app.flow)) app.flow = Number(all[0]?.["flow"]);
    if (app.frame === 0) await show(await app.index.at(Number((app.last - app.first) / 2n)));
    else if (app.frame - 1 !== entry || app.flow !== drawnFlow) await show(Math.min(app.frame, count) - 1);
  }

  return {
    shown: () => void shown().catch((e: unknown) => app.problem(sides, e)),
    key: (e) => {
      if (e.key !== "[" && e.key !== "]") return false;
      void step(e.key === "[" ? -1 : 1);
      return true;
    },
  };
}

function side(app: App, v: Cells): HTMLElement {
  const name = text(v["side"]);
  const here = captured(v["vantage"] === name || v["vantage"] === "both", v["vantage"]);
  return h("section", { class: `card side ${name}` },
    h("h2", { class: `side-${name}` }, `${name.toUpperCase()} ${text(v["addr"])} `, h("span", { class: "dim" }, here)),
    ...list(v["windows"]).map((w) => windowOf(app, w, name)),
    h("dl", { class: "gauges" }, ...list(v["gauges"]).map((g) => h("div", {},
      h("dt", {}, text(g["name"])),
      h("dd", {}, gauge(g), h("span", { class: "dim" }, sure(g["certainty"])))))),
    ...list(v["tables"]).map((t) => table(name, t)));
}

function gauge(g: Cells): string {
  const v = g["value"];
  if (typeof v !== "number") return "?";
  const n = Number.isInteger(v) ? String(v) : v.toFixed(2);
  return g["unit"] ? `${n} ${text(g["unit"])}` : n;
}

function windowOf(app: App, w: Cells, side: string): HTMLElement {
  const cells = [...text(w["cells"])];
  const first = Number(w["first"]);
  const counted = new Map<string, number>();
  for (const c of cells) counted.set(c, (counted.get(c) ?? 0) + 1);
  const label = `${side.toUpperCase()}, ${text(w["name"])}: ` +
    [...counted].map(([c, n]) => `${n} ${cellWords[c] ?? c}`).join(", ");
  const slots = new Map(list(w["slots"]).map((s) => [Number(s["index"]), s]));
  const rows: HTMLElement[] = [];
  for (let at = Math.floor(first / perRow) * perRow; at < first + cells.length; at += perRow) {
    const row = h("div", { class: "cells" }, h("span", { class: "dim index" }, String(at)));
    for (let n = at; n < Math.min(at + perRow, first + cells.length); n++) {
      const c = n < first ? " " : cells[n - first] ?? " ";
      row.append(h("span", { class: `cell cell-${code(c)}`, "data-n": n }, c === " " ? "" : c));
    }
    rows.push(row);
  }
  const recent = rows.slice(-rowsShown), older = rows.slice(0, -rowsShown);
  const tell = (e: Event): void => {
    const n = Number((e.target as HTMLElement).dataset["n"]);
    const s = slots.get(n);
    if (e.type === "click" && s?.["frame"]) app.select(Number(s["frame"]), app.flow, "packets");
    else if (s) (e.target as HTMLElement).title = told(s);
  };
  const key = [...counted.keys()].map((c) => `${c} ${cellWords[c] ?? c}`).join(" · ");
  return h("figure", { class: "window", mouseover: tell, click: tell },
    h("figcaption", {}, h("b", {}, text(w["name"])), ` next ${text(w["next"]) || "?"}`,
      h("span", { class: "dim" }, sure(w["certainty"]))),
    older.length > 0 && h("details", {}, h("summary", {}, `${older.length} older rows`), ...older),
    h("div", { role: "img", "aria-label": label }, ...recent),
    h("p", { class: "dim cellkey", "aria-hidden": "true" }, key));
}

function code(c: string): string {
  return { "?": "unknown", ".": "empty", "~": "claimed", " ": "none" }[c] ?? c;
}

function told(s: Cells): string {
  const parts = [`${text(s["sequence"])}: ${text(s["cell"])} (${text(s["certainty"])})`];
  if (s["frame"]) parts.push(`frame ${text(s["frame"])}`);
  if (s["by_frame"]) parts.push(`settled by frame ${text(s["by_frame"])}, bit ${text(s["bit"])}`);
  return parts.join("\n");
}

function table(side: string, t: Cells): HTMLElement {
  const rows = (t["rows"] as string[][] | undefined) ?? [];
  return h("details", { open: true }, h("summary", {}, text(t["name"])),
    h("div", {
      class: "scroll", tabindex: 0, role: "region", "aria-label": `${side.toUpperCase()}, ${text(t["name"])}`,
    }, h("table", {},
      h("thead", {}, h("tr", {}, ...((t["columns"] as string[] | undefined) ?? []).map((c) => h("th", { scope: "col" }, c)))),
      h("tbody", {}, ...rows.map((r) => h("tr", {}, ...r.map((c) => h("td", {}, c))))))));
}
