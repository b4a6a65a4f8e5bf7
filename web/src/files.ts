// The files that were dropped, and the flags that they mean.

export type Support = "capture" | "keys" | "schema" | "profiles" | "thresholds" | "log" | "unknown";

const decoder = new TextDecoder();

// supportOf says what a file is, by its first bytes and its name.
export async function supportOf(file: File): Promise<Support> {
  const head = new Uint8Array(await file.slice(0, 4096).arrayBuffer());
  const magic = new DataView(head.buffer).byteLength >= 4 ? new DataView(head.buffer).getUint32(0) : 0;
  // pcap in both byte orders and resolutions, pcapng, gzip, zstd
  if ([0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1, 0x0a0d0d0a, 0x28b52ffd].includes(magic)) return "capture";
  if (magic >>> 16 === 0x1f8b) return "capture";
  const text = decoder.decode(head);
  if (/\.jsonl$/i.test(file.name)) return "log";
  if (/\.ya?ml$/i.test(file.name)) {
    if (/^\s*(messages|types|schema)\s*:/m.test(text)) return "schema";
    if (/^\s*thresholds\s*:/m.test(text)) return "thresholds";
    return "profiles";
  }
  if (/\.(keys?|txt|keylog)$/i.test(file.name)) return "keys";
  return "capture"; // the analysis says what is wrong with it
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
