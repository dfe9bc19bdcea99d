"use strict";
(() => {
  const rows = Array.from(document.querySelectorAll("#table tbody tr"), (row) => [row, row.textContent.toLowerCase()]);
  const search = document.getElementById("search");
  const state = document.getElementById("state");
  const shown = document.getElementById("shown");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const [row, text] of rows) {
      row.hidden = (state.value && row.className !== state.value) || !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
  };
  const open = () => {
    const row = document.getElementById(location.hash.slice(1));
    if (row && row.hidden) {
      search.value = state.value = "";
      filter();
      row.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", open);
  search.addEventListener("input", filter);
  state.addEventListener("input", filter);
})();
