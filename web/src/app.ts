// The page: files that are dropped, tabs, keys, and what is selected.
import { Cancelled, Client } from "./client";
import { clear, h } from "./dom";
import { exported } from "./exported";
import { Loaded, type Support, supportOf } from "./files";
import { inside, single } from "./inside";
import { findings } from "./views/findings";
import { flows } from "./views/flows";
import { graphs } from "./views/graphs";
import { ladder } from "./views/ladder";
import { messages } from "./views/messages";
import { overview } from "./views/overview";
import { packets } from "./views/packets";
import { replay } from "./views/replay";
import { report } from "./views/report";
import { state } from "./views/state";
import { welcome } from "./views/welcome";
import { nanoseconds } from "./format";
import type { Cells } from "./wire";

export interface View {
  shown(): void; // the tab was opened, or the selection changed
  key?(e: KeyboardEvent): boolean;
}

interface Tab {
  id: string;
  title: string;
  key: string;
  make: (app: App, host: HTMLElement) => View;
}

const tabs: Tab[] = [
  { id: "overview", title: "Overview", key: "1", make: overview },
  { id: "flows", title: "Flows", key: "2", make: flows },
  { id: "packets", title: "Packets", key: "3", make: packets },
  { id: "state", title: "State", key: "4", make: state },
  { id: "ladder", title: "Ladder", key: "5", make: ladder },
  { id: "graphs", title: "Graphs", key: "6", make: graphs },
  { id: "messages", title: "Messages", key: "7", make: messages },
  { id: "findings", title: "Findings", key: "8", make: findings },
  { id: "replay", title: "Replay", key: "9", make: replay },
  { id: "report", title: "Save", key: "0", make: report },
];

// A list of flows to choose from has this many at most. The view of flows has all.
const mostKnown = 500;

export class App {
  // Commands run in one worker. Packets and states come from another, so that scrolling never
  // waits for a command.
  readonly commands = new Client();
  readonly index = new Client();
  readonly files = new Loaded();
  flow = 0; // 0 for all
  frame = 0; // 0 for none
  filter = "";
  frames: Promise<number> = Promise.resolve(0); // of the open capture
  first = 0n; // time of the first frame, in ns since 1970; valid once frames is settled
  last = 0n;
  generation = 0; // changes with the capture and its flags
  private flows: Promise<Cells[]> | null = null;
  private tab = "overview";
  private views = new Map<string, { host: HTMLElement; view: View; generation: number }>();
  private readonly main = document.getElementById("view") as HTMLElement;
  private readonly bar = document.getElementById("tabs") as HTMLElement;
  private readonly status = document.getElementById("status") as HTMLElement;
  private readonly head = document.getElementById("capture") as HTMLElement;
  private readonly meter = h("progress", { max: 1, value: 0, "aria-label": "Reading the capture" });
  private readonly said = h("span");
  private readonly cancel = h("button", { type: "button", click: () => this.stop() }, "Cancel");

  constructor() {
    for (const client of [this.commands, this.index]) {
      client.onProgress = (share) => { this.meter.value = share; this.busy(); };
      client.ready.catch((e: unknown) => this.say(`The analysis could not be started: ${(e as Error).message}`));
    }
    this.meter.hidden = this.cancel.hidden = true;
    clear(this.status, this.said, this.meter, this.cancel);
    this.drawTabs();
    document.addEventListener("keydown", (e) => this.key(e));
    document.addEventListener("dragover", (e) => { e.preventDefault(); document.body.classList.add("over"); });
    document.addEventListener("dragleave", () => document.body.classList.remove("over"));
    document.addEventListener("drop", (e) => {
      e.preventDefault();
      document.body.classList.remove("over");
      if (e.dataTransfer) void this.take([...e.dataTransfer.files]);
    });
    window.addEventListener("hashchange", () => this.follow());
    if (single) this.begin().catch((e: unknown) => this.fail(e));
    else this.draw();
  }

