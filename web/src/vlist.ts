// A table of very many rows: only those in sight are elements.
import { clear, h } from "./dom";
import { text } from "./format";
import type { Cells } from "./wire";

export interface Column {
  name: string; // key of the row, for sorting
  title: string;
  width: string; // a track of the grid
  // Where the table is narrow: its track, or "below" for a line of its own. Without it, the column
  // is left out there, and the pane of the selected row has its value.
  narrow?: string;
  number?: boolean;
  cell?: (row: Cells) => string | Node;
  className?: (row: Cells) => string;
}

export interface Source {
  count: number;
  load(from: number, count: number): Promise<Cells[]>;
}

// Heights in rem, so that they grow with the letters: of a row, and of a line below it where the
// table is narrow.
const rowRem = 1.75;
const belowRem = 1.4;
// Browsers limit the height of an element: Chromium to 33 million px.
const tallest = 15_000_000;
const page = 100; // rows loaded at a time
const pagesKept = 40;

export class VirtualTable {
  readonly element: HTMLElement;
  private readonly head: HTMLElement;
  private readonly body: HTMLElement;
  private readonly space: HTMLElement;
  private readonly rows: HTMLElement;
  private readonly pages = new Map<number, Cells[]>();
  private readonly loading = new Map<number, Promise<void>>();
  private source: Source = { count: 0, load: async () => [] };
  private generation = 0;
  private drawn = 0;
  private top = 0; // the first row in sight
  private rowHeight = 26; // px
  private narrow = false;
  private readonly leastRem: number; // what the columns need at least; below that, rows are narrow
  cursor = -1;
  onSelect: (row: number, cells: Cells | undefined, open: boolean) => void = () => undefined;
  onSort: ((column: string) => void) | null = null;
  onError: (e: Error) => void = () => undefined;

  // below is how many lines a row has below its first where the table is narrow.
  constructor(label: string, private readonly columns: Column[], private empty: string, private readonly below = 1) {
    this.leastRem = columns.reduce((sum, c) => sum + parseFloat(/[\d.]+/.exec(c.width)?.[0] ?? "0"), 0);
    const tracks = columns.map((c) => c.width).join(" ");
    this.head = h("div", { role: "row", class: "vrow vhead", "aria-rowindex": 1 });
    columns.forEach((c, i) => this.head.append(this.title(c, i)));
    this.rows = h("div", { class: "vrows", role: "rowgroup" });
    this.space = h("div", { class: "vspace", role: "presentation" }, this.rows);
    this.body = h("div", {
      class: "vtable", role: "grid", tabindex: 0, "aria-label": label,
      keydown: (e) => {
        if (e.target !== this.body || !this.key(e as KeyboardEvent)) return;
        e.preventDefault();
        e.stopPropagation();
      },
      scroll: () => this.scrolled(),
      focus: () => { if (this.cursor < 0 && this.source.count > 0) this.select(0, false); },
    }, h("div", { role: "rowgroup", class: "vheadgroup" }, this.head), this.space);
    this.element = this.body;
    this.body.style.setProperty("--tracks", tracks);
    this.body.style.setProperty("--narrow-tracks", columns.map((c) => c.narrow ?? "below")
      .filter((track) => track !== "below").join(" "));
    this.body.setAttribute("aria-colcount", String(columns.length));
    new ResizeObserver(() => this.resize()).observe(this.body);
  }

  // resize chooses the kind of rows by the width, and keeps the top row where it is.
  private resize(): void {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const narrow = this.body.clientWidth < this.leastRem * rem;
    const height = Math.round((rowRem + (narrow ? belowRem * this.below : 0)) * rem);
    if (height !== this.rowHeight || narrow !== this.narrow) {
      this.rowHeight = height;
      this.narrow = narrow;
      this.body.classList.toggle("narrow", narrow);
      this.body.style.setProperty("--row", `${height}px`);
      this.body.style.setProperty("--below", `${belowRem * this.below}rem`);
      this.stretch();
      this.scrollToTop(this.top);
    }
    this.draw();
  }

  private stretch(): void {
    const { count } = this.source;
    this.space.style.height = count > 0 ? `${Math.min(count * this.rowHeight, tallest)}px` : "";
  }

  private scrollToTop(row: number): void {
    const span = tallest - this.body.clientHeight + this.head.offsetHeight;
    this.body.scrollTop = this.scaled ? (row / Math.max(this.source.count - this.fits, 1)) * span : row * this.rowHeight;
  }

  private place(c: Column): string {
    return c.narrow === undefined ? "aside" : c.narrow === "below" ? `below ${c.width === "0" ? "only" : ""}` : "";
  }

  private title(c: Column, i: number): HTMLElement {
    const e = h("div", { role: "columnheader", class: `${c.number ? "num" : ""} ${this.place(c)}`.trim(), "aria-colindex": i + 1 });
    if (c.name === "") {
      e.append(c.title);
    } else {
      e.append(h("button", {
        type: "button", title: `Sort by ${c.title}`, click: () => this.onSort?.(c.name),
      }, c.title));
      if (!this.onSort) queueMicrotask(() => { if (!this.onSort) clear(e, c.title); });
    }
    return e;
  }

  mark(column: string, descending: boolean): void {
    this.columns.forEach((c, i) => {
      const e = this.head.children[i];
      if (c.name === column) e?.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else e?.removeAttribute("aria-sort");
    });
  }

