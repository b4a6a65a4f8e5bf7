// The page's side of a worker: each request is a promise.
import { program, single, worker } from "./inside";
import type { Answer, Cells, Envelope, Reply, Request, Table, Told } from "./wire";

interface TrustedFactory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

const script = single ? worker() : "worker.js";

// The CSP lets only this policy name the URL of a script, and it knows one.
const policy = (globalThis as unknown as { trustedTypes?: TrustedFactory }).trustedTypes?.createPolicy("ackscope", {
  createScriptURL: () => script,
});

let compiled: Promise<WebAssembly.Module> | null = null;

function compile(): Promise<WebAssembly.Module> {
  compiled ??= WebAssembly.compileStreaming(single ? program() : fetch("ackscope.wasm"));
  return compiled;
}

interface Waiting {
  op: Request["op"];
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export class Cancelled extends Error {}

export class Client {
  private worker!: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private readonly files = new Map<string, Blob>();
  private last = 0;
  onProgress: (share: number) => void = () => undefined;
  ready!: Promise<unknown>;

  constructor() {
    this.begin();
  }

  private begin(): void {
    this.worker = new Worker((policy?.createScriptURL(script) ?? script) as string);
    this.worker.onmessage = ({ data }: MessageEvent<Reply>) => {
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
    this.ready = compile().then((module) => this.ask({ op: "start", module }));
    this.ready.catch(() => undefined); // who waits for it learns of it
  }

  // cancel ends what is running. The worker begins anew; its files are known again.
  cancel(): void {
    this.worker.terminate();
    for (const waiting of this.waiting.values()) waiting.reject(new Cancelled("cancelled"));
    this.waiting.clear();
    this.begin();
    for (const [name, blob] of this.files) {
      this.ask({ op: "file", name, blob }).catch(() => undefined); // cancelled again: it is told anew
    }
  }

  // busy says that the worker does something for the person.
  get busy(): boolean {
    return [...this.waiting.values()].some(({ op }) => op !== "warm");
  }

  // reading says that the worker reads a capture, or waits its turn to.
  get reading(): boolean {
    return [...this.waiting.values()].some(({ op }) => !["start", "file", "warm"].includes(op));
  }

  // idle waits until nothing runs. It looks every so many milliseconds, and first after as many.
  async idle(every: number): Promise<void> {
    do await new Promise((resolve) => setTimeout(resolve, every)); while (this.busy);
  }

  private ask(request: Request, given: Transferable[] = []): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++this.last;
      this.waiting.set(id, { op: request.op, resolve, reject });
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
  // overview runs a command line of the overview, for which another client replays the capture. Where
  // that fails, or is cancelled, this one replays it as well.
  overview(args: string[], found: Promise<Uint8Array>): Promise<Answer> {
    const { port1, port2 } = new MessageChannel();
    void found.catch(() => new Uint8Array(0)).then((verdicts) => port1.postMessage(verdicts));
    return this.after({ op: "overview", args, verdicts: port2 }, [port2]);
  }
  verdicts(args: string[]): Promise<Uint8Array> { return this.after({ op: "verdicts", args }); }
  warm(capture: Uint8Array<ArrayBuffer>): Promise<Answer> { return this.after({ op: "warm", capture }); }
  table(key: string, args: string[]): Promise<Table> { return this.after({ op: "table", key, args }); }
  lines(key: string, from: number, count: number): Promise<Cells[]> {
    return this.after({ op: "lines", key, from, count });
  }
  sort(key: string, column: string, descending: boolean): Promise<void> {
    return this.after({ op: "sort", key, column, descending });
  }
  open(args: string[]): Promise<number> { return this.after({ op: "open", args }); }
  filter(text: string, flow: number): Promise<number> { return this.after({ op: "filter", text, flow }); }
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
