// What stands behind a line or a layer, in a dialog: the op as the counter saw it, its shapes and calls, the rule, what ran.

const detail = byId("detail");

function openDetail(title, ...content) {
  const close = make("button", { type: "button", class: "quiet close", "aria-label": "Close", onclick: () => detail.close() }, "✕");
  detail.replaceChildren(make("div", { class: "top" }, make("h2", { id: "detail-title", tabindex: "-1" }, ...title), close), ...content);
  if (!detail.open) detail.showModal();
  detail.scrollTop = 0;
  byId("detail-title").focus();
}
detail.addEventListener("click", (event) => event.target === detail && detail.close());

const facts = (pairs) =>
  make(
    "dl",
    { class: "facts" },
    ...pairs
      .filter(([, value]) => value !== "" && value !== null)
      .map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, typeof value === "string" ? name(value) : value))),
  );

// A line of a bridge: cause, amount and the evidence behind it.
function showLine(view, line, showLayer) {
  const layer = make("button", { type: "button", class: "link", onclick: () => showLayer(line.layer) }, layerName(line.layer));
  if (line.reason !== undefined) {
    openDetail(["residual"], facts([["layer", layer], ["counter", line.counter], ["amount", `${signed(line.amount)} FLOP`], ["why", word(line.reason)]]));
    return;
  }
  const rows = line.evidence.map((id) => () => evidence(DATA.evidence[id]));
  openDetail(
    [causeName(line.cause)],
    make("p", {}, causeMeaning(line.cause)),
    facts([
      ["amount", `${signed(line.amount)} FLOP under ${view.convention}`],
      ["layer", layer],
      ["op", word(line.op)],
      ["counter", line.counter || "between the two traces: a real difference"],
    ]),
    make("h3", {}, plural(line.evidence.length, "item") + " of evidence"),
    paged(rows),
  );
}

function evidence([ground, seenTimes, times, seen, refs]) {
  const [counter, rule, source, formula, repeat, only] = DATA.grounds[ground];
  const between = !word(counter);
  const counted = between ? null : `${number(BigInt(seenTimes))} × counted, ${number(BigInt(times))} × ran`;
  return make(
    "li",
    { class: "proof" },
    ...seen.map((place) => sighting(DATA.seen[place])),
    facts([
      ["rule", word(rule)],
      ["where it stands", word(source)],
      [between ? "what differs" : word(rule) ? "formula" : "why", word(formula)],
      ["how often", counted],
      ["booked as", repeat === null ? "" : causeName(repeat)],
      ["only these components", word(only)],
    ]),
    refs.length ? make("p", { class: "small" }, "What ran:") : null,
    refs.length ? paged(refs.map((ref) => () => make("li", { class: "op" }, ...(typeof ref === "string" ? [name(ref)] : ran(ref))))) : null,
  );
}

function sighting([op, id, inputs, outputs, attrs, calls]) {
  const times = calls === 1 ? "" : ` × ${number(BigInt(calls))} calls`;
  return make(
    "div",
    { class: "sighting" },
    make("p", {}, "The counter saw ", make("b", {}, name(word(op))), " ", name(word(id), { class: "id" }), times),
    shapes(inputs, outputs),
    word(attrs) ? make("p", { class: "attrs" }, name(word(attrs))) : null,
  );
}

const shapes = (inputs, outputs) => make("p", { class: "shapes" }, name(word(inputs) || "no tensor"), " → ", name(word(outputs) || "no tensor"));

function ran(op) {
  const { id, op: kind, in: inputs, out: outputs, calls, phase, work } = DATA.ops;
  const trace = DATA.traces.find((t) => t.ops[0] <= op && op < t.ops[1]);
  const parts = DATA.components.map((component, i) => [component, BigInt(work[op][i])]).filter(([, count]) => count);
  return [
    make("p", {}, make("b", {}, name(word(kind[op]))), " ", name(word(id[op]), { class: "id" }), ` in ${trace.name}, ${number(BigInt(calls[op]))} × ${word(phase[op])}`),
    shapes(inputs[op], outputs[op]),
    make("p", { class: "attrs" }, parts.map(([component, count]) => `${component} ${number(count)}`).join(", ") || "no arithmetic"),
  ];
}

function paged(rows) {
  const list = make("ol", { class: "proofs" });
  let shown = 0;
  const more = () => {
    list.append(...rows.slice(shown, shown + MANY).map((row) => row()));
    shown = Math.min(shown + MANY, rows.length);
    if (shown === rows.length) return;
    const button = make("button", { type: "button", class: "quiet" }, `${plural(rows.length - shown, "more item")}`);
    const item = make("li", {}, button);
    button.addEventListener("click", () => (item.remove(), more()));
    list.append(item);
  };
  more();
  return list;
}

// A row of the table.
function showRow(view, row, showLayer) {
  if (row.line) return showLine(view, row.line, showLayer);
  const layer = make("button", { type: "button", class: "link", onclick: () => showLayer(row.layer) }, layerName(row.layer));
  if (row.ran !== undefined) {
    const path = word(DATA.ops.path[row.ran]);
    return openDetail(
      ["What ran"],
      ...ran(row.ran),
      facts([["layer", layer], ["path in the model", path], ["work", `${number(row.amount)} FLOP under ${view.convention}`]]),
    );
  }
  const { entries, unit } = DATA.counters[row.c];
  return openDetail(
    ["What the counter reported"],
    facts([
      ["counter", row.whose],
      ["layer", layer],
      ["op", word(row.op)],
      ["entry", word(entries.id[row.entry])],
      ["reported", `${number(BigInt(entries.value[row.entry]))} ${unit}`],
      ["normalised", `${number(row.amount)} FLOP`],
      ["calls", number(BigInt(entries.calls[row.entry]))],
    ]),
  );
}

// The books of one layer: for every counter its value, its causes and residual, and the work they lead to.
function showLayer(view, layer, filterTo) {
  const blocks = DATA.counters.map((counter, c) => {
    const bridge = view.bridges[c];
    if (counter.total === null) return null;
    const mine = (lines) => lines.filter((line) => line.layer === layer);
    const lines = bridge ? mine(bridge.lines) : [];
    const rest = bridge ? mine(bridge.residuals) : [];
    const value = CELLS[c][layer];
    const row = (label, amount, attributes = {}) =>
      make("tr", attributes, make("th", { scope: "row" }, label), make("td", { class: "n" }, amount));
    const work = value + sum([...lines, ...rest].map((line) => line.amount));
    const again = (line) => make("button", { type: "button", class: "link", onclick: () => showLine(view, line, (l) => showLayer(view, l, filterTo)) }, causeName(line.cause));
    return make(
      "table",
      { class: "books" },
      make("caption", {}, counter.name),
      make(
        "tbody",
        {},
        row("says", number(value)),
        ...lines.map((line) => row(make("span", {}, again(line), " ", make("small", {}, name(word(line.op)))), signed(line.amount))),
        ...rest.map((line) => row(make("span", {}, "residual ", make("small", {}, name(word(line.reason)))), signed(line.amount))),
        bridge ? row("work that ran", number(work), { class: "ran" }) : null,
      ),
    );
  });
  openDetail(
    [name(layerName(layer))],
    make("div", { class: "bookshelf" }, ...blocks.filter(Boolean)),
    make("button", { type: "button", class: "quiet", onclick: () => (detail.close(), filterTo(layer)) }, "Show its lines in the table"),
  );
}
