// The table of every line: what was reported, what ran, and every cause and residual in between.

const KINDS = { reported: "reported", cause: "cause", residual: "residual", ran: "ran" };

// All lines of a view. A counter's reported lines, causes and residual add up to the lines of what ran in its framework.
function allLines(view) {
  const lines = [];
  const add = (kind, layer, op, whose, what, amount, more) => lines.push({ kind, layer, op, whose, what, amount, ...more });
  DATA.counters.forEach((counter, c) => {
    const scale = counter.unit === "MAC" ? 2n : 1n;
    const { entries } = counter;
    entries.value.forEach((value, entry) =>
      add(KINDS.reported, entries.layer[entry], entries.op[entry], counter.name, "reported", scale * BigInt(value), { c, entry }),
    );
    const bridge = view.bridges[c];
    bridge?.lines.forEach((line) => add(KINDS.cause, line.layer, line.op, counter.name, causeName(line.cause), line.amount, { line }));
    bridge?.residuals.forEach((line) => add(KINDS.residual, line.layer, line.reason, counter.name, "residual", line.amount, { line }));
  });
  DATA.traces.forEach((trace) => {
    for (let op = trace.ops[0]; op < trace.ops[1]; op++) {
      add(KINDS.ran, DATA.ops.layer[op], DATA.ops.op[op], trace.name, "ran", flops(view, op), { ran: op });
    }
  });
  view.between.forEach((across) => {
    const whose = across.ends.map((trace) => DATA.traces[trace].name).join(" → ");
    across.lines.forEach((line) => add(KINDS.cause, line.layer, line.op, whose, causeName(line.cause), line.amount, { line }));
  });
  return lines;
}

const COLUMNS = {
  layer: (line) => line.layer,
  op: (line) => word(line.op),
  whose: (line) => ORDER_OF.get(line.whose) ?? ORDER_OF.size,
  what: (line) => WHAT_ORDER.get(line.what) ?? 0,
  amount: (line) => line.amount,
};
const ORDER_OF = new Map([...DATA.counters, ...DATA.traces].map((end, i) => [end.name, i]));
const WHAT_ORDER = new Map(["reported", ...DATA.causes.map(([cause]) => cause), "residual", "ran"].map((what, i) => [what, i]));
const TITLES = { layer: "layer", op: "op", whose: "counter", what: "line", amount: "FLOP" };
const CHOICES = {
  differences: ["differences", (line) => line.kind === KINDS.cause || line.kind === KINDS.residual],
  all: ["everything", () => true],
  reported: ["what was reported", (line) => line.kind === KINDS.reported],
  ran: ["what ran", (line) => line.kind === KINDS.ran],
};

class Lines {
  constructor(holder, showLine) {
    this.sort = { column: "layer", down: false };
    this.head = make("div", { class: "vrow head", role: "row" });
    for (const [column, title] of Object.entries(TITLES)) {
      const button = make("button", { type: "button", onclick: () => this.turn(column) }, title);
      this.head.append(make("span", { role: "columnheader", class: column, "data-column": column }, button));
    }
    this.rows = new Rows(holder, {
      role: "grid",
      labelledby: "lines-title",
      head: this.head,
      draw: (i) => this.row(this.shown[i]),
      act: (i) => showLine(this.shown[i]),
    });
    const filters = byId("filters");
    filters.addEventListener("submit", (event) => event.preventDefault());
    filters.addEventListener("input", () => this.filter());
    byId("whose").append(make("option", { value: "" }, "all"), ...[...ORDER_OF.keys()].map((end) => make("option", { value: end }, end)));
  }

  show(view) {
    this.view = view;
    this.lines = null; // made when they are needed
    this.kinds();
    this.filter();
  }

  // The choices of the third filter: kinds of line, then the causes that occur.
  kinds() {
    const select = byId("kind");
    const chosen = select.value;
    const found = new Set([...this.view.bridges, ...this.view.between].flatMap((b) => (b ? b.lines.map((line) => line.cause) : [])));
    const causes = [...found].sort((a, b) => a - b).map((cause) => make("option", {}, causeName(cause)));
    const kinds = Object.entries(CHOICES).map(([value, [title]]) => make("option", { value }, title));
    select.replaceChildren(...kinds, make("optgroup", { label: "one cause" }, ...causes, make("option", {}, "residual")));
    select.value = chosen || "differences";
    if (select.selectedIndex < 0) select.value = "differences";
  }

  // Lines whose layer or op contains the text; "in quotes" it is the whole name of a layer.
  filter() {
    this.lines ??= allLines(this.view);
    const typed = byId("find").value.trim().toLocaleLowerCase();
    const whole = /^"(.*)"$/.exec(typed)?.[1];
    const text = whole ?? typed;
    const whose = byId("whose").value;
    const chosen = byId("kind").value;
    const wanted = CHOICES[chosen]?.[1] ?? ((line) => line.what === chosen);
    const hits = new Map();
    const hit = (place) => {
      if (!hits.has(place)) hits.set(place, word(place).toLocaleLowerCase().includes(text));
      return hits.get(place);
    };
    const found =
      whole === undefined
        ? (line) => !text || hit(DATA.layers[line.layer]) || hit(line.op)
        : (line) => word(DATA.layers[line.layer]).toLocaleLowerCase() === whole;
    this.shown = this.lines.filter((line) => wanted(line) && (!whose || line.whose === whose) && found(line));
    this.order();
  }

  turn(column) {
    const down = this.sort.column === column ? !this.sort.down : column === "amount";
    this.sort = { column, down };
    this.order();
  }

  order() {
    const key = COLUMNS[this.sort.column];
    const sign = this.sort.down ? -1 : 1;
    const keyed = this.shown.map((line, i) => [key(line), i, line]);
    keyed.sort(([a, i], [b, j]) => (a < b ? -sign : a > b ? sign : i - j));
    this.shown = keyed.map(([, , line]) => line);
    for (const header of this.head.children) {
      const mine = header.dataset.column === this.sort.column;
      header.setAttribute("aria-sort", mine ? (this.sort.down ? "descending" : "ascending") : "none");
    }
    this.rows.view.scrollTop = 0;
    this.rows.show(this.shown.length);
    this.foot();
  }

  row(line) {
    const cells = [
      ["layer", name(layerName(line.layer), { title: layerName(line.layer) })],
      ["op", name(word(line.op), { title: word(line.op) })],
      ["whose", name(line.whose, { title: line.whose })],
      ["what", make("span", { class: `tag ${line.kind}` }, line.what)],
      ["amount", line.kind === KINDS.cause || line.kind === KINDS.residual ? signed(line.amount) : number(line.amount)],
    ];
    return make("div", { class: "aline" }, ...cells.map(([column, content]) => make("span", { role: "gridcell", class: column }, content)));
  }

  foot() {
    const parts = Object.values(KINDS)
      .map((kind) => [kind, this.shown.filter((line) => line.kind === kind)])
      // a sum over causes of several counters says nothing
      .filter(([kind, lines]) => lines.length && (kind !== KINDS.cause || new Set(lines.map((line) => line.whose)).size === 1))
      .map(([kind, lines]) => {
        const total = sum(lines.map((line) => line.amount));
        const text = kind === KINDS.reported || kind === KINDS.ran ? number(total) : signed(total);
        const label = { reported: "reported", cause: "causes", residual: "residual", ran: "ran" }[kind];
        return make("span", {}, `${label} `, make("b", { "data-sum": kind }, text));
      });
    byId("sums").replaceChildren(make("span", {}, plural(this.shown.length, "line")), ...parts);
  }
}
