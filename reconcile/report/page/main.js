// The page as a whole: what is chosen, where it is remembered, and who draws it.

const chosen = { from: null, to: null, convention: VIEWS[0].convention };
const viewNow = () => VIEWS.find((view) => view.convention === chosen.convention);

const showLayerNow = (layer) => showLayer(viewNow(), layer, filterTo);
const showLineNow = (line) => showLine(viewNow(), line, showLayerNow);
const tree = new Tree(byId("tree"), showLayerNow);
const lines = new Lines(byId("table"), (row) => showRow(viewNow(), row, showLayerNow));

function filterTo(layer) {
  byId("find").value = `"${word(DATA.layers[layer])}"`;
  lines.filter();
  goTo("lines");
}

function goTo(section) {
  const title = byId(`${section}-title`);
  title.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  title.focus({ preventScroll: true });
}

// The choice in the address: #from=thop&to=flop_counter&convention=all. Names that are not in this run are left alone.
function remembered() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const from = ENDS.has(asked.get("from")) ? asked.get("from") : DATA.ends?.[0];
  const to = ENDS.has(asked.get("to")) ? asked.get("to") : DATA.ends?.[1];
  const convention = VIEWS.some((v) => v.convention === asked.get("convention")) ? asked.get("convention") : VIEWS[0].convention;
  return { from, to, convention };
}

// Browsers take offence at an address that changes with every press of a held key.
let waiting = 0;
function rememberSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => history.replaceState(null, "", `#${new URLSearchParams(chosen)}`), 150);
}

function choose(wanted, remember = true) {
  const before = { ...chosen };
  Object.assign(chosen, wanted);
  if (chosen.from === chosen.to && before.from !== null) {
    if ("to" in wanted && wanted.to === before.from) chosen.from = before.to; // choosing the other end swaps them
    else if ("from" in wanted && wanted.from === before.to) chosen.to = before.from;
  }
  if (remember) rememberSoon();
  byId("from").value = chosen.from;
  byId("to").value = chosen.to;
  byId("convention").value = chosen.convention;
  drawStatement();
  if (chosen.convention !== before.convention || before.from === null) drawBooks();
}

function drawStatement() {
  const holder = byId("waterfall");
  if (!chosen.from || !chosen.to || chosen.from === chosen.to) {
    byId("reading").replaceChildren("There are no two ends to choose in this run.");
    return;
  }
  byId("statement-title").replaceChildren("From ", name(chosen.from), " to ", name(chosen.to));
  const statement = statementBetween(viewNow(), chosen.from, chosen.to);
  byId("reading").replaceChildren(...reading(statement));
  holder.replaceChildren(...waterfall(statement, showLineNow).filter(Boolean));
  byId("open-all").textContent = "Open every step";
}

function drawBooks() {
  for (const element of document.querySelectorAll("[data-convention]")) {
    element.hidden = element.dataset.convention !== chosen.convention;
  }
  tree.show(viewNow());
  lines.show(viewNow());
}

function ends() {
  const option = (end) => make("option", { value: end.name }, end.name);
  const group = (label, found) => (found.length ? [make("optgroup", { label }, ...found.map(option))] : []);
  const all = [...ENDS.values()];
  return [...group("counters", all.filter((e) => e.counter >= 0)), ...group("work that ran", all.filter((e) => e.counter < 0))];
}

function themes() {
  const button = byId("theme");
  const order = ["auto", "light", "dark"];
  const keep = (theme) => {
    try {
      localStorage.setItem("reconcile-theme", theme);
    } catch {
      // a page opened from a file may have no storage; the choice then lasts as long as the page
    }
  };
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.replaceChildren(make("span", { class: "wide" }, "Theme: "), theme);
    button.setAttribute("aria-label", `Theme: ${theme}`);
  };
  let held = null;
  try {
    held = localStorage.getItem("reconcile-theme");
  } catch {
    held = null;
  }
  set(order.includes(held) ? held : "auto");
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(document.documentElement.dataset.theme) + 1) % order.length];
    set(next);
    keep(next);
  });
}

function openEvery() {
  const closed = [...document.querySelectorAll("#waterfall > ol > .step > .opens[aria-expanded=false]")];
  const open = closed.length > 0;
  const buttons = open ? closed : document.querySelectorAll("#waterfall > ol > .step > .opens[aria-expanded=true]");
  buttons.forEach((button) => button.click());
  byId("open-all").textContent = open ? "Close every step" : "Open every step";
}

// On paper nothing opens: every step is open while it is printed, to its last line. A fold is printed as one line.
function printing() {
  let opened = [];
  addEventListener("beforeprint", () => {
    const closed = "#waterfall > ol > .step > .opens[aria-expanded=false], details:not([open]) > summary";
    opened = [...document.querySelectorAll(closed)];
    opened.forEach((button) => button.click());
    for (let rest; (rest = document.querySelector("#waterfall .inside:not([hidden]) .rest button")); ) rest.click();
  });
  addEventListener("afterprint", () => opened.splice(0).forEach((button) => button.click()));
}

function openPhases(button) {
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  button.closest("tbody").nextElementSibling.hidden = !open;
}

async function copy() {
  const code = byId("command");
  try {
    await navigator.clipboard.writeText(code.textContent);
    byId("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code); // where the clipboard is out of reach, what is selected can be copied
    byId("copy").textContent = "Selected";
  }
  setTimeout(() => (byId("copy").textContent = "Copy"), 2000);
}

function start() {
  themes();
  byId("from").append(...ends());
  byId("to").append(...ends());
  byId("ends").addEventListener("submit", (event) => event.preventDefault());
  byId("from").addEventListener("change", (event) => choose({ from: event.target.value }));
  byId("to").addEventListener("change", (event) => choose({ to: event.target.value }));
  byId("convention").addEventListener("change", (event) => choose({ convention: event.target.value }));
  byId("swap").addEventListener("click", () => choose({ from: chosen.to, to: chosen.from }));
  byId("open-all").addEventListener("click", openEvery);
  byId("open-layers").addEventListener("click", () => tree.all(true));
  byId("close-layers").addEventListener("click", () => tree.all(false));
  printing();
  document.querySelectorAll("#phases .opens").forEach((button) => button.addEventListener("click", () => openPhases(button)));
  byId("copy")?.addEventListener("click", copy);
  addEventListener("hashchange", () => choose(remembered(), false));
  for (const link of document.querySelectorAll(".bar nav a, .skip")) {
    link.addEventListener("click", (event) => {
      event.preventDefault(); // the address keeps the choice of ends, not the place on the page
      const section = link.getAttribute("href").slice(1);
      goTo(section === "main" ? "statement" : section);
    });
  }
  for (const button of document.querySelectorAll("button[data-counter]")) {
    button.addEventListener("click", () => {
      const end = button.dataset.counter;
      choose({ from: end, to: traceOf(ENDS.get(end).framework) ?? chosen.to });
      goTo("statement");
    });
  }
  choose(remembered(), false);
}

start();
performance.mark("ready");