  // show lists other rows. The text says why there is none, and what to do.
  show(source: Source, empty = this.empty): void {
    this.source = source;
    this.empty = empty;
    this.generation++;
    this.pages.clear();
    this.loading.clear();
    this.cursor = Math.min(this.cursor, source.count - 1);
    this.body.setAttribute("aria-rowcount", String(source.count + 1));
    this.stretch();
    this.draw();
  }

  row(n: number): Cells | undefined {
    return this.pages.get(Math.floor(n / page))?.[n % page];
  }

  private get fits(): number {
    return Math.max(1, Math.floor((this.body.clientHeight - this.head.offsetHeight) / this.rowHeight));
  }

  private get scaled(): boolean {
    return this.source.count * this.rowHeight > tallest;
  }

  private scrolled(): void {
    const at = this.body.scrollTop;
    if (this.scaled) {
      const span = tallest - this.body.clientHeight + this.head.offsetHeight;
      this.top = Math.round((at / span) * Math.max(this.source.count - this.fits, 0));
    } else {
      this.top = Math.floor(at / this.rowHeight);
    }
    this.draw();
  }

  // scrollTo brings a row into sight.
  scrollTo(n: number): void {
    if (n >= this.top && n < this.top + this.fits) {
      this.draw();
      return;
    }
    const top = n < this.top ? n : n - this.fits + 1;
    this.scrollToTop(top);
    this.top = Math.max(top, 0);
    this.draw();
  }

  select(n: number, open: boolean): void {
    if (this.source.count === 0) return;
    this.cursor = Math.min(Math.max(n, 0), this.source.count - 1);
    this.scrollTo(this.cursor);
    const chosen = this.cursor, at = this.generation;
    void this.need(chosen).then(() => {
      if (this.cursor === chosen && this.generation === at) this.onSelect(chosen, this.row(chosen), open);
    });
  }

  // key moves and opens by the keyboard. It returns false for a key that it does not know.
  key(e: KeyboardEvent): boolean {
    if (e.ctrlKey || e.altKey || e.metaKey) return false;
    const steps: Record<string, number> = {
      ArrowDown: 1, ArrowUp: -1, PageDown: this.fits, PageUp: -this.fits, j: 1, k: -1,
      Home: -Infinity, End: Infinity,
    };
    const step = steps[e.key];
    if (step !== undefined) this.select(this.cursor + step, false);
    else if (e.key === "Enter") this.select(this.cursor, true);
    else return false;
    return true;
  }

  // need loads the rows around one. It ends when they are there.
  private need(n: number): Promise<void> {
    const index = Math.floor(n / page);
    if (n < 0 || n >= this.source.count || this.pages.has(index)) return Promise.resolve();
    let pending = this.loading.get(index);
    if (!pending) {
      pending = this.load(index);
      this.loading.set(index, pending);
    }
    return pending;
  }

  private async load(index: number): Promise<void> {
    const generation = this.generation;
    try {
      const rows = await this.source.load(index * page, page);
      if (generation !== this.generation) return;
      this.pages.set(index, rows);
      for (const old of this.pages.keys()) {
        if (this.pages.size <= pagesKept) break;
        if (old !== index) this.pages.delete(old);
      }
      this.draw();
    } catch (e) {
      if (generation === this.generation) this.onError(e as Error);
    } finally {
      if (generation === this.generation) this.loading.delete(index);
    }
  }

  private draw(): void {
    this.drawn ||= requestAnimationFrame(() => {
      this.drawn = 0;
      this.render();
    });
  }

  private render(): void {
    const { count } = this.source;
    if (count === 0) {
      clear(this.rows, h("div", { role: "row", class: "vempty" }, h("div", { role: "gridcell" }, this.empty)));
      this.body.removeAttribute("aria-activedescendant");
      return;
    }
    const from = Math.max(0, Math.min(this.top, count - this.fits));
    const to = Math.min(count, from + this.fits + 2);
    this.rows.style.transform = `translateY(${this.scaled ? this.body.scrollTop : from * this.rowHeight}px)`;
    const made: HTMLElement[] = [];
    for (let n = from; n < to; n++) {
      made.push(this.renderRow(n));
      void this.need(n);
    }
    this.rows.replaceChildren(...made);
    const chosen = made[this.cursor - from];
    if (chosen) this.body.setAttribute("aria-activedescendant", chosen.id);
    else this.body.removeAttribute("aria-activedescendant");
  }

  private renderRow(n: number): HTMLElement {
    const cells = this.row(n);
    const e = h("div", {
      role: "row", class: "vrow", id: `${this.body.id || "row"}-${n}`, "aria-rowindex": n + 2,
      "aria-selected": n === this.cursor ? "true" : "false",
      click: () => this.select(n, false), dblclick: () => this.select(n, true),
    });
    this.columns.forEach((c, i) => {
      const value = cells ? (c.cell ? c.cell(cells) : text(cells[c.name])) : "…";
      const names = `${c.number ? "num" : ""} ${this.place(c)} ${cells && c.className ? c.className(cells) : ""}`;
      e.append(h("div", { role: "gridcell", class: names.trim(), "aria-colindex": i + 1 }, value));
    });
    return e;
  }
}
