// One packet to the bit: its layers and fields, and its bytes.
import type { App } from "../app";
import { clear, h } from "../dom";
import { list, text } from "../format";
import type { Cells } from "../wire";

interface Range {
  from: number; // bits of the shown bytes
  bits: number;
}

let asked = 0;

export async function detail(app: App, pane: HTMLElement, entry: number): Promise<void> {
  const mine = ++asked;
  const row = await app.index.packet(entry).catch((e: unknown) => { app.fail(e); return null; });
  if (!row || mine !== asked) return;
  const all = list(row["packets"]);
  clear(pane, ...all.map((p) => packet(app, p)));
}

function packet(app: App, p: Cells): HTMLElement {
  const bytes = text(p["bytes"]);
  const hex = h("div", { class: "hex", tabindex: 0, role: "region", "aria-label": "Bytes of the frame" });
  const light = (r: Range | null): void => drawHex(hex, bytes, r);
  light(null);
  const layers = list(p["layers"]);
  const payload = Number(layers.find((l) => l["layer"] === "Datagram")?.["offset"] ?? 0);
  const findings = list(p["findings"]);
  const tree = h("ul", { class: "tree", "aria-label": "Fields" });
  for (const layer of layers) {
    tree.append(h("li", {}, h("details", {},
      h("summary", {}, text(layer["title"]) || text(layer["layer"])),
      fields(list(layer["fields"]), 0, light))));
  }
  if (list(p["tree"]).length > 0) tree.append(h("li", {}, fields(list(p["tree"]), payload * 8, light)));
  const flow = Number(p["flow"]) || 0;
  return h("article", {},
    h("h2", {}, `Frame ${text(p["frame"])}`, p["index"] !== undefined ? `, message ${text(p["index"])}` : ""),
    h("p", {}, text(p["info"])),
    findings.length > 0 && h("ul", { class: "troubles" }, ...findings.map((f) => h("li", {},
      h("span", { class: `badge ${text(f["severity"])}` }, text(f["severity"])), ` ${text(f["rule"])}, `,
      `${text(f["side"]).toUpperCase()} (${text(f["certainty"])})`))),
    tree, hex, events(app, list(p["events"]), flow));
}

function fields(list: Cells[], base: number, light: (r: Range | null) => void): HTMLElement {
  return h("ul", { class: "fields" }, ...list.map((f) => {
    const bits = Number(f["bits"] ?? 0);
    const range = bits > 0 ? { from: base + Number(f["bit"] ?? 0), bits } : null;
    const value = f["value"] === undefined ? "" : `: ${text(f["value"])}`;
    const note = [f["word"], f["note"]].filter((x) => x !== undefined).map(text).join(", ");
    const li = h("li", {}, h("button", {
      type: "button", class: "field", title: text(f["name"]),
      focus: () => light(range), mouseenter: () => light(range), click: () => light(range),
    }, h("b", {}, text(f["label"])), value, note && h("span", { class: "dim" }, ` (${note})`),
    bits > 0 && h("span", { class: "dim bits" }, bits === 1 ? " 1 bit" : ` ${bits} bits`)));
    li.style.setProperty("--depth", String(f["depth"] ?? 0));
    return li;
  }));
}

const perLine = 16;

function drawHex(host: HTMLElement, bytes: string, lit: Range | null): void {
  const n = bytes.length / 2;
  const from = lit ? Math.floor(lit.from / 8) : -1, to = lit ? Math.ceil((lit.from + lit.bits) / 8) : -1;
  const lines: HTMLElement[] = [];
  for (let at = 0; at < n; at += perLine) {
    const hex: (Node | string)[] = [];
    let chars = "";
    for (let i = at; i < Math.min(at + perLine, n); i++) {
      const pair = bytes.slice(2 * i, 2 * i + 2);
      hex.push(i >= from && i < to ? h("mark", {}, pair) : pair, i % 8 === 7 ? "  " : " ");
      const c = parseInt(pair, 16);
      chars += c >= 0x20 && c < 0x7f ? String.fromCharCode(c) : "·";
    }
    lines.push(h("div", {}, h("span", { class: "dim" }, at.toString(16).padStart(4, "0")), " ",
      h("span", { class: "bytes" }, ...hex), h("span", { class: "chars" }, chars)));
  }
  clear(host, ...lines);
  if (lit && lit.bits < 64) host.append(h("div", { class: "bitline" }, bitLine(bytes, lit)));
}

// bitLine shows the bits of a field among those of its bytes.
function bitLine(bytes: string, r: Range): HTMLElement {
  const from = Math.floor(r.from / 8), to = Math.ceil((r.from + r.bits) / 8);
  const out = h("span", { "aria-label": `bits ${r.from % 8} to ${(r.from % 8) + r.bits - 1}`, role: "img" });
  for (let bit = from * 8; bit < to * 8; bit++) {
    const value = (parseInt(bytes.slice(2 * (bit >> 3), 2 * (bit >> 3) + 2), 16) >> (7 - (bit & 7))) & 1;
    const inside = bit >= r.from && bit < r.from + r.bits;
    out.append(inside ? h("mark", {}, String(value)) : String(value));
    if (bit % 8 === 7) out.append(" ");
  }
  return out;
}

function events(app: App, list: Cells[], flow: number): HTMLElement | false {
  if (list.length === 0) return false;
  return h("details", { open: true }, h("summary", {}, `Settled by this packet: ${list.length}`),
    h("ul", {}, ...list.map((e) => {
      const frame = Number(e["frame"]);
      return h("li", {}, `${text(e["event"])} ${text(e["side"]).toUpperCase()} ${text(e["sequence"])} `,
        h("span", { class: "dim" }, `(${text(e["certainty"])}) `),
        frame > 0 && h("button", { type: "button", class: "link", click: () => app.select(frame, flow, "packets") },
          `frame ${frame}`));
    })));
}
