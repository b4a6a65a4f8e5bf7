// The page's side of a worker: each request is a promise.
import { single } from "./inside";
import { newWorker } from "./script";
import { program } from "./unpack";
import type { Answer, Cells, Envelope, Reply, Request, Table, Told } from "./wire";

let compiled: Promise<WebAssembly.Module> | null = null;

// compile is asked for by both workers, and compiles once.
async function compile(): Promise<WebAssembly.Module> {
  compiled ??= single ? program() : WebAssembly.compileStreaming(fetch("ackscope.wasm"));
  return compiled;
}

interface Waiting {
  request: Request;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export class Cancelled extends Error {}

const nothing = (): Uint8Array => new Uint8Array(0);

// pass hands on what a worker says to another one.
function pass(from: MessagePort, to: MessagePort): void {
  from.onmessage = ({ data }: MessageEvent<Uint8Array>) => to.postMessage(data);
}

// A worker that reads tells of each block of 4 MiB, several times a second. One that says nothing at
// so many looks, one after another a second apart, has ended without a word or runs in circles.
const silentLooks = 10;
const lookEvery = 1000; // ms

export class Client {
  private worker!: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private readonly files = new Map<string, Blob>();
  private last = 0;
  private holds: Request[] = []; // what made the worker hold what it holds: a capture, and a filter
  // Looks since the worker said something. None counts until the worker has the analysis: how long its
  // translation takes is the machine's affair.
  private silent = -Infinity;
  onProgress: (share: number) => void = () => undefined;
  ready!: Promise<unknown>;

  constructor() {
    this.begin();
  }

  private begin(): void {
    this.worker = newWorker();
    this.worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      this.silent = 0;
      if ("waits" in data) return;
      if ("progress" in data) {
        this.onProgress(data.total > 0 ? data.progress / data.total : 0);
        return;
      }
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if ("error" in data) waiting?.reject(new Error(data.error));
      else waiting?.resolve(data.value);
    };
    this.worker.onerror = (e) => {
      for (const waiting of this.waiting.values()) waiting.reject(new Error(e.message || "the worker failed"));
      this.waiting.clear();
    };
    this.silent = -Infinity;
    this.ready = compile().then((module) => {
      this.silent = 0;
      return this.ask({ op: "start", module });
    });
    this.ready.catch(() => undefined); // who waits for it learns of it
  }

  // cancel ends what is running. The worker begins anew; its files are known again.
  cancel(): void {
    this.holds = [];
    for (const waiting of this.renew()) waiting.reject(new Cancelled("cancelled"));
  }

  // renew puts a new worker in the place of this one, and returns what waited for an answer.
  private renew(): Waiting[] {
    this.worker.terminate();
    const left = [...this.waiting.values()];
    this.waiting.clear();
    this.begin();
    for (const [name, blob] of this.files) {
      this.ask({ op: "file", name, blob }).catch(() => undefined); // cancelled again: it is told anew
    }
    return left;
  }

  // replace renews a worker that does not answer. The new one is to hold the same, and is asked what
  // waits, but for verdicts: who waits for these finds them itself.
  private replace(): void {
    const left = this.renew();
    for (const held of this.holds) {
      if (left.every(({ request }) => request !== held)) void this.after(held).catch(() => undefined);
    }
    for (const { request, resolve, reject } of left) {
      if (request.op === "verdicts") reject(new Error("the worker does not answer"));
      else if (request.op === "start" || request.op === "file") resolve(this.ready);
      else resolve(this.after(request));
    }
  }

  // watch replaces the worker if it falls silent before it answers.
  private async watch<T>(answer: Promise<T>): Promise<T> {
    let looks: ReturnType<typeof setInterval> | undefined;
    this.silent = Math.min(this.silent, 0);
    // Looks are counted, and not the time: a machine that slept, or a hidden page, looks seldom.
    const gone = new Promise<never>((_, reject) => {
      looks = setInterval(() => {
        if (++this.silent < silentLooks) return;
        clearInterval(looks);
        this.replace();
        reject(new Error("the worker does not answer"));
      }, lookEvery);
    });
    try {
      return await Promise.race([answer, gone]);
    } finally {
      clearInterval(looks);
    }
  }