  // begin opens the first capture that is inside the page.
  private async begin(): Promise<void> {
    this.say("Unpacking the capture…");
    const { flags, files } = await inside();
    this.files.flags = flags;
    for (const { file, kind, side } of files) {
      if (kind === "capture") this.files.inside.push(file);
      else this.files.support(file, kind, side);
    }
    await Promise.all(files.flatMap(({ file, kind }) =>
      kind === "capture" ? [] : [this.commands, this.index].map((c) => c.file(file.name, file))));
    this.say("");
    const wanted = this.wanted();
    this.choose(this.files.inside.find((f) => f.name === wanted) ?? this.files.inside[0] ?? null);
  }

  // choose opens a capture inside the page. A dropped file may have had its name since.
  private choose(capture: File | null): void {
    this.files.capture = capture;
    if (capture) {
      const both = [this.commands, this.index].map((client) => client.file(capture.name, capture));
      Promise.all(both).catch((e: unknown) => this.fail(e));
    }
    this.flow = this.frame = 0;
    this.filter = "";
    this.open();
  }

  // take adds dropped files: a capture opens, other files serve it.
  async take(list: File[]): Promise<void> {
    const support: [File, Support][] = [];
    let capture: File | null = null;
    for (const file of list) {
      const kind = await supportOf(file);
      if (kind === "capture") capture = file;
      else support.push([file, kind]);
    }
    for (const [file, kind] of support) this.files.support(file, kind);
    if (capture) {
      this.files.capture = capture;
      this.flow = this.frame = 0;
      this.filter = "";
    }
    for (const file of [...support.map(([f]) => f), ...(capture ? [capture] : [])]) {
      await Promise.all([this.commands.file(file.name, file), this.index.file(file.name, file)]);
    }
    if (this.files.capture) this.open();
    else this.say(`${list.map((f) => f.name).join(", ")}: now drop the capture that it belongs to`);
  }

  private open(): void {
    this.generation++;
    this.flows = null;
    this.hold();
    if (!this.follow()) this.show("overview");
  }

  // hold opens the capture in the worker that holds it.
  private hold(): void {
    const time = async (row: number): Promise<bigint> => {
      const packets = (await this.index.rows(row, 1))[0]?.["packets"] as Cells[] | undefined;
      return nanoseconds(packets?.[0]?.["time"]);
    };
    // The overview comes first where both workers would share a core or two with the page.
    const first = navigator.hardwareConcurrency > 2 ? Promise.resolve() : this.commands.idle(50);
    this.frames = first.then(() => this.index.open(this.files.args())).then(async (count) => {
      this.first = this.last = 0n;
      if (count > 0) [this.first, this.last] = await Promise.all([time(0), time(count - 1)]);
      return count;
    });
    this.frames.catch((e: unknown) => this.fail(e));
  }

  // known returns the flows whose sides have a state.
  known(): Promise<Cells[]> {
    this.flows ??= this.commands.table("known", this.command("flows", "--json")).then((t) =>
      this.commands.lines("known", 0, Math.min(t.count, mostKnown))).then((all) => all.filter((f) => f["vantage"]));
    return this.flows;
  }

  // command returns a command line about the capture.
  command(...words: string[]): string[] {
    return [...words, ...this.files.args()];
  }

  say(text: string): void {
    this.said.textContent = text;
  }

  fail(e: unknown): void {
    if (e instanceof Cancelled) this.say("Cancelled.");
    else this.say((e as Error).message);
    this.busy();
  }

  // work runs a request and shows that it runs.
  async work<T>(what: string, request: Promise<T>): Promise<T | null> {
    this.say(what);
    this.busy();
    try {
      const value = await request;
      this.say("");
      return value;
    } catch (e) {
      this.fail(e);
      return null;
    } finally {
      this.busy();
    }
  }

  private busy(): void {
    const now = this.commands.busy || this.index.busy;
    this.meter.hidden = this.cancel.hidden = !now || !this.files.capture;
  }

  private stop(): void {
    this.commands.cancel();
    this.index.cancel();
    this.hold();
    this.busy();
  }

  private drawTabs(): void {
    clear(this.bar, ...tabs.map((t) => h("button", {
      type: "button", role: "tab", id: `tab-${t.id}`, "aria-controls": "view", "aria-keyshortcuts": t.key,
      "aria-selected": t.id === this.tab ? "true" : "false", tabindex: t.id === this.tab ? 0 : -1,
      click: () => this.show(t.id),
      keydown: (e) => this.tabKey(e as KeyboardEvent),
    }, h("kbd", { "aria-hidden": "true" }, t.key), ` ${t.title}`)));
    this.main.setAttribute("aria-labelledby", `tab-${this.tab}`);
  }

