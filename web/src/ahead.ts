// Reads a capture for the workers, ahead of them: once for both, on a thread that has nothing else to
// do. A worker that read for itself would stand still meanwhile.
import type { Client } from "./client";
import { blocksKept, blockSize } from "./wire";

// readAhead sends the blocks of a capture that the workers keep. It ends when another capture is
// opened.
export async function readAhead(file: File, clients: Client[], ended: () => boolean): Promise<void> {
  const blocks = Math.min(blocksKept, Math.ceil(file.size / blockSize));
  for (const client of clients) client.tell({ expect: file.name, blocks });
  try {
    for (let index = 0; index < blocks; index++) {
      const from = index * blockSize;
      const read = new Uint8Array(await file.slice(from, from + blockSize).arrayBuffer());
      if (ended()) return;
      clients.forEach((client, i) => {
        const block = i === clients.length - 1 ? read : read.slice();
        client.tell({ block, of: file.name, index }, [block.buffer]);
      });
    }
  } catch {
    // The workers read it themselves, and the views say what is wrong with the file.
    if (!ended()) for (const client of clients) client.tell({ expect: "", blocks: 0 });
  }
}
