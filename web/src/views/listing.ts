// A view that is one table of a command's JSON.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { count } from "../format";
import { type Column, VirtualTable } from "../vlist";
import type { Cells } from "../wire";

export interface Listing {
  key: string;
  label: string;
  empty: string;
  command: string[];
  columns: Column[];
  select: (row: Cells, open: boolean) => void;
}

export function listing(app: App, host: HTMLElement, l: Listing, ...below: Node[]): View & { table: VirtualTable } {
  const table = new VirtualTable(l.label, l.columns, l.empty);
  const note = h("p", { class: "dim counted" });
  let sorted = "", descending = false;
  const load = (from: number, n: number): Promise<Cells[]> => app.commands.lines(l.key, from, n);
  table.element.id = `table-${l.key}`;
  table.onError = (e) => app.fail(e);
  table.onSelect = (_, cells, open) => { if (cells) l.select(cells, open); };
  let rows = 0;
  table.onSort = (column) => {
    descending = column === sorted && !descending;
    sorted = column;
    void app.work("Sorting…", app.commands.sort(l.key, column, descending)).then(() => {
      table.mark(column, descending);
      table.show({ count: rows, load });
    });
  };
  clear(host, note, table.element, ...below);
  void app.work("Reading the capture…", app.commands.table(l.key, app.command(...l.command))).then((t) => {
    if (!t) return;
    if (t.complaints) app.say(t.complaints.trim());
    rows = t.count;
    note.textContent = `${count(rows)} in all`;
    table.show({ count: rows, load });
  });
  return { table, shown: () => undefined };
}
