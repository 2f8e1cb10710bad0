"use strict";
// Click a box: what is known of it. Hover a box or an arrow: where its values are used.
// Click a region: it fills the view; once more, or Escape: back. Wheel and drag: zoom and move.

const svg = document.querySelector("svg");
const panel = document.querySelector("#panel");
const said = JSON.parse(document.querySelector("#facts").textContent);
const boxes = new Map([...svg.querySelectorAll("[data-box]")].map((g) => [g.dataset.box, g]));
const wires = new Map(); // of each box, the arrows that leave it
for (const wire of svg.querySelectorAll(".wire")) {
  const from = wire.dataset.from;
  wires.set(from, [...(wires.get(from) ?? []), wire]);
}

// -- the view -----------------------------------------------------------------------------------

const whole = svg.viewBox.baseVal;
const all = { x: 0, y: 0, width: whole.width, height: whole.height };
let zoomed = null; // the region that fills the view

function look(x, y, width, height) {
  svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
}

function fit(element) {
  zoomed = element;
  const rect = element === null ? all : bounds(element);
  const margin = element === null ? 0 : 12;
  look(rect.x - margin, rect.y - margin, rect.width + 2 * margin, rect.height + 2 * margin);
}

function bounds(element) {
  const inverse = svg.getScreenCTM().inverse();
  const rect = element.querySelector(":scope > rect").getBoundingClientRect();
  const start = new DOMPoint(rect.left, rect.top).matrixTransform(inverse);
  const end = new DOMPoint(rect.right, rect.bottom).matrixTransform(inverse);
  return { x: start.x, y: start.y, width: end.x - start.x, height: end.y - start.y };
}

function natural() { // as large as drawn, with the first box in the middle, or the picture
  const { clientWidth: width, clientHeight: height } = svg;
  const first = boxes.size ? bounds(boxes.get("0")) : all;
  zoomed = null;
  look((width < all.width ? first.x + first.width / 2 : all.width / 2) - width / 2, 0, width, height);
}

function start() { // the whole width, if that can be read
  const { clientWidth: width, clientHeight: height } = svg;
  const wide = Math.max(all.width, width);
  if (wide > 1.5 * width) natural();
  else look((all.width - wide) / 2, 0, wide, (wide * height) / width);
}

function zoom(factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) {
  const at = new DOMPoint(x, y).matrixTransform(toPicture());
  const { x: left, y: top, width, height } = whole;
  const [wide, high] = [width * factor, height * factor];
  look(at.x - (at.x - left) * factor, at.y - (at.y - top) * factor, wide, high);
}

function toPicture() {
  const frame = svg.getBoundingClientRect();
  return svg.getScreenCTM().inverse().translate(frame.left, frame.top);
}

svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const frame = svg.getBoundingClientRect();
  zoom(Math.exp(event.deltaY / 500), event.clientX - frame.left, event.clientY - frame.top);
}, { passive: false });

let drag = null;
svg.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, y: event.clientY, left: whole.x, top: whole.y, far: false };
});
window.addEventListener("pointermove", (event) => {
  if (drag === null) return;
  const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
  drag.far ||= Math.hypot(dx, dy) > 4;
  if (!drag.far) return;
  svg.classList.add("moved");
  const scale = toPicture().a;
  look(drag.left - dx * scale, drag.top - dy * scale, whole.width, whole.height);
});
let wasDragged = false;
window.addEventListener("pointerup", () => {
  wasDragged = drag?.far ?? false;
  drag = null;
  svg.classList.remove("moved");
});

// -- boxes, values and their uses ---------------------------------------------------------------

function usesOf(path, port = null) {
  const leaving = wires.get(path) ?? [];
  return port === null ? leaving : leaving.filter((wire) => wire.dataset.port === String(port));
}

function mark(used) {
  for (const element of svg.querySelectorAll(".used")) element.classList.remove("used");
  for (const wire of used) {
    wire.classList.add("used");
    boxes.get(wire.dataset.to).classList.add("used");
  }
}

function choose(path) {
  svg.querySelector(".chosen")?.classList.remove("chosen");
  boxes.get(path).classList.add("chosen");
  const { title, values, facts } = said[path];
  const list = element("dl");
  for (const [name, text] of Object.entries(facts)) {
    const body = element("pre", text, name === "text" ? "text" : "");
    list.append(element("dt", name), element("dd", body));
  }
  const ports = new Set(usesOf(path).map((wire) => Number(wire.dataset.port)));
  for (const port of [...ports].sort((a, b) => a - b)) {
    list.append(element("dt", port in values ? `uses of ${values[port]}` : "followed by"));
    list.append(element("dd", users(usesOf(path, port))));
  }
  panel.replaceChildren(element("h2", title), list);
}

function users(used) {
  const row = element("div", "", "uses");
  for (const wire of used) {
    const button = element("button", said[wire.dataset.to].title);
    button.addEventListener("click", () => choose(wire.dataset.to));
    button.addEventListener("pointerenter", () => mark([wire]));
    button.addEventListener("pointerleave", () => mark([]));
    row.append(button);
  }
  return row;
}

function element(name, content = "", kind = "") {
  const made = document.createElement(name);
  made.append(content);
  made.className = kind;
  return made;
}

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
  if (inner?.dataset.box !== undefined) choose(inner.dataset.box);
  else fit(inner === zoomed ? null : inner);
});
for (const [path, box] of boxes) {
  box.tabIndex = 0;
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    choose(path);
  });
}
window.addEventListener("keydown", (event) => event.key === "Escape" && fit(null));
document.querySelector("#fit").addEventListener("click", () => fit(null));
document.querySelector("#natural").addEventListener("click", natural);
document.querySelector("#closer").addEventListener("click", () => zoom(0.8));
document.querySelector("#farther").addEventListener("click", () => zoom(1.25));

new ResizeObserver((_, observer) => { // in a frame that is still hidden, the view has no size
  if (svg.clientWidth === 0) return;
  observer.disconnect();
  start();
  document.body.dataset.ready = "";
}).observe(svg);
