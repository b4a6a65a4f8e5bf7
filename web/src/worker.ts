// Runs the analysis beside the page, so that the page never waits for it.
import { stream } from "./base64";
import { Files } from "./fs";
import type { Answer, Cells, Envelope, Reply, Request, Table, Told } from "./wire";

interface Engine {
  run(args: string[], to: Done): void;
  overview(args: string[], verdicts: Promise<Uint8Array>, trade: Trade, to: Done): void;
  verdicts(args: string[], trade: Trade, to: Done): void;
  open(args: string[], to: Done): void;
  filter(text: string, flow: number, to: Done): void;
  rows(from: number, count: number, to: Done): void;
  packet(entry: number, to: Done): void;
  state(flow: number, entry: number, to: Done): void;
  beside(flow: number, entry: number, way: number, to: Done): void;
  around(flow: number, entry: number, count: number, to: Done): void;
  row(frame: number, to: Done): void;
  at(since: number, to: Done): void;
}

// A trade gives what this worker learned, and has what another one did. No bytes are nothing.
type Trade = (own: Uint8Array) => Promise<Uint8Array>;

type Done = (code: number, out: Uint8Array, complaints: string) => void;

interface Loader {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}

interface Scope {
  fs: object;
  process: object;
  Go: (new () => Loader) | undefined;
  ackscope: Engine;
  ackscopeReady: () => void;
  postMessage(reply: Reply, transfer?: Transferable[]): void;
  importScripts(...paths: string[]): void;
  onmessage: ((e: MessageEvent<Envelope | Told>) => void) | null;
}

const scope = globalThis as unknown as Scope;

// Progress is reported this often at most, in milliseconds.
const progressEvery = 50;
let reported = 0;
const files = new Files((read, total) => {
  const now = performance.now();
  if (now - reported < progressEvery) return;
  reported = now;
  scope.postMessage({ progress: read, total });
});

// A table is the output of a command: lines of JSON, kept as bytes until they are shown.
interface Held {
  out: Uint8Array;
  ends: number[]; // where each line ends
  order: Uint32Array | null; // of a sort; null for the order of the output
}

const tables = new Map<string, Held>();
const decoder = new TextDecoder();
let memory: WebAssembly.Memory | null = null;

function call(start: (to: Done) => void): Promise<Answer> {
  return new Promise((resolve) => start((code, out, complaints) => resolve({ code, out, complaints })));
}

function lineEnds(out: Uint8Array): number[] {
  const ends: number[] = [];
  for (let at = out.indexOf(10); at >= 0; at = out.indexOf(10, at + 1)) ends.push(at);
  return ends;
}

function line(held: Held, n: number): Cells {
  const from = n === 0 ? 0 : (held.ends[n - 1] ?? 0) + 1;
  return JSON.parse(decoder.decode(held.out.subarray(from, held.ends[n]))) as Cells;
}

function parsed(out: Uint8Array): Cells[] {
  const held: Held = { out, ends: lineEnds(out), order: null };
  return held.ends.map((_, n) => line(held, n));
}

function compare(a: unknown, b: unknown): number {
  if (a === b) return 0;
  if (a === undefined || a === null) return 1;
  if (b === undefined || b === null) return -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a) < String(b) ? -1 : 1;
}

function sort(held: Held, column: string, descending: boolean): void {
  const values = held.ends.map((_, n) => line(held, n)[column]);
  const order = Uint32Array.from(values.keys());
  const absent = (v: unknown): boolean => v === undefined || v === null;
  order.sort((a, b) => {
    const x = values[a], y = values[b];
    const n = compare(x, y);
    return (descending && !absent(x) && !absent(y) ? -n : n) || a - b;
  });
  held.order = order;
}

async function start(module: WebAssembly.Module): Promise<void> {
  scope.fs = files.node();
  scope.process = {
    getuid: () => 0, getgid: () => 0, geteuid: () => 0, getegid: () => 0, getgroups: () => [], pid: 1, ppid: 0,
    umask: () => 0, cwd: () => "/", chdir: () => undefined,
  };
  if (!scope.Go) scope.importScripts("wasm_exec.js"); // a page of one file has it in this script
  const go = new (scope.Go as new () => Loader)();
  const ready = new Promise<void>((resolve) => { scope.ackscopeReady = resolve; });
  const instance = await WebAssembly.instantiate(module, go.importObject);
  memory = instance.exports["mem"] as WebAssembly.Memory;
  void go.run(instance);
  await ready;
}

