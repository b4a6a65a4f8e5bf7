// A file system for the Go program: the files that were dropped on the page, and small files in
// memory. Go's loader (wasm_exec.js) expects Node's `fs`. A dropped file is read in blocks. The page
// sends the first blocks of the capture that it opens, and Go waits where it is faster. Further
// blocks are read when Go asks for them. The first ones stay, since an analysis reads a capture
// several times.
import { blocksKept, blockSize } from "./wire";

export type Progress = (read: number, total: number) => void;

type Callback = (error: Error | null, value?: unknown) => void;

interface Entry {
  blob: Blob | null; // a dropped file, or null for one in memory
  bytes: Uint8Array; // of a file in memory
  size: number;
}

interface Open {
  entry: Entry;
  path: string;
  position: number;
}

// Of the blocks that are not kept for good, the newest few are, since a scroll through packets reads
// places near each other.
const blocksNear = 4;

function failure(code: string, path: string): Error {
  const error = new Error(`${code}: ${path}`) as Error & { code: string };
  error.code = code;
  return error;
}

export class Files {
  private readonly entries = new Map<string, Entry>();
  private readonly open = new Map<number, Open>();
  private readonly blocks = new Map<string, Uint8Array>(); // kept for good
  private readonly near = new Map<string, Uint8Array>(); // the oldest first
  private coming = { path: "", blocks: 0 }; // what the page sends: the first blocks of a file
  private waiting: { key: string; read: () => void }[] = []; // reads that wait for a block
  private readonly reader = new FileReaderSync();
  private next = 10;
  private outText = "";

  constructor(private readonly progress: Progress) {}

  // add makes a dropped file known by its name.
  add(name: string, blob: Blob): void {
    this.blocks.clear(); // an earlier capture is read no more
    this.near.clear();
    this.expect("", 0);
    this.entries.set(this.clean(name), { blob, bytes: new Uint8Array(0), size: blob.size });
  }

  // lend makes bytes a file while a function runs.
  async lend<T>(bytes: Uint8Array, to: (path: string) => Promise<T>): Promise<T> {
    const path = "tmp/lent";
    this.entries.set(path, { blob: null, bytes, size: bytes.length });
    try {
      return await to(path);
    } finally {
      this.entries.delete(path);
    }
  }

  // expect says how many blocks of a file the page sends. 0 ends that: they are read here.
  expect(name: string, blocks: number): void {
    this.coming = { path: this.clean(name), blocks };
    this.wake(() => true);
  }

  // receive takes a block that the page sent.
  receive(name: string, index: number, block: Uint8Array): void {
    const key = this.key(this.clean(name), index);
    this.blocks.set(key, block);
    this.wake((waits) => waits === key);
  }

  // wake goes on with the reads that wait for some of the blocks.
  private wake(of: (key: string) => boolean): void {
    const ready = this.waiting.filter(({ key }) => of(key));
    this.waiting = this.waiting.filter(({ key }) => !of(key));
    for (const { read } of ready) read();
  }

  private key(path: string, index: number): string {
    return `${path}\0${index}`;
  }

  // awaits returns the key of the block at an offset if the page has yet to send it.
  private awaits(file: Open, at: number): string | null {
    const index = Math.floor(at / blockSize);
    const key = this.key(file.path, index);
    const { path, blocks } = this.coming;
    return file.entry.blob !== null && path === file.path && index < blocks && !this.blocks.has(key) ? key : null;
  }

  private clean(path: string): string {
    const parts: string[] = [];
    for (const part of path.split("/")) {
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    }
    return parts.join("/");
  }

  private isFolder(path: string): boolean {
    return path === "" || path === "tmp";
  }

  private stat(path: string, entry: Entry | null): object {
    const folder = entry === null;
    const mode = folder ? 0o40700 : 0o100600;
    return {
      dev: 1, ino: folder ? 1 : 2 + [...this.entries.keys()].indexOf(path), mode, nlink: 1, uid: 0, gid: 0, rdev: 0,
      size: entry?.size ?? 0, blksize: 4096, blocks: 0, atimeMs: 0, mtimeMs: 0, ctimeMs: 0,
      isDirectory: () => folder,
    };
  }

  // held is how many bytes of dropped files are kept.
  get held(): number {
    let bytes = 0;
    for (const blocks of [this.blocks, this.near]) for (const block of blocks.values()) bytes += block.length;
    return bytes;
  }

  private block(file: Open, index: number): Uint8Array {
    const key = this.key(file.path, index);
    const from = index * blockSize;
    this.progress(Math.min(from + blockSize, file.entry.size), file.entry.size);
    const known = this.blocks.get(key) ?? this.near.get(key);
    if (known) return known;
    const block = new Uint8Array(this.reader.readAsArrayBuffer((file.entry.blob as Blob).slice(from, from + blockSize)));
    if (this.blocks.size < blocksKept) {
      this.blocks.set(key, block);
      return block;
    }
    const oldest = this.near.keys().next().value;
    if (this.near.size >= blocksNear && oldest !== undefined) this.near.delete(oldest);
    this.near.set(key, block);
    return block;
  }

  private readInto(file: Open, to: Uint8Array, at: number): number {
    const { entry } = file;
    const want = Math.max(0, Math.min(to.length, entry.size - at));
    if (entry.blob === null) {
      to.set(entry.bytes.subarray(at, at + want));
      return want;
    }
    let done = 0;
    while (done < want) {
      const index = Math.floor((at + done) / blockSize);
      const block = this.block(file, index);
      const part = block.subarray(at + done - index * blockSize).subarray(0, want - done);
      if (part.length === 0) break;
      to.set(part, done);
      done += part.length;
    }
    return done;
  }