  private tabKey(e: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (step === undefined) return;
    const at = tabs.findIndex((t) => t.id === this.tab);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next) this.show(next.id);
    document.getElementById(`tab-${this.tab}`)?.focus();
    e.preventDefault();
  }

  private key(e: KeyboardEvent): void {
    const at = e.target as HTMLElement;
    if (e.ctrlKey || e.altKey || e.metaKey || at.closest("input, textarea, select")) return;
    const tab = tabs.find((t) => t.key === e.key);
    if (tab && this.files.capture) {
      this.show(tab.id);
      e.preventDefault();
    } else if (this.views.get(this.tab)?.view.key?.(e)) {
      e.preventDefault();
    }
  }

  show(id: string): void {
    this.tab = id;
    this.drawTabs();
    this.draw();
    this.link();
  }

  // select goes to a frame and its flow.
  select(frame: number, flow: number, tab?: string): void {
    this.frame = frame;
    this.flow = flow;
    if (tab && tab !== this.tab) this.show(tab);
    else this.link();
  }

  private draw(): void {
    const { capture } = this.files;
    document.body.classList.toggle("empty", capture === null);
    if (!capture) {
      clear(this.head);
      welcome(this, this.main);
      return;
    }
    document.title = `${capture.name} – ackscope`;
    clear(this.head, h("span", { class: "file" }, capture.name),
      ...this.files.names().map((n) => h("span", { class: "chip" }, n)), this.others(), this.picker("Open…"));
    const tab = tabs.find((t) => t.id === this.tab);
    if (!tab) return;
    let made = this.views.get(tab.id);
    if (made?.generation !== this.generation) {
      const host = h("div", { class: `host ${tab.id}` });
      made = { host, view: tab.make(this, host), generation: this.generation };
      this.views.set(tab.id, made);
    }
    clear(this.main, made.host);
    made.view.shown();
  }

  // others returns a choice of the captures inside the page, if it has several.
  private others(): HTMLElement | null {
    const { capture, inside } = this.files;
    if (inside.length < 2) return null;
    const choice = h("select", { "aria-label": "Capture", change: () => this.choose(inside[choice.selectedIndex] ?? null) },
      ...inside.map((f) => h("option", {}, f.name)));
    choice.selectedIndex = inside.findIndex((f) => f === capture); // none where another was dropped
    return choice;
  }

  // picker returns a button that asks for files.
  picker(label: string): HTMLElement {
    const input = h("input", {
      type: "file", multiple: true, class: "picker", tabindex: -1, "aria-hidden": "true",
      change: () => void this.take([...(input.files ?? [])]),
    });
    return h("span", {}, input, h("button", { type: "button", click: () => input.click() }, label));
  }

  // A link names the file, which the page cannot open by itself, and the place in it. Where the
  // capture is inside the page, a link may do without the name.
  link(): void {
    const { capture } = this.files;
    if (!capture) return;
    const q = new URLSearchParams({ file: capture.name, view: this.tab });
    if (this.flow) q.set("flow", String(this.flow));
    if (this.frame) q.set("frame", String(this.frame));
    if (this.filter) q.set("filter", this.filter);
    history.replaceState(null, "", `#${q.toString()}`);
  }

  // follow goes where the link points, if it is about the open capture.
  private follow(): boolean {
    const q = new URLSearchParams(location.hash.slice(1));
    const { capture } = this.files;
    if (!capture || q.get("file") !== capture.name && !(single && !q.has("file"))) return false;
    this.flow = Number(q.get("flow")) || 0;
    this.frame = Number(q.get("frame")) || 0;
    this.filter = q.get("filter") ?? "";
    const view = q.get("view") ?? (this.frame ? "packets" : "overview");
    this.show(tabs.some((t) => t.id === view) ? view : "overview");
    return true;
  }

  // wanted is the file that a link asks for.
  wanted(): string {
    return new URLSearchParams(location.hash.slice(1)).get("file") ?? "";
  }
}

const app = new App();
Object.assign(window, { ackscope: exported(app) });
