// Bundles the page's own code into dist/. `make web` adds the analysis (ackscope.wasm) and the
// loader of the Go distribution (wasm_exec.js), which are not committed.
import { build } from "esbuild";
import { copyFileSync, mkdirSync } from "node:fs";

mkdirSync("dist", { recursive: true });
const common = { bundle: true, minify: true, target: ["es2022"], charset: "utf8", logLevel: "warning", loader: { ".gz": "binary" } };
await build({ ...common, entryPoints: ["src/app.ts"], outfile: "dist/app.js", format: "iife" });
await build({ ...common, entryPoints: ["src/worker.ts"], outfile: "dist/worker.js", format: "iife" });
await build({ ...common, entryPoints: ["src/app.css"], outfile: "dist/app.css" });
copyFileSync("src/index.html", "dist/index.html");
