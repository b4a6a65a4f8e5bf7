// What the page and its workers say to each other.

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

export type Request =
  | { op: "start"; module: WebAssembly.Module }
  | { op: "file"; name: string; blob: Blob }
  | { op: "run"; args: string[] }
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

export type Reply =
  | { id: number; value: unknown }
  | { id: number; error: string }
  | { progress: number; total: number };
