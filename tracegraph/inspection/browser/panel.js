// The panel: what is known of a box, the uses of its values, and the source. A line leads to its
// boxes, and a box to its lines.

const panel = document.querySelector("#panel");
const said = JSON.parse(document.querySelector("#facts").textContent);
const source = JSON.parse(document.querySelector("#source").textContent);
const listing = document.querySelector("#listing");
const wires = new Map(); // of each box, the arrows that leave it
const arriving = new Map();
for (const wire of svg.querySelectorAll(".wire")) {
  const { from, to } = wire.dataset;
  if (!wires.has(from)) wires.set(from, []);
  wires.get(from).push(wire);
  if (!arriving.has(to)) arriving.set(to, []);
  arriving.get(to).push(wire);
}

function element(name, content = "", kind = "") {
  const made = document.createElement(name);
  made.append(content);
  made.className = kind;
  return made;
}

function usesOf(path, port = null) {
  const leaving = wires.get(path) ?? [];
  return port === null ? leaving : leaving.filter((wire) => wire.dataset.port === String(port));
}

function mark(used) {
  for (const each of svg.querySelectorAll(".used")) each.classList.remove("used");
  for (const wire of used) {
    wire.classList.add("used");
    boxes.get(wire.dataset.to).classList.add("used");
  }
}

function button(path) {
  const made = element("button", said[path].title);
  made.addEventListener("click", () => choose(path));
  return made;
}

function choose(path) {
  reveal(path);
  svg.querySelector(".chosen")?.classList.remove("chosen");
  const box = boxes.get(path);
  box.classList.add("chosen");
  center(box);
  const { title, values, facts } = said[path];
  const list = element("dl");
  for (const [name, text] of Object.entries(facts)) {
    const body = element("pre", text, name === "text" ? "text" : "");
    list.append(element("dt", name), element("dd", body));
  }
  const ports = new Set(usesOf(path).map((wire) => Number(wire.dataset.port)));
  for (const port of [...ports].sort((a, b) => a - b)) {
    list.append(element("dt", values[port] ? `uses of ${values[port]}` : "followed by"));
    list.append(element("dd", users(usesOf(path, port))));
  }
  panel.replaceChildren(element("h2", title), list);
  for (const row of listing.querySelectorAll(".current")) row.classList.remove("current");
  const rows = said[path].lines.map((line) => listing.querySelector(`[data-line="${line}"]`));
  for (const row of rows) row?.classList.add("current");
  rows.find((row) => row)?.scrollIntoView({ block: "nearest" });
}

function users(used) {
  const row = element("div", "", "uses");
  for (const wire of used) {
    const made = button(wire.dataset.to);
    made.addEventListener("pointerenter", () => mark([wire]));
    made.addEventListener("pointerleave", () => mark([]));
    row.append(made);
  }
  return row;
}

// -- the source ---------------------------------------------------------------------------------

const ofLine = new Map(); // the innermost boxes of each line
for (const [path, { lines }] of Object.entries(said)) {
  if (opened.has(path) && said[path].group) continue; // a group is not where the work is
  for (const line of lines) {
    if (!ofLine.has(line)) ofLine.set(line, []);
    ofLine.get(line).push(path);
  }
}

for (const { name, file, rows } of source) {
  const table = element("table");
  let last = null;
  for (const [number, text, time] of rows) {
    const key = `${file}:${number}`;
    const found = ofLine.get(key) ?? [];
    if (last !== null && number !== last + 1) table.append(element("tr", element("td", "⋮", "gap")));
    last = number;
    const row = element("tr", "", found.length ? "has" : "");
    row.dataset.line = key;
    const made = time || (found.length ? String(found.length) : "");
    row.append(element("td", String(number), "number"), element("td", made, "count"));
    row.append(element("td", text || " ", "code"));
    if (found.length) {
      row.tabIndex = 0;
      row.setAttribute("role", "button");
      row.setAttribute("aria-label", `${name}:${number}, ${found.length} boxes`);
      row.addEventListener("click", () => chooseLine(key, `${name}:${number}`, text));
      row.addEventListener("keydown", (event) => {
        if (event.key === "Enter") chooseLine(key, `${name}:${number}`, text);
      });
    }
    table.append(row);
  }
  listing.append(element("h3", name), table);
}

function chooseLine(key, name, text) {
  const found = ofLine.get(key);
  setFound(found);
  reveal(found[0]);
  center(boxes.get(found[0]));
  const list = element("div", "", "uses");
  for (const path of found) list.append(button(path));
  const others = source.flatMap(({ file, also }) => also[key] ?? []);
  const more = others.length
    ? [element("dt", "operations"), element("pre", others.join("\n"), "text")] : [];
  panel.replaceChildren(element("h2", name), element("pre", text.trim()), list, ...more);
  for (const row of listing.querySelectorAll(".current")) row.classList.remove("current");
  listing.querySelector(`[data-line="${key}"]`).classList.add("current");
}

function setFound(paths) {
  for (const each of svg.querySelectorAll(".found")) each.classList.remove("found");
  for (const path of paths) {
    boxes.get(path).classList.add("found");
    for (const outer of around(path)) boxes.get(outer).classList.add("found");
  }
}
