// A view that is one table of a command's JSON, and what the selected row means.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { count, plain, text } from "../format";
import { type Column, VirtualTable } from "../vlist";
import type { Cells } from "../wire";

export interface Listing {
  key: string;
  label: string;
  empty: string; // why the table can be empty, and what to do then
  command: string[];
  byFlow?: boolean; // the command has -Y, and its rows have flows
  columns: Column[];
  below?: number; // lines below a row's first where the table is narrow
  hint: string; // of the pane below, before a row is selected
  pane: (row: Cells) => Node[] | Promise<Node[]>;
  open: (row: Cells) => void;
  select?: (row: Cells) => void;
}

export function listing(app: App, host: HTMLElement, l: Listing): View {
  const table = new VirtualTable(l.label, l.columns, l.empty, l.below);
  const counted = h("output", { class: "dim counted" });
  const pane = h("section", { class: "explanation", "aria-label": `${l.label}: the selected row`, "aria-live": "polite" },
    h("p", { class: "dim" }, l.hint));
  const flow = h("select", { id: `flow-of-${l.key}`, change: () => { app.flow = Number(flow.value); shown(); app.link(); } });
  const bar = l.byFlow && h("div", { class: "filterbar" },
    h("label", { for: flow.id }, "Flow"), flow, counted);
  const load = (from: number, n: number): Promise<Cells[]> => app.commands.lines(l.key, from, n);
  let rows = 0, sorted = "", descending = false, listed = -1, asked = 0;
  table.element.id = `table-${l.key}`;
  table.onError = (e) => app.fail(e);
  table.onSelect = (_, cells, open) => {
    if (!cells) return;
    if (open) {
      l.open(cells);
      return;
    }
    l.select?.(cells);
    void fill(cells);
  };
  table.onSort = (column) => {
    descending = column === sorted && !descending;
    sorted = column;
    void app.work("Sorting…", app.commands.sort(l.key, column, descending)).then(() => {
      table.mark(column, descending);
      table.show({ count: rows, load });
    });
  };
  clear(host, bar || counted, table.element, pane);

  async function fill(cells: Cells): Promise<void> {
    const mine = ++asked;
    const nodes = await l.pane(cells);
    if (mine === asked) clear(pane, ...nodes);
  }

  async function read(): Promise<void> {
    const command = listed > 0 ? [...l.command, "-Y", `flow == ${listed}`] : l.command;
    const t = await app.work("Reading the capture…", app.commands.table(l.key, app.command(...command)));
    if (!t) {
      table.show({ count: 0, load }, "Reading ended before the end of the capture.");
      return;
    }
    rows = t.count;
    sorted = "";
    table.mark("", false);
    counted.textContent = rows === 0 ? "none" : `${count(rows)} in all`;
    const said = plain(t.complaints);
    table.show({ count: rows, load }, said || (listed > 0 ? `${l.empty} Flow ${listed} alone is listed.` : l.empty));
    pane.hidden = rows === 0;
  }

  function shown(): void {
    const wanted = l.byFlow ? app.flow : 0;
    if (wanted === listed) return;
    listed = wanted;
    void read();
    if (!l.byFlow) return;
    void app.known().then((all) => {
      clear(flow, h("option", { value: "0" }, "all"),
        ...all.map((f) => h("option", { value: text(f["flow"]) }, `${text(f["flow"])} ${text(f["protocol"])}`)));
      if (listed > 0 && !all.some((f) => Number(f["flow"]) === listed)) flow.append(h("option", { value: listed }, listed));
      flow.value = String(listed);
    }).catch(() => undefined); // the table says what is wrong
  }
  return { shown, key: (e) => table.key(e) };
}

// facts lists what a row says beside its columns: names and values.
export function facts(...list: [string, string][]): HTMLElement {
  return h("dl", { class: "facts" }, ...list.filter(([, value]) => value !== "").map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}
