// What the page has inside where it is one file: `ackscope report --interactive` writes the
// program, the worker and the files to open into blocks of base64. A page of several files has none.
import type { Support } from "./files";

interface Contents {
  flags: string[]; // of every command
  files: { name: string; kind: Support; side: string; packed: boolean }[];
}

export interface Inside {
  flags: string[];
  files: { file: File; kind: Support; side: string }[];
}

function block(id: string): Element | null {
  return document.getElementById(id);
}

const contents = block("inside");

export const single = contents !== null;

// bytes decodes a part of base64, a multiple of four characters.
function bytes(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const to = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) to[i] = binary.charCodeAt(i);
  return to;
}

// Base64 is decoded and decompressed in parts of so many characters, a few milliseconds each. The
// page's thread is free between two of them.
const partSize = 1 << 18;

// stream decodes a block, and drops its text from the page.
function stream(id: string, packed: boolean): ReadableStream<Uint8Array<ArrayBuffer>> {
  if (!("DecompressionStream" in globalThis)) {
    throw new Error("this browser cannot unpack the page; one of 2023 or later can");
  }
  const element = block(id);
  const text = element?.textContent ?? "";
  element?.remove();
  let at = 0;
  const decoded = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(to) {
      if (at >= text.length) {
        to.close();
        return;
      }
      await new Promise((resolve) => setTimeout(resolve));
      to.enqueue(bytes(text.slice(at, at + partSize)));
      at += partSize;
    },
  });
  return packed ? decoded.pipeThrough(new DecompressionStream("gzip")) : decoded;
}

// program returns the analysis, as a server would send it.
export async function program(): Promise<Response> {
  return new Response(stream("inside-program", true), { headers: { "Content-Type": "application/wasm" } });
}

// worker returns the address of the worker's script: a blob of this page, which has its policy.
export function worker(): string {
  const text = block("inside-worker")?.textContent ?? "";
  return URL.createObjectURL(new Blob([bytes(text)], { type: "text/javascript" }));
}

// inside returns the files to open.
export async function inside(): Promise<Inside> {
  const { flags, files } = JSON.parse(new TextDecoder().decode(bytes(contents?.textContent ?? ""))) as Contents;
  return {
    flags,
    files: await Promise.all(files.map(async ({ name, kind, side, packed }, i) => ({
      file: new File([await new Response(stream(`inside-${i}`, packed)).blob()], name), kind, side,
    }))),
  };
}
