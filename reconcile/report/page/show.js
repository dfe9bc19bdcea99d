// Making elements. Names that nobody chose for us enter the page as text, here and nowhere else.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const SHORT = 6; // characters
const byId = (id) => document.getElementById(id);
const name = (text, attributes = {}) => make("bdi", { dir: "auto", ...attributes }, text);
const number = (n) => n.toLocaleString("en-US");
const signed = (n) => (n > 0n ? `+${number(n)}` : number(n));
// An amount in a cell with room for a few digits: its title has all of them.
const compact = (n) => {
  const exact = signed(n);
  if (exact.length <= SHORT) return exact;
  const thousands = Math.ceil(String(n).replace("-", "").length / 3) - 1;
  return `${n > 0n ? "+" : ""}${Number((Number(n) / 1000 ** thousands).toPrecision(3))} ${" kMGTPEZY"[thousands]}`;
};
const words = (state) => (state === "equal" ? "exact" : state.replaceAll("_", " "));
const plural = (n, one) => `${number(n)} ${one}${n === 1 ? "" : "s"}`;
const place = (element, left, width) => {
  element.style.left = `${left}%`;
  element.style.width = `${width}%`;
  return element;
};

// A ratio to three decimals that never says 1.000 or 0.000 for what is neither.
function ratio(total, work) {
  if (total === work) return "1";
  if (work === 0n) return signed(total);
  if (total === 0n) return "0";
  const thousandths = Number((total * 10000n) / work) / 10;
  const text = (Math.round(thousandths) / 1000).toFixed(3);
  if (text === "1.000") return total > work ? ">1.000" : "<1.000";
  return text === "0.000" ? ">0.000" : text;
}
