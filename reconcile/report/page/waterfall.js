// The statement as a waterfall: a bar per total, a step per cause; a step opens to its layers, a layer to its lines.

const MANY = 40; // what is shown of a long list at first, and at each "more"

function waterfall(statement, showLine) {
  const { fromTotal, toTotal, steps, residual } = statement;
  if (!steps) return blank(statement);
  const scale = scaleOf(statement);
  let running = fromTotal;
  const step = (label, amount, parts, kind, meaning) => {
    const start = running;
    running += amount;
    return stepRow({ label, amount, parts, kind, meaning, start, scale, showLine });
  };
  const list = make("ol", { class: "waterfall" }, totalRow(statement.from, fromTotal, scale));
  for (const { cause, amount, parts } of steps) {
    list.append(step(causeName(cause), amount, parts, "cause", causeMeaning(cause)));
  }
  list.append(step("residual", residual.amount, residual.parts, "residual", "What no named cause explains."));
  list.append(totalRow(statement.to, toTotal, scale));
  const broken = statement.foots ? null : make("p", { class: "trouble" }, "These lines do not add up: this is a defect of the page.");
  return [axis(scale), list, broken];
}

function blank({ from, to, fromTotal, toTotal }) {
  const total = (n) => (n === null ? "no total" : number(n));
  const rows = [[from, fromTotal], [to, toTotal]].map(([end, n]) =>
    totalItem(make("span", { class: "name" }, name(end)), make("span", { class: "track more" }), make("span", { class: "amount" }, total(n))),
  );
  return [make("ol", { class: "waterfall" }, ...rows)];
}

// One sentence for those who do not look at bars.
function reading({ from, to, fromTotal, toTotal, state, reason, steps, residual }) {
  if (!steps) return [make("b", { class: "bad" }, words(state)), `: ${reason || "no reason was given"}`];
  const off = toTotal - fromTotal;
  const largest = [...steps].sort((a, b) => (a.amount < 0n ? -a.amount : a.amount) < (b.amount < 0n ? -b.amount : b.amount) ? 1 : -1)[0];
  const chip = make("span", { class: `chip ${state}` }, words(state));
  const between = off === 0n ? "the same total" : `${signed(off)} FLOP`;
  const because = largest ? `, most of it ${causeName(largest.cause)} (${signed(largest.amount)})` : "";
  return [chip, " From ", name(from), " to ", name(to), `: ${between}${because}; residual ${signed(residual.amount)}.`];
}

// The stretch of the axis that is drawn: from 0, unless everything happens in its last quarter.
function scaleOf({ fromTotal, steps, residual }) {
  const [low, high] = extent(fromTotal, [...steps, residual]);
  const reach = high - low;
  const near = low > 0n && reach > 0n && reach * 4n < high;
  return stretch(near ? low - reach / 3n : low < 0n ? low : 0n, high, near);
}

// The lowest and the highest that a total gets on its way.
function extent(start, amounts) {
  let [running, low, high] = [start, start, start];
  for (const { amount } of amounts) {
    running += amount;
    if (running < low) low = running;
    if (running > high) high = running;
  }
  return [low, high];
}

function stretch(base, high, cut) {
  const span = Number(high - base) || 1;
  return { base, high, cut, span, at: (n) => (Number(n - base) / span) * 100 };
}

// A step too short to show its parts has them drawn on a scale of their own.
function closer(start, parts, scale) {
  const [low, high] = extent(start, parts);
  const reach = Number(high - low);
  return parts.length > 1 && reach && reach * 12 < scale.span ? stretch(low, high, true) : scale;
}

function axis({ base, high, cut }) {
  const note = cut ? make("span", { class: "cut" }, "the bars do not start at 0") : null;
  const ends = make("span", { class: "ticks" }, make("span", {}, number(base)), note, make("span", {}, number(high)));
  return make("div", { class: "row axis", "aria-hidden": "true" }, make("span", { class: "name" }), ends, make("span", { class: "amount" }, "FLOP"));
}

function bar(start, end, kind, scale) {
  const [a, b] = [scale.at(start), scale.at(end)];
  const fill = place(make("span", { class: `fill ${kind}` }), Math.min(a, b), Math.abs(b - a));
  return make("span", { class: "track", "aria-hidden": "true" }, fill);
}

function totalRow(label, total, scale) {
  const kind = scale.cut ? "whole cut" : "whole";
  return totalItem(
    make("span", { class: "name" }, name(label)),
    bar(scale.base < 0n ? 0n : scale.base, total, kind, scale),
    make("span", { class: "amount" }, number(total)),
  );
}

const totalItem = (...contents) => make("li", { class: "total" }, make("span", { class: "row" }, ...contents));

const direction = (amount) => (amount > 0n ? "up" : amount < 0n ? "down" : "none");

