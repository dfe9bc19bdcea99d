// The layers as a tree, by the dots in their names (by underscores, where there are many layers and no dot), and for every
// counter a bar of heat: its value as a ratio to the work.

const DIGIT = 0.6; // rem that a digit takes at most, and one of an amount that shares its cell
const SMALL_DIGIT = 0.52;
const FEW = 20; // layers that need no tree

// Nodes {name, layers, children, depth}; a level that has one thing in it is not a level of its own.
function layerTree() {
  const root = { name: "", layer: -1, children: new Map() };
  const names = DATA.layers.map((_, layer) => layerName(layer));
  const mark = names.length > FEW && !names.some((text) => text.includes(".")) ? "_" : ".";
  names.forEach((text, layer) => {
    let node = root;
    const step = (key, part) => {
      if (!node.children.has(key)) node.children.set(key, { name: part, layer: -1, children: new Map() });
      return node.children.get(key);
    };
    const parts = text.split(mark);
    const last = parts.pop();
    for (const part of parts) node = step(part, part);
    const taken = node.children.get(last)?.layer >= 0; // another name that only looks the same
    step(taken ? `${last}\n${layer}` : last, last).layer = layer;
  });
  const settle = (node, depth) => {
    let children = [...node.children.values()];
    while (children.length === 1 && node.layer < 0 && depth > 0) {
      const [only] = children;
      node = { name: `${node.name}${mark}${only.name}`, layer: only.layer, children: only.children };
      children = [...only.children.values()];
    }
    const settled = children.map((child) => settle(child, depth + 1));
    const layers = settled.flatMap((child) => child.layers);
    if (node.layer >= 0) layers.unshift(node.layer);
    return { name: node.name, layer: node.layer, layers, children: settled, depth, open: false };
  };
  const roots = settle(root, 0).children;
  return names.length > SO_FEW ? foldNodes(roots, mark) : roots;
}

// What is shown of `view` at a node: work per trace (null if unknown), value and exactness per counter.
function sums(view, node) {
  const work = DATA.traces.map((_, t) => {
    const known = node.layers.map((layer) => (view.work[t].length > layer ? big(view.work[t][layer]) : 0n));
    return known.includes(null) ? null : sum(known);
  });
  const values = DATA.counters.map((_, c) => sum(node.layers.map((layer) => CELLS[c][layer])));
  return { work, values };
}

function heat(counter, value, work, touched) {
  if (DATA.counters[counter].total === null) return cell("none", "–", "no total");
  if (work === null) return cell("none", "?", `${number(value)}; the work that ran is not known`);
  if (!work && !value) return cell(touched ? "below" : "none", touched ? "0" : "", "0 of 0");
  const kind = value === work ? (touched ? "offset" : "exact") : value < work ? "below" : "above";
  const element = cell(kind, work ? ratio(value, work) : compact(value), `${number(value)} of ${number(work)} FLOP`);
  const share = work > 0n && value > 0n ? Number((value * 1000n) / work) / 10 : value > 0n ? 1000 : 0;
  const over = share > 100 ? 100 - 10000 / share : 0;
  const bars = [["fill", 0, Math.min(100, share)], ["over", 100 - over, over]].filter(([, , width]) => width);
  element.prepend(...bars.map(([part, left, width]) => place(make("span", { class: part, "aria-hidden": "true" }), left, width)));
  return element;
}

// The work in every trace: once where all have the same, otherwise with the name of each framework.
function amounts(work) {
  const texts = work.map((n) => (n === null ? "unknown" : number(n)));
  if (texts.every((t) => t === texts[0])) return texts.slice(0, 1);
  return texts.map((t, i) => `${DATA.traces[i].framework} ${t}`);
}

// The room for the largest amounts in rem, whether or not the traces differ in them: a number is shown whole.
function widest(whole) {
  const longest = Math.max(0, ...whole.map((n) => (n === null ? "unknown" : number(n)).length));
  const framework = Math.max(0, ...DATA.traces.map((t) => t.framework.length + 1));
  return Math.max(longest * DIGIT, (longest + framework) * SMALL_DIGIT);
}

// A name that may be broken behind its underscores.
const breakable = (text) => text.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]);

function cell(kind, text, title) {
  return make("span", { role: "gridcell", class: `heat ${kind}`, title, "aria-label": `${text} (${title})` }, make("span", { class: "text" }, text));
}

