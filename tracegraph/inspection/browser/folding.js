// Folding: boxes with something inside are opened and closed. What is beside them moves apart, or
// together: layers stay layers, distances stay, so that nothing is laid out anew.

const geometry = JSON.parse(document.querySelector("#layout").textContent);
const boxes = new Map([...svg.querySelectorAll("[data-box]")].map((g) => [g.dataset.box, g]));
const regions = new Map([...svg.querySelectorAll("[data-region]")].map((g) => [g.dataset.region, g]));
const opened = new Map(); // the boxes with something inside: whether they are open
for (const [path, box] of boxes) {
  const inner = regions.get(`${path}.0`);
  if (inner === undefined) continue;
  opened.set(path, inner.getAttribute("display") !== "none");
  const mark = box.querySelector(":scope > .toggle") ?? box.insertBefore(
    document.createElementNS(svg.namespaceURI, "text"), box.querySelector(":scope > .title").nextSibling,
  );
  mark.setAttribute("class", "toggle");
}

const below = (path) => (path === "" ? "" : `${path}.`); // what the boxes of a region begin with

function sizeOf(path, box) { // the size of a box, and the places of what is inside
  const [, , width, height, closedWidth, closedHeight] = box;
  const isOpen = opened.get(path);
  if (isOpen === undefined) return { width, height, inside: [] };
  if (!isOpen) return { width: closedWidth, height: closedHeight, inside: [] };
  const { padding, shelf } = geometry;
  const inside = [];
  let [x, y, row, wide] = [padding, closedHeight, 0, closedWidth];
  for (let k = 0; geometry.regions[`${path}.${k}`] !== undefined; k += 1) {
    const region = arranged(`${path}.${k}`);
    if (x > padding && x + region.width > shelf) [x, y, row] = [padding, y + row + padding, 0];
    inside.push({ ...region, x, y });
    x += region.width + padding;
    row = Math.max(row, region.height);
    wide = Math.max(wide, x);
  }
  return { width: wide, height: Math.max(closedHeight, y + row + padding), inside };
}

function arranged(path) { // a region with the sizes that its boxes have now
  const region = geometry.regions[path];
  const placed = region.boxes.map((box, k) => ({
    old: box, middle: box[0] + box[2] / 2, ...sizeOf(below(path) + k, box),
  }));
  const layers = new Map();
  for (const each of placed) {
    const top = each.old[1];
    if (!layers.has(top)) layers.set(top, []);
    layers.get(top).push(each);
  }
  const heights = new Map(); // the tops and bottoms of layers, as they were and are
  let grown = 0;
  const shifts = new Map(); // how far things move aside in the layer with a top
  for (const top of [...layers.keys()].sort((a, b) => a - b)) {
    const row = layers.get(top).sort((a, b) => a.middle - b.middle);
    const [was, is] = [Math.max(...row.map((b) => b.old[3])), Math.max(...row.map((b) => b.height))];
    heights.set(tenths(top), top + grown);
    heights.set(tenths(top + was), top + grown + is);
    for (const each of row) each.y = top + grown;
    grown += is - was;
    shifts.set(tenths(top), row.map((b) => [b.middle, (b.width - b.old[2]) / 2]));
  }
  const shift = (top, x) => {
    let by = 0;
    for (const [middle, growth] of shifts.get(tenths(top)) ?? []) {
      if (middle < x) by += growth;
      else if (middle > x) by -= growth;
    }
    return by;
  };
  for (const each of placed) {
    each.centre = each.middle + shift(each.old[1], each.middle);
    each.x = each.centre - each.width / 2;
  }
  const passing = region.wires.flatMap(({ route }) => points(route, 2, -2))
    .filter(([x]) => x <= region.lanes).map(([x, y]) => x + shift(y, x));
  const left = placed.length ? Math.min(...placed.map((b) => b.x), ...passing) : 0;
  const right = Math.max(0, ...placed.map((b) => b.x + b.width - left), ...passing.map((x) => x - left));
  const hasLanes = region.content[0] > region.lanes;
  const aside = hasLanes ? right - region.lanes : 0;
  const wide = hasLanes ? region.content[0] + aside : right;
  const width = Math.max(wide + 2 * geometry.padding, region.least);
  const side = (width - wide) / 2;
  const top = region.origin[1];
  const lineOf = ({ from, to, route }) => {
    const [source, target] = [placed[from], placed[to]];
    const port = (box, x) =>
      side - left + box.centre + (x - box.middle) * Math.min(1, box.width / box.old[2]);
    const line = points(route).map(([x, y]) => {
      const by = x > region.lanes ? aside : shift(y, x) - left;
      return [side + x + by, top + (heights.get(tenths(y)) ?? y)];
    });
    for (let k = 3; k < line.length - 2; k += 2) line[k][0] = line[k - 1][0]; // passes straight
    const start = port(source, route[0]);
    line[0] = [start, top + source.y + source.height];
    line[1][0] = start;
    for (const point of line.slice(-2)) point[0] = port(target, route[route.length - 2]);
    return line;
  };
  return {
    path, width, height: region.content[1] + grown + top + geometry.padding,
    boxes: placed.map((b) => ({ ...b, x: side + b.x - left, y: top + b.y })),
    lines: region.wires.map(lineOf),
  };
}