function stepRow({ label, amount, parts, kind, meaning, start, scale, showLine }) {
  const contents = [
    make("span", { class: "name" }, label),
    bar(start, start + amount, `${direction(amount)} ${kind}`, scale),
    make("span", { class: "amount" }, signed(amount)),
  ];
  const attributes = { class: `step ${kind}${kind === "residual" && parts.length ? " left" : ""}`, "data-step": label };
  if (!parts.length) return make("li", attributes, make("span", { class: "row" }, ...contents));
  return foldable(attributes, contents, () => {
    const own = closer(start, parts, scale);
    const note = own === scale ? "" : ` (These bars are drawn ${number(Math.round(scale.span / own.span))} times as long.)`;
    return [make("p", { class: "meaning" }, meaning, note), partList(parts, start, own, kind, showLine)];
  });
}

// A button and what it opens, made when it is opened first.
function foldable(attributes, contents, inside) {
  const button = make("button", { type: "button", class: "row opens", "aria-expanded": "false" }, ...contents);
  const item = make("li", attributes, button);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", String(open));
    if (item.children.length === 1) item.append(make("div", { class: "inside" }, ...inside()));
    item.lastElementChild.hidden = !open;
  });
  return item;
}

function partList(parts, start, scale, kind, showLine) {
  let running = start;
  const looks = (part) => part.lines.map((line) => [line.counter, line.cause, word(line.op ?? line.reason), String(line.amount)]);
  const groups = parts.length > SO_FEW
    ? folded(parts, (part) => layerName(part.layer), looks)
    : parts.map((part) => ({ items: [part] }));
  const rows = groups.map(({ name: title, items }) => {
    const from = running;
    running += sum(items.map((part) => part.amount));
    if (items.length === 1) return () => partRow(items[0], from, scale, kind, showLine);
    return () => foldRow(title, items, from, scale, kind, showLine);
  });
  return longList(rows, (shown) => sum(groups.slice(shown).flatMap(({ items }) => items.map((p) => p.amount))), "layer");
}

// Layers that are alike: how many, the amount of one and of all; opens to each of them.
function foldRow(title, parts, start, scale, kind, showLine) {
  const amount = BigInt(parts.length) * parts[0].amount;
  const contents = [
    make("span", { class: "name" }, name(title), make("small", {}, `${number(parts.length)} × ${signed(parts[0].amount)}`)),
    bar(start, start + amount, `${direction(amount)} ${kind}`, scale),
    make("span", { class: "amount" }, signed(amount)),
  ];
  return foldable({ class: "part folded" }, contents, () => {
    let running = start;
    const rows = parts.map((part) => {
      const from = running;
      running += part.amount;
      return () => partRow(part, from, scale, kind, showLine);
    });
    return [longList(rows, (shown) => BigInt(parts.length - shown) * parts[0].amount, "layer")];
  });
}

function partRow(part, start, scale, kind, showLine) {
  const contents = [
    make("span", { class: "name" }, name(layerName(part.layer))),
    bar(start, start + part.amount, `${direction(part.amount)} ${kind}`, scale),
    make("span", { class: "amount" }, signed(part.amount)),
  ];
  return foldable({ class: "part", "data-layer": part.layer }, contents, () => {
    const rows = part.lines.map((line) => () => lineRow(line, showLine));
    return [longList(rows, (shown) => sum(part.lines.slice(shown).map((l) => l.amount)), "line")];
  });
}

function lineRow(line, showLine) {
  const whose = line.counter || "between the two traces";
  const what = line.reason === undefined ? word(line.op) : word(line.reason);
  return make(
    "li",
    { class: "line" },
    make(
      "button",
      { type: "button", class: "row", "aria-haspopup": "dialog", onclick: () => showLine(line) },
      make("span", { class: "name" }, name(what), make("small", {}, name(whose))),
      make("span", { class: "track more" }, line.evidence ? plural(line.evidence.length, "item") + " of evidence" : "what is known of it"),
      make("span", { class: "amount" }, signed(line.amount)),
    ),
  );
}

// A list that shows its first rows, and says what the others add up to.
function longList(rows, sumAfter, what) {
  const list = make("ol", { class: "nested" });
  let shown = 0;
  const more = () => {
    const next = shown ? shown + 5 * MANY : MANY;
    list.append(...rows.slice(shown, next).map((row) => row()));
    shown = Math.min(next, rows.length);
    if (shown === rows.length) return;
    const left = rows.length - shown;
    const button = make(
      "button",
      { type: "button", class: "row more" },
      make("span", { class: "name" }, `${plural(left, `more ${what}`)}`),
      make("span", { class: "track more" }, `show the next ${number(Math.min(5 * MANY, left))}`),
      make("span", { class: "amount" }, signed(sumAfter(shown))),
    );
    const item = make("li", { class: "rest" }, button);
    button.addEventListener("click", () => {
      const before = list.children.length - 1;
      item.remove();
      more();
      list.children[before].querySelector("button")?.focus();
    });
    list.append(item);
  };
  more();
  return list;
}
