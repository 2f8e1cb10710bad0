"use strict";
// The view: which part of the picture is on the screen. Wheel and drag zoom and move it.

const svg = document.querySelector("svg");
const whole = svg.viewBox.baseVal;
let all = { x: 0, y: 0, width: whole.width, height: whole.height };
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

function center(element) { // move the view to a box that is not on the screen, or too small to read
  const rect = bounds(element);
  const scale = svg.getScreenCTM().a;
  const { x, y, width, height } = whole;
  const isInside = rect.x >= x && rect.x + Math.min(rect.width, width / 2) <= x + width
    && rect.y >= y && rect.y + Math.min(rect.height, height / 2) <= y + height;
  if (isInside && scale > 0.5) return;
  const factor = scale > 0.5 ? 1 : scale;
  const [wide, high] = [width * factor, height * factor];
  const left = rect.width < wide ? rect.x + (rect.width - wide) / 2 : rect.x - wide / 20;
  const top = rect.height < high / 2 ? rect.y + (rect.height - high) / 2 : rect.y - high / 10;
  zoomed = null;
  look(left, top, wide, high);
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
