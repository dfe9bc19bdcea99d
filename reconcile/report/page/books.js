// The books of the run: a statement between any two ends, from the bridges. Nothing here touches the page.

const DATA = JSON.parse(document.getElementById("books").textContent);
const word = (place) => DATA.strings[place];
const layerName = (layer) => word(DATA.layers[layer]) || "(no layer)";
const causeName = (cause) => DATA.causes[cause][0];
const causeMeaning = (cause) => DATA.causes[cause][1];
const sum = (amounts) => amounts.reduce((total, amount) => total + amount, 0n);
const big = (value) => (value === null || value === undefined ? null : BigInt(value));

// Every name a statement can start or end with. `counter` is its place among the counters, -1 for a trace.
const ENDS = new Map([
  ...DATA.counters.map((c, counter) => [c.name, { name: c.name, framework: c.framework, counter }]),
  ...DATA.traces.map((t, trace) => [t.name, { name: t.name, framework: t.framework, counter: -1, trace }]),
]);
const traceOf = (framework) => DATA.traces.find((t) => t.framework === framework)?.name;

// One bridge (a counter to its trace, or trace to trace) with its amounts as integers; null where there is none.
const unpack = (held, counter) =>
  held && {
    counter,
    from: BigInt(held.from),
    to: BigInt(held.to),
    lines: held.cause.map((cause, i) => ({
      counter,
      cause,
      layer: held.layer[i],
      op: held.op[i],
      amount: BigInt(held.amount[i]),
      evidence: held.evidence[i],
    })),
    residuals: held.residuals.map(([layer, amount, reason]) => ({ counter, layer, reason, amount: BigInt(amount) })),
  };

const VIEWS = DATA.views.map((view) => ({
  convention: view.convention,
  weights: view.weights.map(BigInt),
  bridges: view.bridges.map((held, i) => unpack(held, DATA.counters[i].name)),
  between: view.between.map((held) => ({ ends: held.ends, ...unpack(held, "") })),
  open: new Map(view.open.map((row) => [`${row[0]}\n${row[1]}`, row])),
  work: view.work,
}));

// What one end adds up to under a view: a counter's normalised total, or the work of a trace; null if unknown.
function totalOf(view, name) {
  const end = ENDS.get(name);
  if (end.counter >= 0) return big(DATA.counters[end.counter].total);
  const beside = view.bridges.find((b, i) => b && DATA.counters[i].framework === end.framework);
  if (beside) return beside.to;
  const across = view.between.find((b) => b.ends.includes(end.trace));
  if (across) return across.ends[0] === end.trace ? across.from : across.to;
  const row = [...view.open.values()].find((r) => (r[0] === name && r[4] !== null) || (r[1] === name && r[5] !== null));
  return row ? big(row[0] === name ? row[4] : row[5]) : null;
}

// The bridges on the way from one end to the other; sign -1 is a bridge read from its end.
function route(view, from, to) {
  const [a, b] = [ENDS.get(from), ENDS.get(to)];
  const stops = [...new Set([from, traceOf(a.framework), traceOf(b.framework), to])];
  return stops.slice(1).map((stop, i) => {
    const [here, there] = [ENDS.get(stops[i]), ENDS.get(stop)];
    if (here.counter >= 0) return { bridge: view.bridges[here.counter], sign: 1n };
    if (there.counter >= 0) return { bridge: view.bridges[there.counter], sign: -1n };
    const bridge = view.between.find((b) => b.ends.includes(here.trace) && b.ends.includes(there.trace));
    return { bridge, sign: bridge.ends[0] === here.trace ? 1n : -1n };
  });
}

// Lines of one kind at one layer together, in the order of the layers; `lines` keep their sign in this statement.
function grouped(lines) {
  const parts = new Map();
  for (const line of lines) {
    if (!parts.has(line.layer)) parts.set(line.layer, { layer: line.layer, amount: 0n, lines: [] });
    const part = parts.get(line.layer);
    part.amount += line.amount;
    part.lines.push(line);
  }
  return [...parts.values()].sort((a, b) => a.layer - b.layer);
}

// from + steps + residual = to. Lines of one cause at one layer are netted, so that no two of them offset each other.
function statementBetween(view, from, to) {
  const held = view.open.get(`${from}\n${to}`);
  if (held) {
    const [, , state, reason, start, end] = held;
    return { from, to, state, reason: word(reason), fromTotal: big(start), toTotal: big(end), steps: null, residual: null };
  }
  const way = route(view, from, to);
  const byCause = new Map();
  const rest = [];
  for (const { bridge, sign } of way) {
    for (const line of bridge.lines) {
      if (!byCause.has(line.cause)) byCause.set(line.cause, []);
      byCause.get(line.cause).push({ ...line, amount: sign * line.amount });
    }
    for (const line of bridge.residuals) rest.push({ ...line, amount: sign * line.amount });
  }
  const steps = [...byCause.keys()]
    .sort((a, b) => a - b)
    .map((cause) => ({ cause, parts: grouped(byCause.get(cause)).filter((p) => way.length === 1 || p.amount) }))
    .filter((step) => step.parts.length)
    .map((step) => ({ ...step, amount: sum(step.parts.map((p) => p.amount)) }));
  const parts = grouped(rest);
  const residual = { amount: sum(parts.map((p) => p.amount)), parts };
  const [first, last] = [way[0], way[way.length - 1]];
  const fromTotal = first.sign > 0n ? first.bridge.from : first.bridge.to;
  const toTotal = last.sign > 0n ? last.bridge.to : last.bridge.from;
  const state = rest.length ? "unexplained" : steps.length ? "explained" : "equal";
  const foots = fromTotal + sum(steps.map((s) => s.amount)) + residual.amount === toTotal;
  return { from, to, state, reason: "", fromTotal, toTotal, steps, residual, foots };
}

// FLOPs of one op of a trace under a view's convention.
const flops = (view, op) => sum(DATA.ops.work[op].map((count, i) => view.weights[i] * BigInt(count)));

// What each counter says at each layer, normalised: [counter][layer] -> FLOPs.
const CELLS = DATA.counters.map((counter) => {
  const cells = new Array(DATA.layers.length).fill(0n);
  const scale = counter.unit === "MAC" ? 2n : 1n;
  counter.entries.value.forEach((value, i) => (cells[counter.entries.layer[i]] += scale * BigInt(value)));
  return cells;
});
