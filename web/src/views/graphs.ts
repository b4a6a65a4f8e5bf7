// The graphs of a flow, as `ackscope graph` draws them.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { text } from "../format";

const decoder = new TextDecoder();

const kinds: [string, string][] = [
  ["timeseq", "Time and sequence numbers"], ["rtt", "Round trips"], ["arrival", "Arrival of messages"],
  ["window", "Packets in flight, and loss"], ["bandwidth", "Bandwidth"], ["frames", "Frames of the game, by its log"],
];

export function graphs(app: App, host: HTMLElement): View {
  let drawn = "";
  const kind = h("select", { id: "graph-kind", change: () => void draw() },
    ...kinds.map(([value, title]) => h("option", { value }, title)));
  const flow = h("select", { id: "graph-flow", change: () => { app.flow = Number(flow.value); void draw(); } });
  const figure = h("figure", { class: "graph" });
  clear(host, h("div", { class: "filterbar" }, h("label", { for: "graph-kind" }, "Graph"), kind,
    h("label", { for: "graph-flow" }, "Flow"), flow), figure);
  const known = app.known().then((all) => {
    clear(flow, ...all.map((f) => h("option", { value: text(f["flow"]) }, `${text(f["flow"])} ${text(f["protocol"])}`)));
    return all;
  });

  async function draw(): Promise<void> {
    const all = await known;
    if (all.length === 0) {
      clear(figure, h("p", { class: "dim" }, "No flow of this capture has a graph."));
      return;
    }
    if (!all.some((f) => Number(f["flow"]) === app.flow)) app.flow = Number(all[0]?.["flow"]);
    flow.value = String(app.flow);
    const key = `${kind.value}/${app.flow}`;
    if (key === drawn) return;
    drawn = key;
    const logs = kind.value === "frames" ? app.files.logs() : [];
    const answer = await app.work("Drawing the graph…", app.commands.run(
      app.command("graph", "-k", kind.value, "--flow", String(app.flow), "-o", "-", ...logs)));
    if (!answer || key !== drawn) return;
    const svg = decoder.decode(answer.out);
    if (answer.code !== 0 || svg === "") {
      clear(figure, h("p", { class: "wrong" }, answer.complaints.trim()));
      return;
    }
    // In an image, no script of the drawing can run, and none is in it.
    const said = /<desc[^>]*>([^<]*)</.exec(svg)?.[1] ?? "";
    const title = kinds.find(([value]) => value === kind.value)?.[1] ?? "";
    clear(figure,
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${title}, flow ${app.flow}` },
        h("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, alt: `${title}, flow ${app.flow}` })),
      h("figcaption", {}, plain(said)),
      answer.complaints && h("p", { class: "dim" }, answer.complaints.trim()));
  }
  return { shown: () => void draw().catch((e: unknown) => app.fail(e)) };
}

const entities: Record<string, string> = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&#34;": '"', "&#39;": "'" };

function plain(xml: string): string {
  return xml.replace(/&(lt|gt|amp|#34|#39);/g, (e) => entities[e] ?? e);
}