  // busy says that the worker does something for the person.
  get busy(): boolean {
    return [...this.waiting.values()].some(({ request }) => request.op !== "warm");
  }

  // reading says that the worker reads a capture, or waits its turn to.
  get reading(): boolean {
    return [...this.waiting.values()].some(({ request }) => !["start", "file", "warm"].includes(request.op));
  }

  // idle waits until nothing runs. It looks every so many milliseconds, and first after as many.
  async idle(every: number): Promise<void> {
    do await new Promise((resolve) => setTimeout(resolve, every)); while (this.busy);
  }

  private ask(request: Request, given: Transferable[] = []): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++this.last;
      this.waiting.set(id, { request, resolve, reject });
      this.worker.postMessage({ id, request } satisfies Envelope, given);
    });
  }

  private async after<T>(request: Request, given: Transferable[] = []): Promise<T> {
    await this.ready;
    return (await this.ask(request, given)) as T;
  }

  file(name: string, blob: Blob): Promise<void> {
    this.files.set(name, blob);
    return this.ask({ op: "file", name, blob }) as Promise<void>;
  }

  tell(told: Told, given: Transferable[] = []): void {
    this.worker.postMessage(told, given);
  }

  run(args: string[]): Promise<Answer> { return this.after({ op: "run", args }); }
  // overview runs a command line of the overview, for which another client replays the capture. Both
  // share the first run. Where the other one fails, or is cancelled, this one does all of it.
  overview(args: string[], other: Client, about: string[]): Promise<Answer> {
    const here = new MessageChannel(), there = new MessageChannel(), verdicts = new MessageChannel();
    pass(here.port1, there.port1);
    pass(there.port1, here.port1);
    const found = other.verdicts(about, there.port2);
    void found.catch(() => nothing()).then((bytes) => {
      verdicts.port1.postMessage(bytes);
      here.port1.postMessage(nothing()); // it counts only where the other one has said nothing
    });
    const answer = this.after<Answer>({ op: "overview", args, verdicts: verdicts.port2, partner: here.port2 },
      [verdicts.port2, here.port2]);
    void answer.catch(() => undefined).then(() => there.port1.postMessage(nothing()));
    void Promise.allSettled([found, answer]).then(() => {
      for (const channel of [here, there, verdicts]) channel.port1.close();
    });
    return answer;
  }
  // verdicts asks for what the worker finds for the overview of another one, which waits for it. It
  // fails where the worker falls silent.
  private verdicts(args: string[], partner: MessagePort): Promise<Uint8Array> {
    return this.watch(this.after({ op: "verdicts", args, partner }, [partner]));
  }
  warm(capture: Uint8Array<ArrayBuffer>): Promise<Answer> { return this.after({ op: "warm", capture }); }
  table(key: string, args: string[]): Promise<Table> { return this.after({ op: "table", key, args }); }
  lines(key: string, from: number, count: number): Promise<Cells[]> {
    return this.after({ op: "lines", key, from, count });
  }
  sort(key: string, column: string, descending: boolean): Promise<void> {
    return this.after({ op: "sort", key, column, descending });
  }
  open(args: string[]): Promise<number> {
    const open: Request = { op: "open", args };
    this.holds = [open];
    return this.after(open);
  }
  filter(text: string, flow: number): Promise<number> {
    const filter: Request = { op: "filter", text, flow };
    this.holds = [...this.holds.slice(0, 1), filter];
    return this.after(filter);
  }
  rows(from: number, count: number): Promise<Cells[]> { return this.after({ op: "rows", from, count }); }
  packet(entry: number): Promise<Cells> { return this.after({ op: "packet", entry }); }
  state(flow: number, entry: number): Promise<Cells[]> { return this.after({ op: "state", flow, entry }); }
  beside(flow: number, entry: number, way: number): Promise<number> {
    return this.after({ op: "beside", flow, entry, way });
  }
  around(flow: number, entry: number, count: number): Promise<Cells[]> {
    return this.after({ op: "around", flow, entry, count });
  }
  row(frame: number): Promise<number> { return this.after({ op: "row", frame }); }
  at(since: number): Promise<number> { return this.after({ op: "at", since }); }
  memory(): Promise<number> { return this.after({ op: "memory" }); }
}
