// The report for others, and the JSON of every view, as files.
import type { App, View } from "../app";
import { clear, h } from "../dom";

interface Kind {
  title: string;
  command: string[];
  name: string;
  type: string;
}

const kinds: Kind[] = [
  { title: "Report as a page (HTML)", command: ["report", "-o", "-"], name: "report.html", type: "text/html" },
  {
    title: "Report for an issue (Markdown)", command: ["report", "--format", "markdown"], name: "report.md",
    type: "text/markdown",
  },
  ...["overview", "flows", "findings", "messages", "replay", "ledger"].map((name) => ({
    title: `${name} as JSON Lines`, command: [name, "--json"], name: `${name}.jsonl`, type: "application/jsonl",
  })),
];

export function report(app: App, host: HTMLElement): View {
  clear(host,
    h("h2", {}, "Save what was found"),
    h("p", { class: "dim" }, "The files are made in this browser. A report names the addresses of the capture."),
    h("ul", { class: "saves" }, ...kinds.map((k) => h("li", {},
      h("button", { type: "button", click: () => void save(app, k) }, k.title)))));
  return { shown: () => undefined };
}

async function save(app: App, k: Kind): Promise<void> {
  const logs = k.command[0] === "report" || k.command[0] === "overview" ? app.files.logs() : [];
  const answer = await app.work(`${k.title}…`, app.commands.run(app.command(...k.command, ...logs)));
  if (!answer) return;
  if (answer.out.length === 0) {
    app.say(answer.complaints.trim() || "There is nothing to save.");
    return;
  }
  const url = URL.createObjectURL(new Blob([answer.out as BlobPart], { type: k.type }));
  const base = app.files.capture?.name.replace(/\.(pcapng|pcap|cap|gz|zst)/g, "") ?? "capture";
  const a = h("a", { href: url, download: `${base}-${k.name}` });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  app.say(`${base}-${k.name} was made.`);
}
