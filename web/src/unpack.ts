// Unpacks what the page has inside, beside the page's thread. To decompress and compile the program
// kept that busy for a quarter of a second, and it answers no key meanwhile.
import type { Block } from "./base64";
import type { Support } from "./files";
import { listed, take } from "./inside";
import { newWorker } from "./script";
import type { Envelope, Reply, Request } from "./wire";

export interface Inside {
  flags: string[];
  files: { file: File; kind: Support; side: string }[];
}

// program returns the analysis.
export async function program(): Promise<WebAssembly.Module> {
  return await aside({ op: "compile", block: await block("inside-program", true) }) as WebAssembly.Module;
}

// inside returns the files to open.
export async function inside(): Promise<Inside> {
  const { flags, files } = listed();
  const blocks: Block[] = [];
  for (const [i, { packed }] of files.entries()) blocks.push(await block(`inside-${i}`, packed));
  const blobs = await aside({ op: "unpack", blocks }) as Blob[];
  return {
    flags,
    files: files.map(({ name, kind, side }, i) => ({ file: new File([blobs[i] as Blob], name), kind, side })),
  };
}

// block takes a block from the page. The page's thread is free before, since the text of one may
// have tens of megabytes.
async function block(id: string, packed: boolean): Promise<Block> {
  if (!("DecompressionStream" in globalThis)) {
    throw new Error("this browser cannot unpack the page; one of 2023 or later can");
  }
  await new Promise((resolve) => setTimeout(resolve));
  return { text: take(id), packed };
}

// aside starts a worker for one request, and ends it. The two workers that analyse can be cancelled
// meanwhile, and would not finish it.
async function aside(request: Request): Promise<unknown> {
  const worker = newWorker();
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Reply>) => {
        if ("progress" in data || "waits" in data) return;
        if ("error" in data) reject(new Error(data.error));
        else resolve(data.value);
      };
      worker.onerror = (e) => reject(new Error(e.message || "the worker failed"));
      worker.postMessage({ id: 0, request } satisfies Envelope);
    });
  } finally {
    worker.terminate();
  }
}
