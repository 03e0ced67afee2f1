// Tables that can be sorted by their headings and filtered by a form. Without scripts they are plain tables.
"use strict";
document.documentElement.classList.add("js");

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => row.cells[column].dataset.key ?? row.cells[column].textContent.trim();
  const order = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    const numbers = a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y);
    return numbers ? x - y : a.localeCompare(b, "en", { numeric: true });
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.dataset.name = head.textContent; // shown in print, where a heading with a button would not be repeated on the next sheet
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const rows = next === "none" ? original : [...original].sort((a, b) => sign * order(key(a, column), key(b, column)));
      body.append(...rows);
    });
  });
}

for (const form of document.querySelectorAll("form.filters")) {
  const rows = [...document.getElementById(form.dataset.for).tBodies[0].rows];
  const filter = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const text = wanted.text.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = ["study", "class", "agrees"].every((name) => !wanted[name] || row.dataset[name] === wanted[name]);
      row.hidden = !(fits && row.textContent.toLowerCase().includes(text));
      shown += !row.hidden;
    }
    form.querySelector("output").textContent = `${shown} of ${rows.length} shown`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  // A row that is filtered out cannot be scrolled to: a link to it shows all rows first.
  const uncover = (hash) => {
    const row = document.getElementById(decodeURIComponent(hash.slice(1)))?.closest("tr");
    if (!row?.hidden || !rows.includes(row)) return;
    form.reset();
    filter();
  };
  document.addEventListener("click", (event) => uncover(event.target.closest?.("a[href^='#']")?.hash ?? ""));
  window.addEventListener("hashchange", () => uncover(location.hash)); // back and forward
}
