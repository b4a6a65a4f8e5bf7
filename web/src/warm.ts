// A browser first runs WebAssembly as it can translate it fastest, and translates anew what runs
// often. While a person looks for a capture, the page has a worker read two small ones again and again.
// What is translated meanwhile serves both workers: the first capture is read as fast as the second.
import type { Client } from "./client";
import riptide from "./riptide.pcap.gz"; // testdata/pcaps/u221_loss10.client.pcap.gz

// The small captures are read so often in turn, and the one that is made here has so many packets: 2 to
// 3 s in all. A drop ends that after the round that runs, so it does not wait.
const rounds = 100;
const packets = 2000;

// warmUp reads the small captures until that is no longer wanted.
export async function warmUp(client: Client, wanted: () => boolean): Promise<void> {
  const captures = [conversation(), riptide];
  for (let i = 0; i < rounds && wanted(); i++) await client.warm(captures[i % 2] as Uint8Array<ArrayBuffer>);
}

// Both endpoints send a packet at each tick, and it takes two. One packet in so many is lost.
const tick = 16_667; // µs: 60 packets a second
const delay = 2;
const losing = 33;

const arrives = (n: number): boolean => n >= 0 && n % losing !== losing - 1;

// conversation returns a capture (pcapng) of two endpoints of the library reliable, at the first one.
function conversation(): Uint8Array<ArrayBuffer> {
  const parts = [block(0x0a0d0d0a, words(0x1a2b3c4d, 1, 0xffffffff, 0xffffffff)), block(1, words(1, 0))];
  for (let n = 0; n < packets / 2; n++) {
    parts.push(frame(n * tick, 0, packet(n)));
    if (arrives(n - delay)) parts.push(frame(n * tick + 100, 1, packet(n - delay)));
  }
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

// packet returns the n-th packet of a side, which has received what the other sent before its tick.
function packet(n: number): Uint8Array {
  let ack = Math.max(-1, n - delay - 1);
  while (ack >= 0 && !arrives(ack)) ack--;
  const bytes = [0, n, n >> 8, n - ack];
  let prefix = 1 << 5; // ack is a difference
  for (let k = 0; k < 4; k++) {
    let acked = 0;
    for (let bit = 0; bit < 8; bit++) if (arrives(ack - 8 * k - bit)) acked |= 1 << bit;
    if (acked === 0xff) continue;
    prefix |= 2 << k;
    bytes.push(acked);
  }
  bytes[0] = prefix;
  return Uint8Array.of(...bytes, ...new Array<number>(64).fill(n));
}

// frame returns the block of a packet that a side sent: Ethernet, IPv4, UDP, and what it sent.
function frame(time: number, from: number, payload: Uint8Array): Uint8Array {
  const length = 42 + payload.length;
  const bytes = new Uint8Array(Math.ceil(length / 4) * 4);
  const view = new DataView(bytes.buffer);
  view.setUint16(12, 0x0800);
  view.setUint16(14, 0x4500);
  view.setUint16(16, length - 14);
  view.setUint16(18, time / tick + 1); // the identification tells packets that were captured twice
  view.setUint16(22, 64 << 8 | 17);
  for (const [i, side] of [from, 1 - from].entries()) {
    view.setUint32(26 + 4 * i, 0x0a000001 + side);
    view.setUint16(34 + 2 * i, 30000 + side);
  }
  view.setUint16(38, length - 34);
  bytes.set(payload, 42);
  return block(6, words(0, 0, time, length, length), bytes);
}

function words(...values: number[]): Uint8Array {
  const bytes = new Uint8Array(4 * values.length);
  values.forEach((value, i) => new DataView(bytes.buffer).setUint32(4 * i, value, true));
  return bytes;
}

// block returns a block of pcapng.
function block(type: number, ...body: Uint8Array[]): Uint8Array {
  const length = 12 + body.reduce((sum, part) => sum + part.length, 0);
  return Uint8Array.from([words(type, length), ...body, words(length)].flatMap((part) => [...part]));
}
