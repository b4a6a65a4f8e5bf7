// The page: files that are dropped, tabs, keys, and what is selected.
import { readAhead } from "./ahead";
import { Cancelled, Client } from "./client";
import { clear, h } from "./dom";
import { exported } from "./exported";
import { expected, Loaded, supportOf } from "./files";
import { help } from "./help";
import { single } from "./inside";
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
import { nanoseconds, plain } from "./format";
import { inside } from "./unpack";
import { warmUp } from "./warm";
import type { Answer, Cells } from "./wire";

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
  readonly warm: Promise<void>; // ends when nothing more is done ahead of the first capture
  private flows: Promise<Cells[]> | null = null;
  private tab = "overview";
  private looks = 0; // the timer that looks whether the workers are still busy
  private views = new Map<string, { host: HTMLElement; view: View; generation: number }>();
  private readonly main = document.getElementById("view") as HTMLElement;
  private readonly bar = document.getElementById("tabs") as HTMLElement;
  private readonly status = document.getElementById("status") as HTMLElement;
  private readonly head = document.getElementById("capture") as HTMLElement;
  private readonly meter = h("progress", { max: 1, value: 0, "aria-label": "Reading the capture" });
  private readonly said = h("span");
  private readonly heard = h("p", { class: "hidden", role: "status" }); // for those who do not see the view change
  private readonly focused = new Map<string, Element>(); // where the focus was in a view
  private readonly scrolled = new Map<string, number>(); // how far down a view was, in pixels
  private readonly notice = h("div", { class: "notice", role: "alert", hidden: true });
  private readonly cancel = h("button", { type: "button", click: () => this.stop() }, "Cancel");

  constructor() {
    for (const client of [this.commands, this.index]) {
      client.onProgress = (share) => { this.meter.value = share; this.busy(); };
      client.ready.catch((e: unknown) => this.say(`The analysis could not be started: ${(e as Error).message}`));
    }
    this.meter.hidden = this.cancel.hidden = true;
    clear(this.status, this.said, this.meter, this.cancel);
    this.main.before(this.notice, this.heard);
    this.head.after(h("button", {
      type: "button", class: "keys", "aria-label": "Keys", "aria-keyshortcuts": "?", click: () => help(tabs),
    }, "?"));
    this.drawTabs();
    document.addEventListener("keydown", (e) => this.key(e));
    document.addEventListener("dragover", (e) => { e.preventDefault(); document.body.classList.add("over"); });
    document.addEventListener("dragleave", () => document.body.classList.remove("over"));
    document.addEventListener("drop", (e) => {
      e.preventDefault();
      document.body.classList.remove("over");
      if (e.dataTransfer) void this.take([...e.dataTransfer.files]);
    });
    window.addEventListener("hashchange", () => { if (!this.follow()) this.draw(); });
    if (single) this.begin().catch((e: unknown) => this.fail(e));
    else this.draw();
    // A page with a capture inside opens that one at once, so there is nothing to do ahead of it.
    this.warm = single ? Promise.resolve() : Promise.all([this.commands.ready, this.index.ready])
      .then(() => warmUp(this.commands, () => this.files.capture === null))
      .catch(() => undefined); // the first capture then takes longer
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
    this.files.captures = [...this.files.inside];
    this.register(files.flatMap(({ file, kind }) => kind === "capture" ? [] : [file]));
    this.say("");
    const { captures } = this.files;
    const wanted = captures.find((f) => f.name === this.wanted()) ?? captures[0];
    if (!wanted) return;
    this.register([wanted]);
    this.leave(wanted);
    this.open();
  }

  // register tells the workers of files, before they are asked for any.
  private register(files: File[]): void {
    for (const file of files) {
      void Promise.all([this.commands.file(file.name, file), this.index.file(file.name, file)])
        .catch((e: unknown) => this.fail(e));
    }
  }

  // take adds dropped files: captures open, other files serve them.
  async take(list: File[]): Promise<void> {
    const captures: File[] = [], strange: string[] = [];
    for (const file of list) {
      const kind = await supportOf(file);
      if (kind === "capture") captures.push(file);
      else if (kind === "unknown") strange.push(file.name);
      else this.files.support(file, kind);
    }
    const refused = strange.length > 0 ? `${strange.join(", ")}: ${expected}` : "";
    if (strange.length > 0 && strange.length === list.length) {
      this.warn(refused);
      return;
    }
    // A link may ask for one of them. Else the first is shown.
    const asked = this.wanted() === this.files.capture?.name ? "" : this.wanted();
    const wanted = captures.find((f) => f.name === asked) ?? captures[0];
    if (wanted) {
      const link = this.files.capture === null || this.wanted() === wanted.name;
      this.files.captures = [...this.files.inside, ...captures];
      this.leave(wanted);
      if (!link) {
        this.tab = "overview";
        this.link();
      }
    } else if (this.files.capture) {
      this.leave(this.files.capture);
    }
    this.register(list);
    if (this.files.capture) this.open();
    else this.draw();
    if (refused) this.warn(refused);
  }

  // leave ends what is read of one capture, for another.
  private leave(to: File): void {
    if (to !== this.files.capture) {
      this.flow = this.frame = 0;
      this.filter = "";
    }
    this.files.capture = to;
    this.generation++;
    if (this.commands.busy) this.commands.cancel();
    if (this.index.busy) this.index.cancel();
  }

  // turnTo opens another of the captures that were dropped or came with the page. Two of them may
  // have one name.
  private turnTo(capture: File): void {
    this.register([capture]);
    this.leave(capture);
    this.link();
    this.open();
  }

  // without goes on without a file that served the capture.
  private without(name: string): void {
    this.files.remove(name);
    if (this.files.capture) this.turnTo(this.files.capture);
    else this.draw();
  }

  private open(): void {
    const generation = ++this.generation;
    this.flows = null;
    this.warn("");
    void readAhead(this.files.capture as File, [this.commands, this.index], () => generation !== this.generation);
    this.hold();
    if (!this.follow()) this.show("overview");
  }

  // hold opens the capture in the worker that holds it.
  private hold(): void {
    const time = async (row: number): Promise<bigint> => {
      const packets = (await this.index.rows(row, 1))[0]?.["packets"] as Cells[] | undefined;
      return nanoseconds(packets?.[0]?.["time"]);
    };
    // The overview comes first where both workers would share a core or two with the page. With
    // more, the view that opens next first asks this worker for verdicts only.
    const first = navigator.hardwareConcurrency > 2 ? new Promise((resolve) => setTimeout(resolve)) :
      this.commands.idle(50);
    this.frames = first.then(() => this.index.open(this.files.args())).then(async (count) => {
      this.first = this.last = 0n;
      if (count > 0) [this.first, this.last] = await Promise.all([time(0), time(count - 1)]);
      return count;
    });
    // The views say what is wrong, where a person looks.
    this.frames.catch(() => undefined).finally(() => this.busy());
  }

  // known returns the flows whose sides have a state.
  known(): Promise<Cells[]> {
    this.flows ??= this.commands.table("known", this.command("flows", "--json")).then((t) => {
      if (t.code !== 0 && t.count === 0) throw new Error(t.complaints);
      return this.commands.lines("known", 0, Math.min(t.count, mostKnown));
    }).then((all) => all.filter((f) => f["vantage"]));
    return this.flows;
  }

  // command returns a command line about the capture.
  command(...words: string[]): string[] {
    return [...words, ...this.files.args()];
  }

  // overview runs a command line of the overview. Both workers read the capture for it, if the one
  // that holds the capture does nothing else.
  overview(...words: string[]): Promise<Answer> {
    const args = this.command(...words);
    if (this.index.reading) return this.commands.run(args);
    return this.commands.overview(args, this.index, this.files.args());
  }

  say(text: string): void {
    this.said.textContent = text;
  }

  fail(e: unknown): void {
    this.say(e instanceof Cancelled ? "" : plain((e as Error).message));
    this.busy();
  }

  // warn says above the view what a person must know of the capture or of a link. "" ends it.
  warn(text: string): void {
    this.notice.hidden = text === "";
    clear(this.notice, h("span", {}, text), h("button", { type: "button", click: () => this.warn("") }, "Close"));
  }

  // problem shows in a view why it has nothing to show, and what can be done.
  problem(host: Element, e: unknown): void {
    if (e instanceof Cancelled) {
      clear(host, h("div", { class: "problem" }, h("h2", {}, "Reading was cancelled"),
        h("p", {}, h("button", { type: "button", click: () => this.open() }, "Read it again"))));
    } else {
      clear(host, h("div", { class: "problem", role: "alert" }, h("h2", {}, "This cannot be read"),
        h("pre", {}, plain((e as Error).message)),
        h("p", {}, "Open another file, or remove the file that is named here.")));
    }
    this.busy();
  }

  // announce tells a screen reader of a result that stands in the view.
  announce(text: string): void {
    this.heard.textContent = text;
  }

  // work runs a request and shows that it runs.
  async work<T>(what: string, request: Promise<T>): Promise<T | null> {
    const { generation } = this;
    this.say(what);
    this.busy();
    try {
      const value = await request;
      if (generation !== this.generation) return null; // it is about another capture
      this.say("");
      return value;
    } catch (e) {
      if (generation === this.generation) this.fail(e);
      return null;
    } finally {
      this.busy();
    }
  }

  private busy(): void {
    const now = this.commands.busy || this.index.busy;
    this.meter.hidden = this.cancel.hidden = !now || !this.files.capture;
    clearTimeout(this.looks);
    if (now) this.looks = setTimeout(() => this.busy(), 200); // views ask for more on their own
  }

  // stop ends all reading. Every view then says so, and offers to read again.
  private stop(): void {
    this.generation++;
    this.commands.cancel();
    this.index.cancel();
    const cancelled = new Cancelled("cancelled");
    this.frames = Promise.reject(cancelled);
    this.frames.catch(() => undefined);
    this.say("Cancelled.");
    this.views.clear();
    this.problem(this.main, cancelled);
  }

  private drawTabs(): void {
    clear(this.bar, ...tabs.map((t) => h("button", {
      type: "button", role: "tab", id: `tab-${t.id}`, "aria-controls": "view", "aria-keyshortcuts": t.key,
      "aria-selected": t.id === this.tab ? "true" : "false", tabindex: t.id === this.tab ? 0 : -1,
      click: () => this.show(t.id),
      keydown: (e) => this.tabKey(e as KeyboardEvent),
    }, h("kbd", { "aria-hidden": "true" }, t.key), ` ${t.title}`)));
    this.main.setAttribute("aria-labelledby", `tab-${this.tab}`);
    document.getElementById(`tab-${this.tab}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
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
    if (document.querySelector("dialog[open]")) return;
    // Enter is the button's own where a button has the focus.
    if (e.key === "Enter" && at.closest("button, a, summary")) return;
    if (e.key === "?") {
      help(tabs);
      e.preventDefault();
    } else if (tab && this.files.capture) {
      this.show(tab.id);
      e.preventDefault();
    } else if (this.views.get(this.tab)?.view.key?.(e)) {
      e.preventDefault();
    }
  }

  // show opens a view. The way back leads to the one before it.
  show(id: string, back = id !== this.tab): void {
    const at = document.activeElement;
    const inside = at !== null && this.main.contains(at);
    if (inside && at !== this.main) this.focused.set(this.tab, at);
    const scroller = this.main.parentElement as HTMLElement;
    this.scrolled.set(this.tab, scroller.scrollTop);
    this.tab = id;
    this.drawTabs();
    this.draw();
    scroller.scrollTop = this.scrolled.get(id) ?? 0;
    // The focus was on what is gone now. It goes to where it was in this view, or to its start.
    if (inside) this.refocus(id);
    this.link(back);
  }

  private refocus(id: string): void {
    const before = this.focused.get(id);
    const to = before && this.main.contains(before) ? before : this.main.querySelector(".vtable") ?? this.main;
    (to as HTMLElement).focus({ preventScroll: true });
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
    this.drawHead();
    if (!capture) {
      welcome(this, this.main);
      return;
    }
    document.title = `${capture.name} – ackscope`;
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

  private drawHead(): void {
    const { capture, captures } = this.files;
    const several = h("select", {
      "aria-label": "Capture", change: () => {
        const chosen = captures[several.selectedIndex];
        if (chosen) this.turnTo(chosen);
      },
    }, ...captures.map((f) => h("option", { selected: f === capture }, f.name)));
    clear(this.head, captures.length > 1 ? several : capture && h("span", { class: "file" }, capture.name),
      ...this.files.names().map(([kind, name]) => h("span", { class: "chip" }, `${kind}: ${name}`, h("button", {
        type: "button", class: "link", "aria-label": `Remove ${name}`, click: () => this.without(name),
      }, "✕"))), capture && this.picker("Open…"));
  }

  // picker returns a button that asks for files.
  picker(label: string): HTMLElement {
    const input = h("input", {
      type: "file", multiple: true, class: "picker", tabindex: -1, "aria-hidden": "true",
      change: () => void this.take([...(input.files ?? [])]),
    });
    return h("span", {}, input, h("button", { type: "button", click: () => input.click() }, label));
  }

  // A link names the file, which the page cannot open by itself, and the place in it.
  link(back = false): void {
    const { capture } = this.files;
    if (!capture) return;
    const q = new URLSearchParams({ file: capture.name, view: this.tab });
    if (this.flow) q.set("flow", String(this.flow));
    if (this.frame) q.set("frame", String(this.frame));
    if (this.filter) q.set("filter", this.filter);
    const hash = `#${q.toString()}`;
    if (back && location.hash !== "") history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
  }

  // follow goes where the link points, if it is about the open capture.
  private follow(): boolean {
    const q = new URLSearchParams(location.hash.slice(1));
    const { capture } = this.files;
    // Where the capture is inside the page, a link may do without the name.
    const unnamed = single && !q.has("file") && q.size > 0;
    const other = this.files.captures.find((f) => f.name === q.get("file"));
    if (other && other.name !== capture?.name) {
      this.register([other]);
      this.leave(other);
      this.open();
      return true;
    }
    if (!capture || q.get("file") !== capture.name && !unnamed) {
      if (capture && q.get("file")) this.warn(`The link is about ${q.get("file") ?? ""}. This is ${capture.name}.`);
      return false;
    }
    this.flow = Number(q.get("flow")) || 0;
    this.frame = Number(q.get("frame")) || 0;
    this.filter = q.get("filter") ?? "";
    const view = q.get("view") ?? (this.frame ? "packets" : "overview");
    this.show(tabs.some((t) => t.id === view) ? view : "overview", false);
    void this.checkLink();
    return true;
  }

  // checkLink says what of a link the capture does not have.
  private async checkLink(): Promise<void> {
    const { generation, frame, flow } = this;
    const missing: string[] = [];
    try {
      const frames = await this.frames;
      if (frame > frames) missing.push(`The link names frame ${frame}. The capture has ${frames} frames.`);
      if (flow > 0) {
        const found = await this.commands.run(this.command("flows", "--json", "-Y", `flow == ${flow}`));
        if (found.out.length === 0) {
          missing.push(`The link names flow ${flow}. The capture has no such flow: the view Flows lists them.`);
        }
      }
    } catch {
      return; // the view says what is wrong with the capture
    }
    if (generation === this.generation && missing.length > 0) this.warn(missing.join("\n"));
  }

  // wanted is the file that a link asks for.
  wanted(): string {
    return new URLSearchParams(location.hash.slice(1)).get("file") ?? "";
  }
}

const app = new App();
Object.assign(window, { ackscope: exported(app) });
