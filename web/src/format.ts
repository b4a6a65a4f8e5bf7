// Figures as text.
import type { Cells } from "./wire";

export function text(v: unknown): string {
  if (v === undefined || v === null) return "";
  if (typeof v === "string") return v;
  if (typeof v === "number" || typeof v === "boolean") return String(v);
  return JSON.stringify(v);
}

const grouping = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });

export function count(v: unknown): string {
  return typeof v === "number" ? grouping.format(v) : "?";
}

export function share(v: unknown): string {
  return typeof v === "number" ? `${(100 * v).toFixed(1)}%` : "?";
}

export function milliseconds(v: unknown): string {
  if (typeof v !== "number") return "?";
  return v >= 10000 ? `${(v / 1000).toFixed(1)} s` : `${v >= 100 ? v.toFixed(0) : v.toFixed(1)} ms`;
}

// nanoseconds parses a time of JSON: "2026-11-21T05:25:42.648823000Z".
export function nanoseconds(v: unknown): bigint {
  const m = /^(.*?)(?:\.(\d+))?Z$/.exec(text(v));
  if (!m) return 0n;
  const whole = Date.parse(`${m[1]}Z`);
  return BigInt(Number.isNaN(whole) ? 0 : whole) * 1000000n + BigInt((m[2] ?? "").padEnd(9, "0").slice(0, 9));
}

export function since(v: unknown, first: bigint): string {
  const ns = Number(nanoseconds(v) - first);
  return (ns / 1e9).toFixed(6);
}

export function list(v: unknown): Cells[] {
  return Array.isArray(v) ? (v as Cells[]) : [];
}

export function plural(n: number, word: string): string {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

// sure returns a certainty in words, after a value. What is certain needs no word.
export function sure(certainty: unknown): string {
  const word = text(certainty);
  return word === "" || word === "certain" ? "" : ` (${word})`;
}

// bounded returns a loss: what is most probable, how surely, and the bounds that the capture proves.
export function bounded(value: unknown, least: unknown, most: unknown, certainty: unknown): string {
  if (typeof value !== "number") return "not known";
  const known = typeof least === "number" && typeof most === "number" && share(least) !== share(most);
  return `${share(value)}${sure(certainty)}${known ? `, between ${share(least)} and ${share(most)}` : ""}`;
}

// captured says what is known of a side: only where the capture was taken, it is what the side had.
export function captured(near: boolean, vantage: unknown): string {
  if (near) return "captured here";
  return vantage === "a" || vantage === "b" ? "inferred from its acks" : "captured elsewhere, or the place is not known";
}

// plain returns complaints of a command without the name of the program and its files' folders.
export function plain(complaints: string): string {
  return complaints.trim().replace(/^ackscope: (warning: )?/gm, "");
}
