// What the page knows, as the command line prints it: for tests, and for the console.
import type { App } from "./app";

const decoder = new TextDecoder();

export interface Exported {
  take(files: File[]): Promise<void>;
  export(...command: string[]): Promise<string>;
  packets(first: number, count: number): Promise<string>;
  state(flow: number, frame: number): Promise<string>;
  memory(): Promise<number[]>;
  count(): Promise<number>;
  ready(): Promise<void>;
  settled(): Promise<void>;
  warm(): Promise<void>;
  generation(): number;
}

export function exported(app: App): Exported {
  return {
    take: (files) => app.take(files),
    export: async (...command) => {
      const answer = await (command[0] === "overview" ? app.overview(...command) : app.commands.run(app.command(...command)));
      return decoder.decode(answer.out) || answer.complaints;
    },
    packets: async (first, count) => {
      await app.frames;
      const rows = await app.index.rows(first, count);
      return JSON.stringify(rows);
    },
    state: async (flow, frame) => {
      await app.frames;
      return JSON.stringify(await app.index.state(flow, frame - 1));
    },
    count: () => app.frames,
    memory: () => Promise.all([app.commands.memory(), app.index.memory()]),
    settled: async () => {
      // What is asked leads to further requests: it is settled when none was made for two frames. The
      // packets are asked for when the overview has stood for a while: nothing is busy meanwhile.
      for (let idle = 0; idle < 2;) {
        await app.frames.catch(() => undefined);
        await new Promise((resolve) => requestAnimationFrame(resolve));
        idle = app.commands.busy || app.index.busy ? 0 : idle + 1;
      }
    },
    warm: () => app.warm,
    generation: () => app.generation,
    ready: async () => { await Promise.all([app.commands.ready, app.index.ready]); },
  };
}
