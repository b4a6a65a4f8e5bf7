// The blocks of a page that is one file: base64, often of gzip.

// decode decodes base64, a multiple of four characters.
export function decode(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const to = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) to[i] = binary.charCodeAt(i);
  return to;
}

// A block is decoded in parts of so many characters: what is decoded and not yet decompressed stays
// small, however long the block is.
const partSize = 1 << 18;

export interface Block {
  text: string;
  packed: boolean; // with gzip
}

// stream returns the bytes of a block.
export function stream({ text, packed }: Block): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  const decoded = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(to) {
      if (at >= text.length) {
        to.close();
        return;
      }
      to.enqueue(decode(text.slice(at, at + partSize)));
      at += partSize;
    },
  });
  return packed ? decoded.pipeThrough(new DecompressionStream("gzip")) : decoded;
}
