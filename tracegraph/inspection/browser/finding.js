// Search, keys and clicks.

const query = document.querySelector("#query");
const count = document.querySelector("#count");
let matches = [];
let current = -1;
let texts = null; // what is searched of each box, made at the first search

function textsOfBoxes() {
  const lineOf = new Map(source.flatMap(({ name, file, rows }) =>
    rows.map(([number]) => [`${file}:${number}`, `${name}:${number}`])));
  return Object.entries(said).map(([path, { title, words, lines }]) =>
    [path, [title, words, ...lines.map((line) => lineOf.get(line) ?? "")].join("\n").toLowerCase()]);
}

function search() {
  const wanted = query.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  texts ??= textsOfBoxes();
  matches = wanted.length === 0 ? []
    : texts.filter(([, text]) => wanted.every((word) => text.includes(word))).map(([path]) => path);
  // a box around others that match as well only says what they do
  const inner = new Set(matches.flatMap(around));
  matches = matches.filter((path) => !(said[path].group && inner.has(path)));
  current = -1;
  setFound(matches);
  count.textContent = wanted.length === 0 ? "" : `${matches.length} found`;
}

function step(by) {
  if (matches.length === 0) return;
  current = (current + by + matches.length) % matches.length;
  count.textContent = `${current + 1} of ${matches.length}`;
  choose(matches[current]);
}

query.addEventListener("input", search);
query.addEventListener("keydown", (event) => {
  event.stopPropagation();
  if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
  if (event.key !== "Escape") return;
  query.value = "";
  search();
  query.blur();
});

function goTo(path) {
  if (path === undefined) return;
  boxes.get(path).focus({ preventScroll: true });
  choose(path);
}

function beside(path, by) { // the next box to the right or left in the same layer
  const region = path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : "";
  const { boxes: all } = geometry.regions[region];
  const here = Number(path.slice(path.lastIndexOf(".") + 1));
  const row = all.map((box, k) => [box[0], k]).filter(([, k]) => all[k][1] === all[here][1]);
  row.sort((a, b) => a[0] - b[0]);
  const next = row[row.findIndex(([, k]) => k === here) + by];
  return next === undefined ? undefined : below(region) + next[1];
}

const MOVES = {
  ArrowDown: (path) => usesOf(path)[0]?.dataset.to,
  ArrowUp: (path) => arriving.get(path)?.[0].dataset.from,
  ArrowRight: (path) => beside(path, 1),
  ArrowLeft: (path) => beside(path, -1),
};

for (const [path, box] of boxes) {
  box.tabIndex = 0;
  box.addEventListener("keydown", (event) => {
    const { key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "Enter" || key === " ") choose(path);
    else if (key === "o") toggle(path);
    else if (key in MOVES) goTo(MOVES[key](path));
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

window.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === query) return;
  const keys = {
    Escape: () => fit(null), f: () => fit(null), "+": () => zoom(0.8), "-": () => zoom(1.25),
    "/": () => query.focus(), n: () => step(1), N: () => step(-1),
  };
  if (keys[event.key] === undefined) return;
  event.preventDefault();
  keys[event.key]();
});

svg.addEventListener("pointerover", (event) => {
  const wire = event.target.closest(".wire");
  const inner = event.target.closest(".wire, .box, .region");
  if (wire !== null) mark(usesOf(wire.dataset.from, wire.dataset.port));
  else if (inner?.dataset.box !== undefined) mark(usesOf(inner.dataset.box));
  else mark([]);
});
svg.addEventListener("pointerleave", () => mark([]));
svg.addEventListener("click", (event) => {
  if (wasDragged) return;
  const inner = event.target.closest(".box, .region");
  const path = inner?.dataset.box;
  if (path === undefined) fit(inner === zoomed ? null : inner);
  else if (event.target.classList.contains("toggle")) toggle(path);
  else {
    if (said[path].group) toggle(path, true);
    choose(path);
  }
});
document.querySelector("#fit").addEventListener("click", () => fit(null));
document.querySelector("#natural").addEventListener("click", natural);
document.querySelector("#closer").addEventListener("click", () => zoom(0.8));
document.querySelector("#farther").addEventListener("click", () => zoom(1.25));

new ResizeObserver((_, observer) => { // in a frame that is still hidden, the view has no size
  if (svg.clientWidth === 0) return;
  observer.disconnect();
  start();
  document.body.dataset.ready = "";
  performance.mark("ready");
}).observe(svg);
