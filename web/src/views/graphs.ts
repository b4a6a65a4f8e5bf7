// The graphs of a flow, as `ackscope graph` draws them.
import type { App, View } from "../app";
import { clear, h } from "../dom";
import { plain, text } from "../format";

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
  known.catch(() => undefined); // draw() says it

  async function draw(): Promise<void> {
    const all = await known;
    if (all.length === 0) {
      clear(figure, h("p", {}, "No flow of this capture is of a known protocol, so none has a graph. The view Flows says why."));
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
      clear(figure, h("p", { role: "alert" }, plain(answer.complaints)));
      return;
    }
    const title = kinds.find(([value]) => value === kind.value)?.[1] ?? "";
    const said = /<desc[^>]*>([^<]*)</.exec(svg)?.[1] ?? "";
    // In an image, no script of the drawing can run, and none is in it.
    clear(figure,
      h("div", { class: "panels" }, ...panels(svg).map((one) => h("img", {
        src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(one)}`,
        alt: `${title}, flow ${app.flow}: ${unescaped(/class="title"[^>]*>([^<]*)</.exec(one)?.[1] ?? "")}`,
      }))),
      h("figcaption", {}, unescaped(said)),
      answer.complaints && h("p", {}, plain(answer.complaints)));
  }
  return { shown: () => void draw().catch((e: unknown) => app.problem(figure, e)) };
}

// panels cuts a drawing into its plots, which stand below each other in it. So there can be several
// in a row where there is room.
function panels(svg: string): string[] {
  const at = [...svg.matchAll(/<g transform="translate\(0 (\d+)\)">/g)];
  const size = /viewBox="0 0 (\d+) (\d+)"/.exec(svg);
  if (at.length < 2 || !size) return [svg];
  const head = svg.slice(0, at[0]?.index);
  const height = Number(size[2]) / at.length;
  return at.map((g, i) => {
    const part = svg.slice(g.index, at[i + 1]?.index ?? svg.lastIndexOf("</svg>"));
    return head.replace(size[0], `viewBox="0 ${g[1] ?? "0"} ${size[1] ?? ""} ${height}"`)
      .replace(/<rect /, `<rect y="${g[1] ?? "0"}" `) + `${part}</svg>`;
  });
}

const entities: Record<string, string> = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&#34;": '"', "&#39;": "'" };

function unescaped(xml: string): string {
  return xml.replace(/&(lt|gt|amp|#34|#39);/g, (e) => entities[e] ?? e);
}
