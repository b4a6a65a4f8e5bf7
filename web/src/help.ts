// The keys of the page, in a dialog.
import { h } from "./dom";

const others: [string, string][] = [
  ["/", "to the filter of the packets"],
  ["j, k, arrows", "to the next row of a table, or the one before"],
  ["Page Up, Page Down, Home, End", "farther in a table"],
  ["Enter", "opens the selected row"],
  ["[ and ]", "in State and Ladder: to the packet before, or after"],
  ["?", "this list; Escape closes it"],
];

// help shows the keys. The focus goes back to where it was when the dialog closes.
export function help(tabs: { key: string; title: string }[]): void {
  const before = document.activeElement as HTMLElement | null;
  const close = h("button", { type: "button", click: () => dialog.close() }, "Close");
  const rows = [...tabs.map((t): [string, string] => [t.key, t.title]), ...others];
  const dialog = h("dialog", { "aria-labelledby": "keys-title", close: () => { dialog.remove(); before?.focus(); } },
    h("h2", { id: "keys-title" }, "Keys"),
    h("dl", { class: "keylist" }, ...rows.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    close);
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}
