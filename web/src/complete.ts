// Completion of field names in a filter, from the list of `ackscope fields`.
import type { App } from "./app";
import { clear, h } from "./dom";
import { text } from "./format";
import type { Cells } from "./wire";

const decoder = new TextDecoder();
let known: Promise<Cells[]> | null = null;

function fields(app: App): Promise<Cells[]> {
  known ??= app.commands.run(["fields", "--json"]).then((answer) => decoder.decode(answer.out).split("\n")
    .filter((line) => line !== "").map((line) => JSON.parse(line) as Cells).filter((f) => !f["column_only"]));
  return known;
}

const most = 12; // proposals at a time

// completed gives an input a list of proposals: the combobox of the ARIA authoring practices.
export function completed(app: App, input: HTMLInputElement): HTMLElement {
  const box = h("div", { role: "listbox", id: "proposals", class: "proposals", "aria-label": "Fields", hidden: true });
  let shown: Cells[] = [], at = -1;
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-expanded", "false");
  input.setAttribute("aria-controls", "proposals");
  input.setAttribute("aria-autocomplete", "list");

  function word(): { from: number; text: string } {
    const before = input.value.slice(0, input.selectionStart ?? input.value.length);
    const part = /[a-z_][\w.]*$/i.exec(before)?.[0] ?? "";
    return { from: before.length - part.length, text: part.toLowerCase() };
  }

  function close(): void {
    box.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function draw(): void {
    clear(box, ...shown.map((f, i) => h("div", {
      role: "option", id: `proposal-${i}`, "aria-selected": i === at ? "true" : "false",
      mousedown: (e) => { e.preventDefault(); take(i); },
    }, h("b", {}, text(f["name"])), h("span", { class: "dim" }, ` ${text(f["doc"])}`))));
    if (at >= 0) input.setAttribute("aria-activedescendant", `proposal-${at}`);
    else input.removeAttribute("aria-activedescendant");
  }

  function take(i: number): void {
    const { from, text: part } = word();
    const name = text(shown[i]?.["name"]);
    input.setRangeText(name, from, from + part.length, "end");
    close();
    input.focus();
  }

  async function propose(): Promise<void> {
    const { text: part } = word();
    const all = await fields(app);
    if (part.length < 2 || part !== word().text) {
      close();
      return;
    }
    const name = (f: Cells): string => text(f["name"]).toLowerCase();
    shown = [...all.filter((f) => name(f).startsWith(part)),
      ...all.filter((f) => !name(f).startsWith(part) && name(f).includes(part))].slice(0, most);
    if (shown.length === 0 || shown.length === 1 && name(shown[0] as Cells) === part) {
      close();
      return;
    }
    at = -1;
    box.hidden = false;
    input.setAttribute("aria-expanded", "true");
    draw();
  }

  input.addEventListener("input", () => void propose());
  input.addEventListener("blur", () => close());
  input.addEventListener("keydown", (e) => {
    if (box.hidden) return;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      at = (at + (e.key === "ArrowDown" ? 1 : -1) + shown.length) % shown.length;
      draw();
    } else if (e.key === "Tab" || e.key === "Enter" && at >= 0) {
      take(Math.max(at, 0));
    } else if (e.key === "Escape") {
      close();
    } else {
      return;
    }
    e.preventDefault();
    e.stopImmediatePropagation();
  });
  return h("div", { class: "combo" }, input, box);
}
