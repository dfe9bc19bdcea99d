// Repeated layers are folded: those that show the same and whose names differ in numbers alone are one row, which opens to them.
// As report/folds.py does it: a name is exact, so `layers.0..31` or `conv2_block1,3` are these layers and no others.

const SO_FEW = 10; // rows that are all shown, however alike they are
const RUN = 3; // numbers in a row that are a range; one more if they count in steps
const NUMBERS = 8; // numbers of a name that may differ

// The texts of a name and the numbers between them.
function pieces(text) {
  const found = text.split(/(?<![0-9])([0-9]{1,9})(?![0-9])/);
  const rest = found.splice(2 * NUMBERS + 1).join("");
  if (rest) found[2 * NUMBERS] += rest;
  return { texts: found.filter((_, i) => i % 2 === 0), numbers: found.filter((_, i) => i % 2) };
}

const pushed = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));

// Choices of numbers, one per position, whose combinations are the members; every member is in exactly one product.
function products(members) {
  if (!members[0].length) return [[]];
  const heads = new Map();
  for (const numbers of members) pushed(heads, numbers[numbers.length - 1], numbers.slice(0, -1));
  const lasts = new Map();
  for (const [last, rests] of heads) pushed(lasts, rests.map((r) => r.join()).sort().join(";"), last);
  return [...lasts.values()].flatMap((same) => products(heads.get(same[0])).map((product) => [...product, same]));
}

const crossed = (product) => product.reduce((begun, choices) => begun.flatMap((b) => choices.map((c) => [...b, c])), [[]]);

// 0..31, 0..6,8..31, 0..10/2; a number with leading zeros stands alone.
function listed(numbers) {
  const plain = (text) => String(Number(text)) === text;
  let left = numbers.filter(plain).map(Number).sort((a, b) => a - b);
  const found = [];
  const reach = (held, step) => {
    const run = [left[0]];
    while (held.has(run[run.length - 1] + step)) run.push(run[run.length - 1] + step);
    return run;
  };
  while (left.length) {
    const held = new Set(left);
    const step = left.length < 2 || reach(held, 1).length >= RUN ? 1 : left[1] - left[0];
    let run = reach(held, step);
    if (run.length < (step === 1 ? RUN : RUN + 1)) run = [left[0]];
    found.push(run.length === 1 ? `${run[0]}` : `${run[0]}..${run[run.length - 1]}${step > 1 ? `/${step}` : ""}`);
    const taken = new Set(run);
    left = left.filter((n) => !taken.has(n));
  }
  return [...found, ...numbers.filter((text) => !plain(text))].join();
}

// Items of one name and one look together: [{name, items}], in the order of the first of each.
function folded(items, nameOf, shownOf) {
  const groups = new Map();
  const seen = new Map();
  items.forEach((item, place) => {
    const { texts, numbers } = pieces(nameOf(item));
    const look = JSON.stringify([texts, shownOf(item)]);
    const same = `${look}${numbers.join()}`;
    seen.set(same, (seen.get(same) ?? 0) + 1);
    const key = `${look}${seen.get(same)}`;
    if (!groups.has(key)) groups.set(key, { texts, members: new Map() });
    groups.get(key).members.set(numbers.join(), { place, numbers });
  });
  const found = [...groups.values()].flatMap(({ texts, members }) =>
    products([...members.values()].map((m) => m.numbers)).map((product) => {
      const places = crossed(product).map((numbers) => members.get(numbers.join()).place).sort((a, b) => a - b);
      const title = texts[0] + product.map((numbers, i) => listed(numbers) + texts[i + 1]).join("");
      return { name: title, items: places.map((place) => items[place]), place: places[0] };
    }),
  );
  return found.sort((a, b) => a.place - b.place);
}

// A small number for each different text, so that comparing trees takes no longer texts at each level.
function interned() {
  const ids = new Map();
  return (text) => ids.get(text) ?? (ids.set(text, ids.size), ids.size - 1);
}

// What each layer shows under every convention: work, values, and the lines of every statement.
function looks() {
  const found = DATA.layers.map(() => []);
  VIEWS.forEach((view, v) => {
    view.work.forEach((work) => found.forEach((look, layer) => look.push(layer < work.length ? String(work[layer]) : "")));
    [...view.bridges, ...view.between].forEach((bridge, b) => {
      for (const line of bridge?.lines ?? []) found[line.layer].push(v, b, line.cause, word(line.op), String(line.amount));
      for (const rest of bridge?.residuals ?? []) found[rest.layer].push(v, b, word(rest.reason), String(rest.amount));
    });
  });
  CELLS.forEach((cells) => found.forEach((look, layer) => look.push(String(cells[layer]))));
  return found.map((look) => look.join("\n"));
}

// The nodes with those that are alike, and all below them alike, as one node that has them as its children.
function foldNodes(roots, mark) {
  const id = interned();
  const look = looks().map(id);
  const shown = new Map();
  const under = (parent, node) => Object.assign(node, { name: `${parent.name}${mark}${node.name}` });
  const alone = (node) => node.layer < 0 && node.children.length === 1 && node.children[0].fold;
  const visit = (children) => {
    children.forEach((node) => (node.children = visit(node.children)));
    const nodes = children.map((node) => {
      if (!alone(node)) return node; // otherwise the fold takes the place of the level that it fills
      node.children[0].fold.forEach((each) => under(node, each));
      return under(node, node.children[0]);
    });
    for (const node of nodes) {
      const inside = node.children.map((child) => [child.name, child.fold?.length ?? 0, shown.get(child)]);
      shown.set(node, id(JSON.stringify([node.layer < 0 ? "" : look[node.layer], inside])));
    }
    return folded(nodes, (node) => node.name, (node) => shown.get(node)).map(({ name: title, items }) => {
      if (items.length === 1) return items[0];
      const layers = items.flatMap((item) => item.layers);
      const node = { name: title, layer: -1, layers, children: items, fold: items, depth: 0, open: false };
      shown.set(node, shown.get(items[0]));
      return node;
    });
  };
  const deepen = (nodes, depth) => nodes.forEach((node) => ((node.depth = depth), deepen(node.children, depth + 1)));
  const found = visit(roots);
  deepen(found, 1);
  return found;
}