  // view returns bytes of an open file, as many as lie together: none at its end. A text says why
  // the file cannot be read, as when it was changed since it was dropped. null says that the page has
  // yet to send them: a read waits for that.
  private view(fd: number, at: number, length: number): Uint8Array | string | null {
    const file = this.open.get(fd);
    if (!file) return "the file is not open";
    const want = Math.max(0, Math.min(length, file.entry.size - at));
    if (file.entry.blob === null || want === 0) return file.entry.bytes.subarray(at, at + want);
    if (this.awaits(file, at) !== null) return null;
    try {
      const index = Math.floor(at / blockSize);
      return this.block(file, index).subarray(at - index * blockSize).subarray(0, want);
    } catch (e) {
      return (e as Error).message;
    }
  }

  private writeAt(entry: Entry, from: Uint8Array, at: number): void {
    const end = at + from.length;
    if (end > entry.bytes.length) {
      const grown = new Uint8Array(Math.max(end, entry.bytes.length * 2, 4096));
      grown.set(entry.bytes.subarray(0, entry.size));
      entry.bytes = grown;
    }
    entry.bytes.set(from, at);
    entry.size = Math.max(entry.size, end);
  }

  // node returns the object that Go's loader calls. Callbacks are called before the function
  // returns, but for a read that waits for the page.
  node(): object {
    const o = { O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_TRUNC: 512, O_APPEND: 1024, O_EXCL: 128, O_DIRECTORY: 65536 };
    const refuse = (...args: unknown[]): void => {
      (args[args.length - 1] as Callback)(failure("ENOSYS", "not in a browser"));
    };
    const done = (...args: unknown[]): void => (args[args.length - 1] as Callback)(null);
    const stat = (path: string, to: Callback): void => {
      const name = this.clean(path);
      const entry = this.entries.get(name);
      if (entry) to(null, this.stat(name, entry));
      else if (this.isFolder(name)) to(null, this.stat(name, null));
      else to(failure("ENOENT", path));
    };
    return {
      constants: o,
      writeSync: (_fd: number, bytes: Uint8Array): number => {
        this.outText += new TextDecoder().decode(bytes);
        const line = this.outText.lastIndexOf("\n");
        if (line >= 0) {
          console.warn(this.outText.slice(0, line));
          this.outText = this.outText.slice(line + 1);
        }
        return bytes.length;
      },
      write: (fd: number, bytes: Uint8Array, offset: number, length: number, at: number | null, to: Callback): void => {
        const file = this.open.get(fd);
        if (!file || file.entry.blob !== null) {
          to(failure("EBADF", `${fd}`));
          return;
        }
        this.writeAt(file.entry, bytes.subarray(offset, offset + length), at ?? file.position);
        if (at === null) file.position += length;
        to(null, length);
      },
      open: (path: string, flags: number, _mode: number, to: Callback): void => {
        const name = this.clean(path);
        let entry = this.entries.get(name);
        if (!entry && flags & o.O_CREAT && name.startsWith("tmp/")) {
          entry = { blob: null, bytes: new Uint8Array(0), size: 0 };
          this.entries.set(name, entry);
        }
        if (!entry && this.isFolder(name)) {
          to(failure("EISDIR", path));
          return;
        }
        if (!entry) {
          to(failure("ENOENT", path));
          return;
        }
        if (entry.blob !== null && flags & (o.O_WRONLY | o.O_RDWR | o.O_TRUNC)) {
          to(failure("EACCES", path));
          return;
        }
        if (flags & o.O_TRUNC) entry.size = 0;
        this.open.set(this.next, { entry, path: name, position: 0 });
        to(null, this.next++);
      },
      read: (fd: number, bytes: Uint8Array, offset: number, length: number, at: number | null, to: Callback): void => {
        const file = this.open.get(fd);
        if (!file) {
          to(failure("EBADF", `${fd}`));
          return;
        }
        const from = at ?? file.position;
        const read = (): void => {
          try {
            const n = this.readInto(file, bytes.subarray(offset, offset + length), from);
            if (at === null) file.position += n;
            to(null, n);
          } catch (e) {
            to(failure("EIO", (e as Error).message));
          }
        };
        const key = this.awaits(file, from);
        if (key === null) read();
        else this.waiting.push({ key, read });
      },
      close: (fd: number, to: Callback): void => {
        this.open.delete(fd);
        to(null);
      },
      fstat: (fd: number, to: Callback): void => {
        const file = this.open.get(fd);
        if (file) to(null, this.stat(file.path, file.entry));
        else to(failure("EBADF", `${fd}`));
      },
      stat, lstat: stat,
      view: (fd: number, at: number, length: number): Uint8Array | string | null => this.view(fd, at, length),
      unlink: (path: string, to: Callback): void => {
        const entry = this.entries.get(this.clean(path));
        if (entry?.blob === null) this.entries.delete(this.clean(path));
        to(null);
      },
      ftruncate: (fd: number, length: number, to: Callback): void => {
        const file = this.open.get(fd);
        if (file && file.entry.blob === null) file.entry.size = Math.min(length, file.entry.size);
        to(null);
      },
      readdir: (_path: string, to: Callback): void => to(null, []),
      chmod: done, fchmod: done, fsync: done, mkdir: done, rmdir: done, utimes: done,
      chown: refuse, fchown: refuse, lchown: refuse, link: refuse, readlink: refuse, rename: refuse, symlink: refuse,
      truncate: refuse,
    };
  }
}