const tenths = (y) => Math.round(y * 10);

function points(route, from = 0, to = undefined) {
  const found = [];
  for (let k = 0; k < route.length; k += 2) found.push([route[k], route[k + 1]]);
  return found.slice(from, to);
}

function curve(line) { // as in the picture that was written
  const corners = [];
  for (const [x, y] of line) {
    const last = corners.length - 1;
    if (last > 0 && corners[last][0] === x && corners[last - 1][0] === x) corners.pop();
    const end = corners[corners.length - 1];
    if (end === undefined || end[0] !== x || end[1] !== y) corners.push([x, y]);
  }
  let path = `M${corners[0][0]} ${corners[0][1]}`;
  for (let k = 1; k < corners.length; k += 1) {
    const [[x0, y0], [x, y]] = [corners[k - 1], corners[k]];
    const middle = (y0 + y) / 2;
    path += x === x0 ? `V${y}` : `C${x0} ${middle} ${x} ${middle} ${x} ${y}`;
  }
  const [x, y] = corners[corners.length - 1];
  return `${path}M${x - 3} ${y - 5}L${x} ${y}L${x + 3} ${y - 5}`;
}

function place(region, group) { // write the places of a region and of what is inside
  const wires = group.querySelectorAll(":scope > .wires > .wire");
  region.lines.forEach((line, k) => wires[k].setAttribute("d", curve(line)));
  region.boxes.forEach((box, k) => {
    const path = below(region.path) + k;
    const element = boxes.get(path);
    element.setAttribute("transform", `translate(${box.x} ${box.y})`);
    if (!opened.has(path)) return;
    for (const body of element.querySelectorAll(":scope > .body, :scope > .heat")) {
      body.setAttribute("width", box.width);
      body.setAttribute("height", box.height);
    }
    const title = element.querySelector(":scope > .title");
    const mark = element.querySelector(":scope > .toggle");
    mark.textContent = opened.get(path) ? "▾" : "▸";
    mark.setAttribute("x", box.width - geometry.padding - 8);
    mark.setAttribute("y", title.getAttribute("y"));
    element.setAttribute("aria-expanded", opened.get(path));
    for (let i = 0; regions.has(`${path}.${i}`); i += 1) {
      const inner = regions.get(`${path}.${i}`);
      inner.setAttribute("display", opened.get(path) ? "inline" : "none");
    }
    for (const inner of box.inside) {
      const nested = regions.get(inner.path);
      nested.setAttribute("transform", `translate(${inner.x} ${inner.y})`);
      const ground = nested.querySelector(":scope > .ground");
      ground.setAttribute("width", inner.width);
      ground.setAttribute("height", inner.height);
      place(inner, nested);
    }
  });
}

function placeAll() {
  const root = arranged("");
  all = { x: 0, y: 0, width: root.width, height: root.height };
  const surface = svg.querySelector(":scope > .surface");
  surface.setAttribute("width", root.width);
  surface.setAttribute("height", root.height);
  place(root, svg);
}

function toggle(path, isOpen = !opened.get(path)) { // open or close, with the box where it is
  if (!opened.has(path) || opened.get(path) === isOpen) return;
  const before = bounds(boxes.get(path));
  opened.set(path, isOpen);
  placeAll();
  const after = bounds(boxes.get(path));
  const moved = after.x + after.width / 2 - before.x - before.width / 2;
  look(whole.x + moved, whole.y + after.y - before.y, whole.width, whole.height);
}

function around(path) { // the boxes around a box, outermost first
  const steps = path.split(".");
  return steps.slice(0, -1).map((_, k) => steps.slice(0, k + 1).join("."))
    .filter((_, k) => k % 2 === 0);
}

function reveal(path) { // open what is around a box
  const closed = around(path).filter((each) => !opened.get(each));
  for (const each of closed) opened.set(each, true);
  if (closed.length) placeAll();
}

const isShown = (path) => around(path).every((each) => opened.get(each));

placeAll();
