// The files that were dropped, and the flags that they mean.

export type Support = "capture" | "keys" | "schema" | "profiles" | "thresholds" | "log" | "unknown";

const decoder = new TextDecoder();

// What marks each kind of text, in the order in which they are looked for: a profile has messages
// too, but not at the start of a line.
const marks: [Support, RegExp][] = [
  ["keys", /^\{?\s*"?(servers|sessions)"?\s*:/m],
  ["log", /^\{"t"\s*:/],
  ["profiles", /^-?\s*protocol\s*:/m],
  ["schema", /^(messages|packets|types|structs|enums)\s*:/m],
  ["thresholds", /^(loss|rtt|jitter|stall|idle|resends|bandwidth)\s*:/m],
];

// expected says what supportOf knows, for a person whose file is none of it.
export const expected = "expected a capture, keys (servers: or sessions:), a schema (messages: or packets:), a profile " +
  "(protocol:), thresholds (loss:, rtt:, …) or a game's log (JSON Lines with t)";

// supportOf says what a file is, by its first bytes, else by its name.
export async function supportOf(file: File): Promise<Support> {
  const head = new Uint8Array(await file.slice(0, 16384).arrayBuffer());
  const magic = head.length >= 4 ? new DataView(head.buffer).getUint32(0) : 0;
  // pcap in both byte orders and resolutions, pcapng, gzip, zstd
  if ([0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1, 0x0a0d0d0a, 0x28b52ffd].includes(magic)) return "capture";
  if (magic >>> 16 === 0x1f8b) return "capture";
  if (/\.(keys?|keylog)$/i.test(file.name)) return "keys";
  if (/\.jsonl$/i.test(file.name)) return "log";
  if (!/\.(ya?ml|json|txt)$/i.test(file.name)) return "capture"; // the analysis says what is wrong with it
  const text = decoder.decode(head);
  return marks.find(([, mark]) => mark.test(text))?.[0] ?? "unknown";
}

export class Loaded {
  captures: File[] = []; // those that were dropped together; each is read for itself
  capture: File | null = null; // the one that is shown
  inside: File[] = []; // captures that came with the page
  flags: string[] = []; // of every command about one of these
  private readonly supports = new Map<Support, string[]>();

  // support adds a file. side is whose log it is, as "client=", or empty.
  support(file: File, kind: Support, side = ""): void {
    const list = kind === "profiles" || kind === "log" ? this.supports.get(kind) ?? [] : [];
    if (!list.includes(side + file.name)) list.push(side + file.name);
    this.supports.set(kind, list);
  }

  // names returns what each file is, and its name.
  names(): [Support, string][] {
    return [...this.supports].flatMap(([kind, names]) => names.map((n): [Support, string] => [kind, n]));
  }

  remove(name: string): void {
    for (const [kind, names] of this.supports) this.supports.set(kind, names.filter((n) => n !== name));
  }

  // args returns the flags and the capture, as the command line takes them.
  args(): string[] {
    const args: string[] = this.capture && this.inside.includes(this.capture) ? [...this.flags] : [];
    for (const [kind, names] of this.supports) {
      if (kind === "keys" || kind === "schema" || kind === "profiles" || kind === "thresholds") {
        for (const n of names) args.push(`--${kind}`, n);
      }
    }
    if (this.capture) args.push("--", this.capture.name);
    return args;
  }

  // logs returns the flags of the game's logs, for the commands that have them.
  logs(): string[] {
    return (this.supports.get("log") ?? []).flatMap((n) => ["--log", n]);
  }
}
