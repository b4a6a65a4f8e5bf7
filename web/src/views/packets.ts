// The packets: a list with a filter, and the selected packet to the bit.
import type { App, View } from "../app";
import { completed } from "../complete";
import { clear, h } from "../dom";
import { count, list, plain, since, text } from "../format";
import { VirtualTable } from "../vlist";
import type { Cells } from "../wire";
import { detail } from "./detail";

// A row holds what a frame carried: several packets where it is a segment of a stream.
function head(r: Cells): Cells {
  return list(r["packets"])[0] ?? {};
}

export function packets(app: App, host: HTMLElement): View {
  let rows = 0, flow = -1, filter = "?", asked = 0;
  const pane = h("section", { class: "detail", tabindex: -1, "aria-label": "The selected packet" });
  const table = new VirtualTable("Packets", [
    { name: "", title: "Frame", width: "5rem", number: true, narrow: "4.6rem", cell: (r) => text(head(r)["frame"]) },
    { name: "", title: "Time", width: "7.5rem", number: true, narrow: "6.6rem", cell: (r) => since(head(r)["time"], app.first) },
    { name: "", title: "Flow", width: "3.8rem", number: true, cell: (r) => text(head(r)["flow"]) },
    {
      name: "", title: "Way", width: "3.8rem", narrow: "3.6rem", cell: (r) => arrow(head(r)),
      className: (r) => `side-${text(head(r)["side"])}`,
    },
    { name: "", title: "Bytes", width: "4.2rem", number: true, cell: (r) => text(head(r)["length"]) },
    {
      name: "", title: "Fate", width: "4.2rem", narrow: "4rem", cell: (r) => text(r["fate"]) || "–",
      className: (r) => `fate-${text(r["fate"]) || "open"}`,
    },
    {
      name: "", title: "Found", width: "4.9rem", narrow: "minmax(3rem, 1fr)",
      cell: (r) => r["severity"] ? h("span", { class: `badge ${text(r["severity"])}` }, text(r["severity"])) : "",
    },
    { name: "", title: "Info", width: "minmax(12rem, 1fr)", narrow: "below", cell: (r) => info(r) },
  ], "No packet passes the filter. Clear shows all of them.");
  table.element.id = "table-packets";
  table.onError = (e) => app.fail(e);
  const counted = h("output", { class: "dim counted" });
  const wrong = h("pre", { class: "wrong", role: "alert", id: "filter-error" });
  const input = h("input", {
    type: "text", id: "filter", spellcheck: "false", autocomplete: "off", "aria-describedby": "filter-error",
    placeholder: "fate == lost && frame.len > 200",
  });
  const combo = completed(app, input);
  // After the completion, which keeps the Enter that takes a proposal.
  input.addEventListener("keydown", (e) => { if (e.key === "Enter") apply(); });
  const form = h("div", { class: "filterbar" },
    h("label", { for: "filter" }, "Filter"), combo,
    h("button", { type: "button", click: () => apply() }, "Apply"),
    h("button", { type: "button", click: () => { input.value = ""; app.flow = 0; apply(); } }, "Clear"), counted);
  clear(host, form, wrong, h("div", { class: "split" }, table.element, pane));

  const load = (from: number, n: number): Promise<Cells[]> => app.index.rows(from, n);

  async function refresh(): Promise<void> {
    flow = app.flow;
    filter = app.filter;
    wrong.textContent = "";
    const mine = ++asked, text = filter, of = flow;
    let all: number, passed: number;
    try {
      all = await app.frames;
    } catch (e) {
      app.problem(host, e);
      return;
    }
    try {
      passed = await app.index.filter(text, of);
    } catch (e) {
      // With a flow, the filter is a part of a longer one. Alone, its error names the right column.
      const alone = of > 0 ? await app.index.filter(text, 0).then(() => e, (own: unknown) => own) : e;
      if (mine !== asked) return;
      wrong.textContent = plain((alone as Error).message);
      input.setAttribute("aria-invalid", "true");
      return;
    }
    if (mine !== asked) return; // there is a newer filter
    rows = passed;
    input.removeAttribute("aria-invalid");
    counted.textContent = `${count(rows)} of ${count(all)}${flow ? `, flow ${flow}` : ""}`;
    table.show({ count: rows, load }, all === 0 ? "The capture has no packets." : undefined);
    await goTo();
  }

  async function goTo(): Promise<void> {
    if (app.frame === 0) return;
    const row = await app.index.row(app.frame);
    if (row >= 0 && row !== table.cursor) table.select(row, false);
  }

  function apply(): void {
    app.filter = input.value.trim();
    void app.work("Filtering…", refresh());
    app.link();
  }

  table.onSelect = (_, cells, open) => {
    if (!cells) return;
    if (open) pane.focus();
    const p = head(cells);
    app.select(Number(p["frame"]), app.flow);
    void detail(app, pane, Number(cells["entry"]));
  };
  return {
    shown: () => {
      input.value = app.filter;
      if (app.flow !== flow || app.filter !== filter) void app.work("Reading the packets…", refresh());
      else void goTo();
    },
    key: (e) => {
      if (e.key !== "/") return table.key(e);
      input.focus();
      return true;
    },
  };
}

function arrow(p: Cells): string {
  return p["side"] === "a" ? "A→B" : p["side"] === "b" ? "B→A" : "";
}

function info(r: Cells): string {
  const all = list(r["packets"]);
  const first = text(all[0]?.["info"]);
  return all.length > 1 ? `${first} (and ${all.length - 1} more)` : first;
}
