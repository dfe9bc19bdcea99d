// A long list of rows of one height, of which only those in sight are in the page. One of them can be focused at a time;
// arrow keys, Page Up and Down, Home and End move there, Enter and a click act on it.

const SPARE = 6; // rows drawn above and below those in sight

class Rows {
  constructor(holder, { role, labelledby, head, draw, act, key = () => false }) {
    this.draw = draw;
    this.act = act;
    this.key = key;
    this.count = 0;
    this.active = 0;
    this.drawn = new Map();
    this.lowest = -1; // no row below this one is drawn
    this.body = make("div", { role: "rowgroup", class: "body" });
    this.view = make("div", { role, class: "viewport", "aria-labelledby": labelledby }, head, this.body);
    holder.replaceChildren(this.view);
    this.view.addEventListener("scroll", () => this.paint(), { passive: true });
    this.body.addEventListener("keydown", (event) => this.pressed(event));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("focusin", (event) => this.focused(event));
    new ResizeObserver(() => this.measure()).observe(this.view);
    addEventListener("beforeprint", () => this.whole(true));
    addEventListener("afterprint", () => this.whole(false));
  }

  // Show this many rows, all drawn anew.
  show(count, active = 0) {
    const focused = this.body.contains(document.activeElement);
    this.count = count;
    this.active = Math.max(0, Math.min(active, count - 1));
    this.view.setAttribute("aria-rowcount", count + 1);
    this.clear();
    this.measure();
    if (focused) this.go(this.active);
  }

  measure() {
    const height = parseFloat(getComputedStyle(this.view).getPropertyValue("--row")) || 36;
    if (height !== this.height) this.clear();
    this.height = height;
    this.body.style.height = `${this.count * height}px`;
    this.paint();
  }

  // On paper nobody scrolls: all rows are there.
  whole(printed) {
    const focused = this.body.contains(document.activeElement);
    this.printed = printed;
    this.clear();
    this.paint();
    if (focused) this.drawn.get(this.active)?.focus({ preventScroll: true });
  }

  clear() {
    this.drawn.clear();
    this.lowest = -1;
    this.body.replaceChildren();
  }

  paint() {
    const top = Math.max(0, Math.floor(this.view.scrollTop / this.height) - SPARE);
    const end = Math.min(this.count, Math.ceil((this.view.scrollTop + this.view.clientHeight) / this.height) + SPARE);
    const [first, last] = this.printed ? [0, this.count] : [top, end];
    for (const [i, row] of this.drawn) {
      if ((i < first || i >= last) && i !== this.active) {
        row.remove();
        this.drawn.delete(i);
      }
    }
    for (let i = first; i < last; i++) this.put(i);
    if (this.count) this.put(this.active);
  }

  put(i) {
    if (this.drawn.has(i)) return;
    const row = this.draw(i);
    row.classList.add("vrow");
    row.style.top = `${i * this.height}px`;
    row.dataset.row = i;
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", i + 2);
    row.tabIndex = i === this.active ? 0 : -1;
    const below = i > this.lowest ? [] : [...this.drawn.keys()].filter((k) => k > i);
    this.body.insertBefore(row, below.length ? this.drawn.get(Math.min(...below)) : null);
    this.lowest = Math.max(this.lowest, i);
    this.drawn.set(i, row);
  }

  go(i) {
    if (!this.count) return;
    const was = this.active;
    this.active = Math.max(0, Math.min(i, this.count - 1));
    this.drawn.get(was)?.setAttribute("tabindex", -1);
    const head = this.view.firstElementChild.offsetHeight;
    const top = this.active * this.height;
    const room = this.view.clientHeight - head - this.height;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (top > this.view.scrollTop + room) this.view.scrollTop = top - room;
    this.paint();
    const row = this.drawn.get(this.active);
    row.tabIndex = 0;
    row.focus({ preventScroll: true });
  }

  page() {
    return Math.max(1, Math.floor(this.view.clientHeight / this.height) - 2);
  }

  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moves = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + this.page(),
      PageUp: this.active - this.page(),
      Home: 0,
      End: this.count - 1,
    };
    if (this.key(event.key, this.active)) event.preventDefault();
    else if (event.key in moves) {
      event.preventDefault();
      this.go(moves[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.act(this.active, event.key);
    }
  }

  at(event) {
    const row = event.target.closest("[data-row]");
    return row ? Number(row.dataset.row) : -1;
  }

  clicked(event) {
    const i = this.at(event);
    if (i < 0) return;
    this.go(i);
    this.act(i, "click", event.target);
  }

  focused(event) {
    const i = this.at(event);
    if (i < 0 || i === this.active) return;
    this.drawn.get(this.active)?.setAttribute("tabindex", -1);
    this.active = i;
    this.drawn.get(i).tabIndex = 0;
  }
}
