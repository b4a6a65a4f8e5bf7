// Compresses the analysis for web servers that send it so: dist/ackscope.wasm.br (Brotli) and
// dist/ackscope.wasm.gz. `node compress.mjs FILE` writes FILE.br and FILE.gz and prints their sizes.
import { readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const path = process.argv[2] ?? "dist/ackscope.wasm";
const wasm = readFileSync(path);
const brotli = brotliCompressSync(wasm, { params: {
  [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: wasm.length,
} });
const gzip = gzipSync(wasm, { level: 9 });
writeFileSync(`${path}.br`, brotli);
writeFileSync(`${path}.gz`, gzip);
console.log(JSON.stringify({ raw: wasm.length, gzip: gzip.length, brotli: brotli.length }));
