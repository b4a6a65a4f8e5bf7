// What the page has inside where it is one file: `ackscope report --interactive` writes the
// program, the worker and the files to open into blocks of base64. A page of several files has none.
import { decode } from "./base64";
import type { Support } from "./files";

export interface Listed {
  flags: string[]; // of every command
  files: { name: string; kind: Support; side: string; packed: boolean }[]; // each has a block "inside-N"
}

const list = document.getElementById("inside");

export const single = list !== null;

// take returns the text of a block, and drops it from the page.
export function take(id: string): string {
  const element = document.getElementById(id);
  element?.remove();
  return element?.textContent ?? "";
}

// worker returns the address of the worker's script: a blob of this page, which has its policy.
export function worker(): string {
  return URL.createObjectURL(new Blob([decode(take("inside-worker"))], { type: "text/javascript" }));
}

// listed returns what the page says of its files.
export function listed(): Listed {
  return JSON.parse(new TextDecoder().decode(decode(list?.textContent ?? ""))) as Listed;
}