async function answered(start: (to: Done) => void): Promise<Answer> {
  const answer = await call(start);
  if (answer.code !== 0) throw new Error(answer.complaints.trim());
  return answer;
}

async function number(start: (to: Done) => void): Promise<number> {
  return Number(decoder.decode((await answered(start)).out));
}

async function handle(r: Request): Promise<unknown> {
  const engine = scope.ackscope;
  switch (r.op) {
    case "start":
      return start(r.module);
    case "compile":
      return WebAssembly.compileStreaming(new Response(stream(r.block), {
        headers: { "Content-Type": "application/wasm" },
      }));
    case "unpack":
      return Promise.all(r.blocks.map((block) => new Response(stream(block)).blob()));
    case "file":
      return files.add(r.name, r.blob);
    case "run":
      return call((to) => engine.run(r.args, to));
    case "overview": {
      const arrived = message(r.verdicts);
      const partner = trade(r.partner);
      return call((to) => engine.overview(r.args, arrived, partner, to));
    }
    case "verdicts": {
      const partner = trade(r.partner);
      return (await answered((to) => engine.verdicts(r.args, partner, to))).out;
    }
    case "warm":
      return files.lend(r.capture, (path) => call((to) => engine.run(["overview", "--json", path], to)));
    case "table": {
      const { code, out, complaints } = await call((to) => engine.run(r.args, to));
      const held: Held = { out, ends: lineEnds(out), order: null };
      tables.set(r.key, held);
      return { code, complaints, count: held.ends.length } satisfies Table;
    }
    case "lines": {
      const held = tables.get(r.key);
      const rows: Cells[] = [];
      for (let n = r.from; held && n < Math.min(r.from + r.count, held.ends.length); n++) {
        rows.push(line(held, held.order?.[n] ?? n));
      }
      return rows;
    }
    case "sort": {
      const held = tables.get(r.key);
      if (held) sort(held, r.column, r.descending);
      return null;
    }
    case "open":
      return number((to) => engine.open(r.args, to));
    case "filter":
      return number((to) => engine.filter(r.text, r.flow, to));
    case "rows":
      return parsed((await answered((to) => engine.rows(r.from, r.count, to))).out);
    case "packet":
      return parsed((await answered((to) => engine.packet(r.entry, to))).out)[0];
    case "state":
      return parsed((await answered((to) => engine.state(r.flow, r.entry, to))).out);
    case "beside":
      return number((to) => engine.beside(r.flow, r.entry, r.way, to));
    case "around":
      return parsed((await answered((to) => engine.around(r.flow, r.entry, r.count, to))).out);
    case "row":
      return number((to) => engine.row(r.frame, to));
    case "at":
      return number((to) => engine.at(r.since, to));
    case "memory":
      return (memory?.buffer.byteLength ?? 0) + files.held;
  }
}

// message waits for what another worker found. Go waits for it as well, and then the worker is free
// for the message.
function message(port: MessagePort): Promise<Uint8Array> {
  return new Promise((resolve) => {
    port.onmessage = ({ data }: MessageEvent<Uint8Array>) => resolve(data);
  });
}

// The page takes a worker that says nothing for one that has ended. So a worker that waits says so, at
// this interval in milliseconds.
const waitsEvery = 1000;

// trade connects this worker with another one, by way of the page.
function trade(port: MessagePort): Trade {
  const other = message(port);
  return (own) => {
    port.postMessage(own);
    const waits = setInterval(() => scope.postMessage({ waits: true }), waitsEvery);
    return other.finally(() => clearInterval(waits));
  };
}

function answer({ id, request }: Envelope): Promise<void> {
  return handle(request).then(
    (value) => scope.postMessage({ id, value }),
    (e: unknown) => scope.postMessage({ id, error: e instanceof Error ? e.message : String(e) }));
}

// Requests are answered one after the other, in the order in which they came. A file is known at
// once, before the first of its blocks.
let queue = Promise.resolve();
scope.onmessage = ({ data }) => {
  if ("expect" in data) files.expect(data.expect, data.blocks);
  else if ("block" in data) files.receive(data.of, data.index, data.block);
  else if (data.request.op === "file") void answer(data);
  else queue = queue.then(() => answer(data));
};
