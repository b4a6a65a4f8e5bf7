// What the page and its workers say to each other.

import type { Block } from "./base64";

export type Cells = Record<string, unknown>;

export interface Answer {
  code: number; // the exit code of the command: 0 for success, 1 for a gate, 2 for a failure
  out: Uint8Array;
  complaints: string;
}

export interface Table {
  code: number;
  count: number;
  complaints: string;
}

// A block is what one read of a dropped file copies, in bytes. Each worker keeps the first blocks: a
// capture of a million packets has less than so many, and those of both workers are well below
// 700 MB.
export const blockSize = 4 << 20;
export const blocksKept = 48;

export type Request =
  | { op: "start"; module: WebAssembly.Module }
  | { op: "compile"; block: Block } // of a page that is one file
  | { op: "unpack"; blocks: Block[] }
  | { op: "file"; name: string; blob: Blob }
  | { op: "run"; args: string[] }
  // verdicts is where the verdicts arrive. partner leads to the worker that shares the first run: each
  // says once what it learned, or nothing.
  | { op: "overview"; args: string[]; verdicts: MessagePort; partner: MessagePort }
  | { op: "verdicts"; args: string[]; partner: MessagePort }
  | { op: "warm"; capture: Uint8Array<ArrayBuffer> }
  | { op: "table"; key: string; args: string[] }
  | { op: "lines"; key: string; from: number; count: number }
  | { op: "sort"; key: string; column: string; descending: boolean }
  | { op: "open"; args: string[] }
  | { op: "filter"; text: string; flow: number }
  | { op: "rows"; from: number; count: number }
  | { op: "packet"; entry: number }
  | { op: "state"; flow: number; entry: number }
  | { op: "beside"; flow: number; entry: number; way: number }
  | { op: "around"; flow: number; entry: number; count: number }
  | { op: "row"; frame: number }
  | { op: "at"; since: number }
  | { op: "memory" };

export interface Envelope {
  id: number;
  request: Request;
}

// What the page tells a worker of the capture that it reads for it. The worker answers none of it,
// and takes it while a request waits for it.
export type Told =
  | { expect: string; blocks: number } // so many blocks of the file come: 0 if none comes any more
  | { block: Uint8Array<ArrayBuffer>; of: string; index: number };

export type Reply =
  | { id: number; value: unknown }
  | { id: number; error: string }
  | { progress: number; total: number }
  | { waits: true }; // for another worker