class Tree {
  constructor(holder, showLayer) {
    this.roots = layerTree();
    for (const node of this.roots) node.open = this.roots.length < 8 && !node.fold;
    this.showLayer = showLayer;
    const head = make("div", { class: "vrow head", role: "row" }, make("span", { role: "columnheader", class: "who" }, "layer"));
    head.append(make("span", { role: "columnheader", class: "work" }, "work that ran"));
    const cells = make("span", { class: "cells", role: "none" });
    for (const [c, { name: whose }] of DATA.counters.entries()) {
      const [family, variant] = whose.split("@");
      const short = variant ? [make("span", { class: "family" }, family), make("wbr"), `@${variant}`] : breakable(whose);
      cells.append(make("span", { role: "columnheader", title: whose, "data-counter": c }, ...short));
    }
    head.append(cells);
    holder.style.setProperty("--counters", Math.max(1, DATA.counters.length));
    this.rows = new Rows(holder, {
      role: "treegrid",
      labelledby: "layers-title",
      head,
      draw: (i) => this.row(this.flat[i]),
      act: (i, how, target) => this.act(i, how, target),
      key: (key, i) => this.key(key, i),
    });
  }

  show(view) {
    this.view = view;
    const touched = DATA.counters.map(() => new Set());
    view.bridges.forEach((bridge, c) => bridge && [...bridge.lines, ...bridge.residuals].forEach((l) => touched[c].add(l.layer)));
    this.touched = touched;
    this.whole = sums(view, { layers: DATA.layers.map((_, i) => i) }).work;
    this.rows.view.style.setProperty("--work", `max(9.5rem, ${widest(this.whole).toFixed(2)}rem)`);
    this.flatten(0);
  }

  flatten(active) {
    const flat = [];
    const visit = (nodes, parent) =>
      nodes.forEach((node, i) => {
        flat.push({ node, parent, at: i + 1, of: nodes.length });
        if (node.open) visit(node.children, flat.length - 1);
      });
    visit(this.roots, -1);
    this.flat = flat;
    this.rows.show(flat.length, active);
  }

  sums(node) {
    return (node.sums ??= new Map()).get(this.view) ?? node.sums.set(this.view, sums(this.view, node)).get(this.view);
  }

  row({ node, at, of }) {
    const { work, values } = this.sums(node);
    const shape = node.children.length ? (node.open ? "open" : "closed") : "leaf";
    const who = make("span", { role: "gridcell", class: "who" }, make("span", { class: `fold ${shape}`, "aria-hidden": "true" }), name(node.name, { title: node.name }));
    if (node.fold) who.append(make("small", {}, `${number(node.fold.length)} × ${amounts(this.sums(node.fold[0]).work).join(" / ")}`));
    else if (node.children.length) who.append(make("small", {}, number(node.layers.length)));
    who.style.setProperty("--depth", node.depth - 1);
    const cells = make("span", { class: "cells", role: "none" });
    DATA.counters.forEach((counter, c) => {
      const trace = DATA.traces.findIndex((t) => t.framework === counter.framework);
      const touched = node.layers.some((layer) => this.touched[c].has(layer));
      cells.append(heat(c, values[c], trace < 0 ? null : work[trace], touched));
    });
    const row = make("div", { class: "layer", "aria-level": node.depth, "aria-posinset": at, "aria-setsize": of }, who, this.work(work), cells);
    if (node.children.length) row.setAttribute("aria-expanded", String(node.open));
    return row;
  }

  // The work that ran, with its share of the whole; both where the two models differ.
  work(work) {
    const texts = amounts(work);
    const lines = texts.flatMap((text, i) => [...(i ? [make("span", { class: "slash" }, " / ")] : []), make("span", { class: "text" }, text)]);
    const element = make("span", { role: "gridcell", class: texts.length > 1 ? "work both" : "work", title: texts.join(" / ") }, ...lines);
    const [part, whole] = [work[0] ?? 0n, this.whole[0] ?? 0n];
    if (whole > 0n) element.prepend(place(make("span", { class: "fill", "aria-hidden": "true" }), 0, Number((part * 1000n) / whole) / 10));
    return element;
  }

  act(i, how, target) {
    const { node } = this.flat[i];
    const fold = how === " " || (how === "click" && target.closest(".fold"));
    if (node.children.length && (fold || node.layer < 0)) this.turn(i, !node.open);
    else if (node.layer >= 0) this.showLayer(node.layer);
  }

  turn(i, open) {
    this.flat[i].node.open = open;
    this.flatten(i);
  }

  key(key, i) {
    const { node, parent } = this.flat[i] ?? {};
    if (key === "ArrowRight" && node.children.length) node.open ? this.rows.go(i + 1) : this.turn(i, true);
    else if (key === "ArrowLeft" && node.open && node.children.length) this.turn(i, false);
    else if (key === "ArrowLeft" && parent >= 0) this.rows.go(parent);
    else return key === "ArrowRight" || key === "ArrowLeft";
    return true;
  }

  all(open) {
    const visit = (nodes) => nodes.forEach((node) => ((node.open = open && node.children.length > 0), visit(node.children)));
    visit(this.roots);
    this.flatten(0);
  }
}
