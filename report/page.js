// Zoom and hover for the graphs. Without it the page shows them whole, as they were drawn beforehand.
(() => {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const make = (name, attributes, parent, text) => {
    const e = document.createElementNS(NS, name);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    if (parent) parent.append(e);
    return e;
  };
  const format = (v) => {
    const a = Math.abs(v);
    if (a >= 1e9) return Math.round(v / 1e8) / 10 + "G";
    if (a >= 1e6) return Math.round(v / 1e5) / 10 + "M";
    if (a >= 1e4) return Math.round(v / 1e2) / 10 + "k";
    return String(a < 0.1 ? Math.round(v * 1e4) / 1e4 : Math.round(v * 100) / 100);
  };
  const stepOf = (low, high, about) => {
    const step = Math.pow(10, Math.floor(Math.log10((high - low) / about)));
    for (const m of [1, 2, 5, 10]) if ((high - low) / (step * m) <= about) return step * m;
    return step * 10;
  };
  const ticks = (low, high, about) => {
    if (!(high > low)) return [];
    const step = stepOf(low, high, about), out = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(i * step);
    return out;
  };
  // unpack makes columns of the steps between them.
  const unpack = (d) => {
    for (const t of d.traces) {
      let x = 0, frame = 0;
      t.points = t.x.map((step, i) => {
        x += step;
        if (t.frame) frame += t.frame[i];
        const high = t.high[i];
        return { x, high, low: t.low ? high - t.low[i] : high, last: t.last ? t.last[i] : high, n: t.n ? t.n[i] : 1, frame: frame };
      });
    }
    return d;
  };
  const PLOT = 170, TOP = 48, BOTTOM = 26, LEFT = 54, RIGHT = 10;

  const filled = (t) => t.shape === "area" || t.shape === "band" || t.shape === "shade";

  class Graph {
    constructor(figure, group) {
      this.figure = figure;
      this.group = group;
      this.data = unpack(JSON.parse(figure.querySelector("script").textContent));
      this.first = figure.querySelector("svg");
      this.svg = null;
      this.tip = null;
      this.drag = null;
    }
    value(v) { return this.data.unit === "%" ? format(100 * v) + "%" : format(v); }
    seconds(column) { return column / this.data.columns * this.data.span; }
    // range gives the columns that are shown.
    range() { return [this.group.from * this.data.columns, this.group.to * this.data.columns]; }
    draw() {
      const d = this.data, width = Math.max(this.figure.clientWidth, 240);
      const [from, to] = this.range();
      const svg = make("svg", { class: "plot live", viewBox: `0 0 ${width} ${TOP + PLOT + BOTTOM}`, role: "img", "aria-labelledby": this.first.getAttribute("aria-labelledby") });
      for (const name of ["title", "desc"]) svg.append(this.first.querySelector(name).cloneNode(true));
      let low = d.zero ? 0 : Infinity, high = -Infinity;
      for (const t of d.traces) if (t.shape !== "shade") for (const p of t.points) if (p.x + 1 >= from && p.x <= to) { low = Math.min(low, p.low); high = Math.max(high, p.high); }
      if (!(high > -Infinity)) { low = 0; high = 1; }
      if (high <= low) high = low + 1;
      // The axis ends at ticks that enclose the data.
      const step = d.whole ? Math.ceil(stepOf(low, high, 4)) : stepOf(low, high, 4);
      low = Math.floor(low / step + 1e-9) * step;
      high = Math.ceil(high / step - 1e-9) * step;
      const x = this.x = (column) => LEFT + (column - from) / (to - from) * (width - LEFT - RIGHT);
      const y = (v) => TOP + PLOT - (v - low) / (high - low) * PLOT;
      this.width = width;
      const unit = d.unit && d.unit !== "%" ? ", " + d.unit : "";
      make("text", { class: "title", x: 2, y: 15 }, svg, d.title + unit);
      let at = 2;
      for (const t of d.traces) {
        if (t.shape === "marks") make("text", { class: "sign " + t.class, x: at + 7, y: 36 }, svg, t.sign);
        else if (filled(t)) make("path", { class: `t ${t.shape} ${t.class}`, d: `M${at} 27h14v10h-14z` }, svg);
        else if (t.shape === "bars") make("path", { class: "t " + t.class, d: `M${at + 2} 37v-8m5 5v-8m5 5v-8` }, svg);
        else if (t.shape === "line") make("path", { class: "t " + t.class, d: `M${at} 32h14` }, svg);
        else make("path", { class: "t " + t.class, d: `M${at} 35h5v-3h5v-4h4` }, svg);
        const label = make("text", { class: "legend", x: at + 18, y: 36 }, svg, t.name);
        at += 18 + 6.4 * t.name.length + 16;
        void label;
      }
      for (let v = low; v <= high + step * 1e-9; v += step) {
        make("path", { class: "grid", d: `M${LEFT} ${y(v).toFixed(1)}H${width - RIGHT}` }, svg);
        make("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, svg, this.value(v));
      }
      const s0 = this.seconds(from), s1 = this.seconds(to);
      for (const v of ticks(s0, s1, Math.max(2, Math.floor(width / 90)))) {
        const px = x(v / d.span * d.columns);
        make("path", { class: "axis", d: `M${px.toFixed(1)} ${TOP + PLOT}v4` }, svg);
        if (px < width - 16) make("text", { x: px, y: TOP + PLOT + 19, "text-anchor": "middle" }, svg, format(v) + " s");
      }
      make("path", { class: "axis", d: `M${LEFT} ${TOP + PLOT}H${width - RIGHT}` }, svg);
      const clip = "clip-" + this.figure.id;
      make("rect", { x: LEFT, y: TOP - 8, width: width - LEFT - RIGHT, height: PLOT + 16 }, make("clipPath", { id: clip }, make("defs", {}, svg)));
      const inner = make("g", { "clip-path": `url(#${clip})` }, svg);
      for (const t of d.traces) this.trace(inner, t, x, y, from, to);
      this.cursor = make("path", { class: "cursor", d: "" }, svg);
      this.select = make("rect", { class: "select", y: TOP, height: PLOT, width: 0 }, svg);
      (this.svg || this.first).replaceWith(svg);
      this.svg = svg;
    }
    trace(parent, t, x, y, from, to) {
      // A point beyond each end, so that lines run out of the picture.
      let a = t.points.findIndex((p) => p.x >= from - 1), b = t.points.findIndex((p) => p.x > to + 1);
      if (a < 0) a = t.points.length;
      if (b < 0) b = t.points.length;
      const points = t.points.slice(Math.max(0, a - 1), b + 1);
      const c = (v) => v.toFixed(1), mid = (p) => x(p.x + 0.5);
      if (t.shape === "marks") {
        for (const p of points) make("text", { class: "sign " + t.class, x: c(mid(p)), y: c(y(p.high) + 4) }, parent, t.sign);
        return;
      }
      let d = "";
      points.forEach((p, i) => {
        const px = c(mid(p));
        switch (t.shape) {
          case "bars": {
            let y0 = y(p.low), y1 = y(p.high);
            if (y0 - y1 < 3.6) { const m = (y0 + y1) / 2; y0 = m + 1.8; y1 = m - 1.8; }
            d += `M${px} ${c(y0)}V${c(y1)}`;
            break;
          }
          case "steps":
            d += i ? `H${px}V${c(y(p.high))}` : `M${px} ${c(y(p.high))}`;
            break;
          case "levels":
            d += (i ? `H${px}` : `M${px} ${c(y(p.low))}`) + `V${c(y(p.low))}V${c(y(p.high))}V${c(y(p.last))}`;
            break;
          case "line":
            d += (i ? "L" : "M") + px + " " + c(y((p.low + p.high) / 2));
            break;
          case "band":
          case "shade": {
            let y0 = y(p.low), y1 = y(p.high);
            if (t.shape === "shade") { y0 = TOP + PLOT; y1 = TOP; }
            else if (y0 - y1 < 1.6) { const m = (y0 + y1) / 2; y0 = m + 0.8; y1 = m - 0.8; }
            d += `M${c(x(p.x))} ${c(y0)}H${c(x(p.x + 1))}V${c(y1)}H${c(x(p.x))}Z`;
            break;
          }
          case "area":
            d += (i ? "L" : "M") + px + " " + c(y(p.high));
        }
      });
      if (t.shape === "area") {
        for (let i = points.length - 1; i >= 0; i--) d += "L" + c(mid(points[i])) + " " + c(y(points[i].low));
        d += "Z";
      }
      make("path", { class: (filled(t) ? `t ${t.shape} ` : "t ") + t.class, d }, parent);
    }
    column(event) {
      const box = this.svg.getBoundingClientRect();
      const px = (event.clientX - box.left) / box.width * this.width;
      const [from, to] = this.range();
      return Math.min(Math.max(from + (px - LEFT) / (this.width - LEFT - RIGHT) * (to - from), from), to);
    }
    point(share, tell) {
      const column = share * this.data.columns, px = this.x(column).toFixed(1);
      this.cursor.setAttribute("d", `M${px} ${TOP}V${TOP + PLOT}`);
      if (!tell) return;
      const lines = [[`${format(this.seconds(column))} s`]];
      const [from, to] = this.range(), near = Math.max(1, (to - from) / 120);
      for (const t of this.data.traces) {
        let best = null;
        for (const p of t.points) {
          if (p.x > column + near) break;
          const line = t.shape === "steps" || t.shape === "levels" || t.shape === "line";
          if ((line && p.x <= column) || Math.abs(p.x + 0.5 - column) <= near) if (!best || line || Math.abs(p.x + 0.5 - column) < Math.abs(best.x + 0.5 - column)) best = p;
        }
        if (!best) continue;
        let text = t.shape === "area" ? this.value(best.high - best.low) : best.low !== best.high ? `${this.value(best.low)} to ${this.value(best.high)}` : this.value(best.high);
        if (this.data.unit && this.data.unit !== "%") text += " " + this.data.unit;
        if (t.bare) text = "";
        if (best.n > 1) text += ` (${best.n})`;
        if (best.frame && Math.abs(best.x + 0.5 - column) <= near) text += `, frame ${best.frame}`;
        lines.push([t.bare ? t.name + text : t.name + ": " + text]);
      }
      if (!this.tip) { this.tip = document.createElement("div"); this.tip.className = "tip"; this.figure.append(this.tip); }
      this.tip.replaceChildren(...lines.map((l) => { const e = document.createElement("div"); e.textContent = l[0]; return e; }));
      const scale = this.figure.clientWidth / this.width, left = this.x(column) * scale;
      this.tip.style.top = TOP + "px";
      this.tip.style.left = left > this.figure.clientWidth / 2 ? "" : left + 12 + "px";
      this.tip.style.right = left > this.figure.clientWidth / 2 ? this.figure.clientWidth - left + 12 + "px" : "";
    }
    leave() {
      this.cursor.setAttribute("d", "");
      if (this.tip) { this.tip.remove(); this.tip = null; }
    }
    listen() {
      const f = this.figure, start = (e) => {
        if (e.button !== 0) return;
        this.drag = this.column(e) / this.data.columns;
        f.setPointerCapture(e.pointerId);
      };
      f.addEventListener("pointerdown", start);
      f.addEventListener("pointermove", (e) => {
        const share = this.column(e) / this.data.columns;
        for (const g of this.group.graphs) if (g.svg) g.point(share, g === this);
        if (this.drag === null) return;
        const a = this.x(Math.min(this.drag, share) * this.data.columns), b = this.x(Math.max(this.drag, share) * this.data.columns);
        this.select.setAttribute("x", a);
        this.select.setAttribute("width", Math.max(b - a, 0));
      });
      f.addEventListener("pointerup", (e) => {
        const share = this.column(e) / this.data.columns, begun = this.drag;
        this.drag = null;
        this.select.setAttribute("width", 0);
        if (begun !== null && Math.abs(share - begun) > (this.group.to - this.group.from) / 100) this.group.show(Math.min(begun, share), Math.max(begun, share));
      });
      f.addEventListener("pointercancel", () => { this.drag = null; this.select.setAttribute("width", 0); });
      f.addEventListener("pointerleave", () => { if (this.drag === null) for (const g of this.group.graphs) if (g.svg) g.leave(); });
      f.addEventListener("dblclick", () => this.group.show(0, 1));
    }
  }

  // Group is the graphs of one flow: they show the same time.
  class Group {
    constructor(element) {
      this.from = 0;
      this.to = 1;
      this.graphs = [...element.querySelectorAll("figure.graph")].map((f) => new Graph(f, this));
      for (const g of this.graphs) g.listen();
      const tools = element.querySelector(".tools");
      tools.hidden = false;
      tools.addEventListener("click", (e) => {
        const span = this.to - this.from, mid = (this.from + this.to) / 2;
        switch (e.target.dataset.do) {
          case "in": this.show(mid - span / 4, mid + span / 4); break;
          case "out": this.show(mid - span, mid + span); break;
          case "left": this.show(this.from - span / 2, this.to - span / 2); break;
          case "right": this.show(this.from + span / 2, this.to + span / 2); break;
          case "all": this.show(0, 1);
        }
      });
      this.update();
    }
    // update draws what is near the window and does not show the present time yet.
    update() {
      for (const g of this.graphs) {
        const box = g.figure.getBoundingClientRect(), as = `${this.from} ${this.to} ${g.figure.clientWidth}`;
        if (box.bottom < -300 || box.top > innerHeight + 300 || g.drawn === as) continue;
        g.drawn = as;
        g.draw();
      }
    }
    show(from, to) {
      const least = 16 / this.graphs[0].data.columns, span = Math.min(Math.max(to - from, least), 1);
      let start = to - from < least ? (from + to - span) / 2 : from;
      start = Math.min(Math.max(start, 0), 1 - span);
      this.from = start;
      this.to = start + span;
      this.update();
    }
  }
  // On narrow screens the cells of a row stand below each other, each with its column's head.
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("thead th")].map((th) => th.textContent);
    if (heads.length < 4) continue;
    table.classList.add("told");
    for (const row of table.querySelectorAll("tbody tr"))
      [...row.cells].forEach((cell, i) => { if (heads[i]) cell.dataset.head = heads[i]; });
  }
  const groups = [...document.querySelectorAll(".graphs")].map((e) => new Group(e));
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; groups.forEach((g) => g.update()); });
  };
  addEventListener("resize", later);
  addEventListener("scroll", later, { passive: true });
  addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details:not(.long)")) d.open = true; });
})();
