"use strict";
// Draws the graphs of the page's data. A graph has nodes, edges from user to source, and blocks within blocks; a closed
// block is drawn as one box. What is drawn follows from one thing alone, the set of open blocks.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
// shapes that are laid out within seconds
const MOST = 2500;
// the zoom at which shapes are still distinct
const SMALLEST = 0.1;

const LOOKS = {
  light: {
    op: ["#dbe9fb", "#4a7ebb"], box: ["#e6dcf7", "#7a5cb5"], leaf: ["#cdeccb", "#3c8a3a"], constant: ["#ffffff", "#8a8f98"],
    cut: ["#b3261e", "#7a1812"], fault: ["#f9c9a8", "#c0392b"], freed: ["#e4e4e4", "#57606a"], block: ["#f6f8fa", "#b7bdc6"],
    ink: "#24292f", quiet: "#57606a", edge: "#57606a", way: "#d97706", mark: "#0969da",
    ramp: ["#a9bce8", "#c3d0ee", "#c9e6ea", "#e3f3dc", "#d2ecca", "#c0e3b6", "#fbe3a0", "#f2a9a0"],
  },
  dark: {
    op: ["#1c2f4a", "#5b8fd0"], box: ["#33264f", "#9a7fd6"], leaf: ["#1d3b24", "#57ab5a"], constant: ["#0d1117", "#768390"],
    cut: ["#b3261e", "#ff7b72"], fault: ["#5a2d16", "#ff7b72"], freed: ["#2b3036", "#9198a1"], block: ["#11161d", "#3d444d"],
    ink: "#e6edf3", quiet: "#9198a1", edge: "#7d8590", way: "#f0a742", mark: "#58a6ff",
    ramp: ["#22346b", "#2a3f66", "#1f4a52", "#25402a", "#275030", "#2b6034", "#6b5518", "#7d2f2a"],
  },
};

// --- one graph -------------------------------------------------------------------------------------------------------

class Graph {
  constructor(plain) {
    Object.assign(this, plain);
    for (const one of [...this.nodes, ...this.blocks, this]) one.stack = data.stacks[one.stack];
    for (const one of [...this.nodes, ...this.blocks]) {
      one.search = [one.title, one.place, one.text, ...one.facts.map((fact) => fact[1])].join(" ").toLowerCase();
    }
    this.node = new Map(this.nodes.map((node) => [node.id, node]));
    this.block = new Map(this.blocks.map((block) => [block.id, block]));
    this.open = new Set(this.blocks.filter((block) => block.open).map((block) => block.id));
    this.sources = new Map();
    this.users = new Map();
    // what was found at the line of a node marks it, and the blocks around it
    this.found = new Set();
    for (const node of this.nodes) {
      if (!findingsAt(node).length) continue;
      this.found.add("n" + node.id);
      for (const block of this.around(node)) this.found.add("r" + block);
    }
    for (const [user, source] of this.edges) {
      push(this.sources, user, source);
      push(this.users, source, user);
    }
  }

  // blocks around a block or node, innermost first
  around(thing) {
    const found = [];
    for (let id = thing.block; id; id = this.block.get(id).block) found.push(id);
    return found;
  }

  // what a node is drawn as: the outermost closed block around it, or itself
  drawn(id) {
    const closed = this.around(this.node.get(id)).filter((block) => !this.open.has(block));
    return closed.length ? "r" + closed[closed.length - 1] : "n" + id;
  }

  reveal(thing) {
    for (const block of this.around(thing)) this.open.add(block);
  }

  // the nodes that a drawn thing stands for
  members(drawn) {
    if (drawn[0] === "n") return [parseInt(drawn.slice(1), 10)];
    const block = Number(drawn.slice(1));
    return this.nodes.filter((node) => this.around(node).includes(block)).map((node) => node.id);
  }

  elements() {
    const shown = new Map();
    const edges = new Map();
    const seen = new Map(this.nodes.map((node) => [node.id, this.drawn(node.id)]));
    const show = (id, plain, block, extra) => shown.has(id) || shown.set(id, { ...plain, ...extra, id, inside: block });
    for (const node of this.nodes) {
      const drawn = seen.get(node.id);
      if (drawn[0] === "r") {
        const block = this.block.get(Number(drawn.slice(1)));
        show(drawn, block, block.block, { kind: block.fault ? "freed" : "box" });
      } else if (!isEnd(node) || !this.users.has(node.id)) {
        show(drawn, node, node.block);
      }
    }
    for (const [user, source, label] of this.edges) {
      const end = this.node.get(source);
      const near = seen.get(user);
      let far = seen.get(source);
      if (near === far) continue;
      if (isEnd(end)) {
        // a leaf stands beside each operation that uses it: drawn once, it would tie the picture to one point
        if (near[0] === "r") continue;
        far = "n" + source + "u" + user;
        show(far, end, this.node.get(user).block, { copyOf: source });
      }
      const key = far + ">" + near;
      if (edges.has(key)) edges.get(key).times += 1;
      else edges.set(key, { id: key, source: far, target: near, label, times: 1, dashed: end.kind === "constant" || end.kind === "cut", end: isEnd(end) });
    }
    for (const block of this.blocks) {
      const visible = this.around(block).every((id) => this.open.has(id));
      if (this.open.has(block.id) && visible) shown.set("r" + block.id, { ...block, id: "r" + block.id, inside: block.block, kind: "block" });
    }
    for (const one of shown.values()) one.found = this.found.has(one.id) && one.kind !== "block";
    return { nodes: [...shown.values()], edges: [...edges.values()] };
  }

  // every node that lies between the roots and this one
  ways(ids) {
    const found = new Set();
    const waiting = [...ids];
    while (waiting.length) {
      const id = waiting.pop();
      if (!found.has(id)) {
        found.add(id);
        waiting.push(...(this.users.get(id) || []));
      }
    }
    return found;
  }
}

const findingsAt = (node) => (node.kind === "op" && node.stack.length ? (data.findings || []).filter((one) => one.places.has(node.stack[0][0] + ":" + node.stack[0][1])) : []);
const push = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));
const isEnd = (node) => node.kind === "leaf" || node.kind === "constant";

// --- the picture -----------------------------------------------------------------------------------------------------

const NONE = { name: "", title: data.title, header: [], warnings: [], stack: 0, roots: [], nodes: [], edges: [], blocks: [] };
for (const one of data.findings || []) {
  one.stack = data.stacks[one.stack];
  one.related = one.related.map(([stack, message]) => [data.stacks[stack], message]);
  one.places = new Set([one.stack, ...one.related.map(([stack]) => stack)].map(([at]) => at[0] + ":" + at[1]));
}
const graphs = (data.graphs.length ? data.graphs : [NONE]).map((plain) => new Graph(plain));
let graph = graphs[0];
let viz;
let theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

const cy = cytoscape({
  container: $("graph"),
  minZoom: 0.02,
  maxZoom: 4,
  boxSelectionEnabled: false,
  autoungrabify: true,
  hideEdgesOnViewport: false,
  textureOnViewport: false,
});

function style() {
  const look = LOOKS[theme];
  const fill = (node) => (node.data("level") === null || node.data("level") === undefined ? colors(node)[0] : look.ramp[node.data("level")]);
  const colors = (node) => look[node.data("fault") ? "fault" : node.data("kind")] || look.op;
  return [
    { selector: "node", style: {
      label: "data(label)", "text-wrap": "wrap", "text-valign": "center", "font-size": 11, "font-family": "system-ui, sans-serif",
      width: "data(width)", height: "data(height)", shape: "round-rectangle", color: look.ink, "background-color": fill,
      "border-width": 1.2, "border-color": (node) => colors(node)[1], "line-height": 1.25, "min-zoomed-font-size": 2 } },
    { selector: "node[kind = 'box']", style: { shape: "cut-rectangle", "border-width": 2.2 } },
    { selector: "node[kind = 'leaf'], node[kind = 'constant']", style: { shape: "ellipse" } },
    { selector: "node[kind = 'constant']", style: { "border-style": "dashed", color: look.quiet } },
    { selector: "node[kind = 'cut']", style: { shape: "octagon", color: "#ffffff" } },
    { selector: "node[kind = 'freed']", style: { "border-style": "dashed" } },
    { selector: "node[kind = 'block']", style: {
      label: "data(heading)", shape: "round-rectangle", "background-color": look.block[0], "border-color": look.block[1],
      "text-valign": "top", "text-halign": "center", color: look.quiet, padding: 18, "text-margin-y": 16 } },
    { selector: "edge", style: {
      width: 1.3, "line-color": look.edge, "target-arrow-color": look.edge, "target-arrow-shape": "triangle", "arrow-scale": 0.7,
      "curve-style": (edge) => (edge.data("weights") ? "round-segments" : "straight"), "segment-weights": (edge) => edge.data("weights") || [0.5], "segment-distances": (edge) => edge.data("distances") || [0],
      "segment-radii": 12, "edge-distances": "node-position", label: "data(text)", "font-size": 9, color: look.quiet,
      "text-background-color": look.block[0], "text-background-opacity": 0.8, "min-zoomed-font-size": 6 } },
    { selector: "edge[?dashed]", style: { "line-style": "dashed" } },
    { selector: "node[?found]", style: { "border-color": look.fault[1], "border-width": 3, "border-style": "double" } },
    { selector: ".dim", style: { opacity: 0.25 } },
    { selector: "edge.way", style: { "line-color": look.way, "target-arrow-color": look.way, width: 2.6, opacity: 1 } },
    { selector: "node.way", style: { "border-color": look.way, "border-width": 2.6, opacity: 1 } },
    { selector: "node.near", style: { "border-color": look.mark, "border-width": 2.4 } },
    { selector: "edge.near", style: { "line-color": look.mark, "target-arrow-color": look.mark, width: 2.2 } },
    { selector: "node:selected", style: { "border-color": look.mark, "border-width": 3.5, opacity: 1 } },
  ];
}

function measured(node) {
  const lines = node.label.split("\n");
  const wide = Math.max(...lines.map((line) => line.length));
  const round = node.kind === "leaf" || node.kind === "constant" || node.kind === "cut";
  return { width: wide * 6.1 + (round ? 30 : 18), height: lines.length * 14 + (round ? 14 : 10) };
}

// places of nodes and bends of edges, by their ids, from Graphviz: rows from the inputs down to the loss
function laidOut(nodes, edges) {
  const inch = (pixels) => (pixels / 72).toFixed(3);
  const inner = new Map();
  for (const node of nodes) push(inner, node.inside || 0, node);
  const part = (block) => (inner.get(block) || []).map((node) => (node.kind === "block"
    ? `subgraph "cluster_${node.id}" { margin=30; ${part(Number(node.id.slice(1)))} }`
    : `"${node.id}" [width=${inch(node.width)}, height=${inch(node.height)}];`)).join("\n");
  const lines = edges.map((edge) => `"${edge.source}" -> "${edge.target}" [id="${edge.id}", weight=${edge.dashed || edge.end ? 1 : 8}];`);
  const text = `digraph { nodesep=0.25; ranksep=0.35; node [shape=box, fixedsize=true, label=""]; edge [dir=none];
    ${part(0)}\n${lines.join("\n")} }`;
  const found = JSON.parse(viz.renderString(text, { format: "json0" }));
  const point = (pair) => { const [x, y] = pair.split(",").map(Number); return { x, y: -y }; };
  const places = new Map((found.objects || []).filter((one) => one.pos).map((one) => [one.name, point(one.pos)]));
  const ways = new Map((found.edges || []).map((edge) => [edge.id, curve(edge.pos.split(" ").map(point))]));
  return { places, ways };
}

// points along a curve that is given as pieces of four points each, the last of one the first of the next
function curve(points) {
  const found = [];
  for (let at = 0; at + 3 < points.length; at += 3) {
    const [a, b, c, d] = points.slice(at, at + 4);
    for (const t of [0.25, 0.5, 0.75, 1]) {
      const [u, v, w, z] = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3];
      found.push({ x: u * a.x + v * b.x + w * c.x + z * d.x, y: u * a.y + v * b.y + w * c.y + z * d.y });
    }
  }
  return found.slice(0, -1);
}

// the bends of a line, as cytoscape wants them: how far along the straight line, and how far beside it
function bends(edge, { places, ways }) {
  const from = places.get(edge.source);
  const to = places.get(edge.target);
  const [x, y] = [to.x - from.x, to.y - from.y];
  const square = x * x + y * y || 1;
  const points = ways.get(edge.id) || [];
  const weights = points.map((point) => ((point.x - from.x) * x + (point.y - from.y) * y) / square);
  const distances = points.map((point) => ((point.y - from.y) * x - (point.x - from.x) * y) / Math.sqrt(square));
  return distances.some((one) => Math.abs(one) > 3) ? { weights, distances } : {};
}

function draw(keep) {
  const { nodes, edges } = graph.elements();
  if (nodes.length > MOST) {
    say(`${nodes.length.toLocaleString("en")} shapes are too many to lay out; open boxes one by one, or search`);
    return false;
  }
  const before = keep && cy.getElementById(keep).nonempty() ? cy.getElementById(keep).renderedPosition() : null;
  for (const node of nodes) Object.assign(node, measured(node));
  let layout;
  try {
    layout = laidOut(nodes, edges);
  } catch (error) {
    say(`no layout: ${error.message}`);
    return false;
  }
  const elements = [
    ...nodes.map((node) => ({
      group: "nodes",
      data: { ...node, parent: node.inside ? "r" + node.inside : undefined },
      position: layout.places.get(node.id),
    })),
    ...edges.map((edge) => ({
      group: "edges",
      data: { ...edge, ...bends(edge, layout), text: edge.times > 1 ? "× " + edge.times : edge.label || "" },
    })),
  ];
  cy.batch(() => {
    cy.elements().remove();
    cy.add(elements);
  });
  cy.style(style());
  const anchor = keep ? cy.getElementById(keep) : cy.collection();
  if (before && anchor.nonempty()) {
    const now = anchor.renderedPosition();
    cy.panBy({ x: before.x - now.x, y: before.y - now.y });
  } else {
    fit();
  }
  return true;
}

function fit() {
  cy.fit(undefined, 24);
  if (cy.zoom() > 1.2) {
    cy.zoom(1.2);
    cy.center();
  }
  if (cy.zoom() < SMALLEST && cy.nodes().nonempty()) {
    // all of it would be dots: a graph that long is read from its end, the loss
    cy.zoom(0.6);
    const root = cy.getElementById(graph.drawn(graph.roots[0]));
    const box = root.renderedBoundingBox();
    cy.panBy({ x: cy.width() / 2 - (box.x1 + box.x2) / 2, y: cy.height() - 60 - box.y2 });
  }
}

function say(text) {
  $("said").textContent = text;
  $("said").hidden = false;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { $("said").hidden = true; }, 6000);
}

// --- opening and closing ---------------------------------------------------------------------------------------------

function toggle(drawn) {
  if (!drawn || drawn[0] !== "r") return;
  const block = Number(drawn.slice(1));
  const was = new Set(graph.open);
  if (!graph.open.delete(block)) graph.open.add(block);
  if (!draw(drawn)) graph.open = was;
  choose(drawn);
}

function setAll(open) {
  const was = new Set(graph.open);
  graph.open = new Set(open ? graph.blocks.map((block) => block.id) : []);
  if (!draw()) graph.open = was;
  about(null);
}

// --- choosing --------------------------------------------------------------------------------------------------------

function choose(id, center) {
  cy.elements().unselect();
  cy.elements().removeClass("way dim near");
  const found = cy.getElementById(id);
  if (found.empty()) return about(null);
  found.select();
  const copied = found.data("copyOf");
  const ids = copied ? [copied] : graph.members(id);
  const ways = graph.ways(ids);
  if (found.data("kind") !== "block") {
    const reached = new Set([...ways].map((one) => graph.drawn(one)));
    cy.nodes().forEach((node) => {
      const mine = node.data("copyOf") ? node.data("copyOf") === copied : reached.has(node.id()) || node.id() === id;
      node.addClass(mine ? "way" : node.isParent() ? "" : "dim");
    });
    cy.edges().forEach((edge) => edge.addClass(edge.source().hasClass("way") && edge.target().hasClass("way") ? "way" : "dim"));
  }
  if (center) cy.animate({ center: { eles: found }, zoom: Math.max(cy.zoom(), 0.8) }, { duration: 200 });
  about(found);
}

function goTo(thing) {
  // `thing` is a node or block of the graph's data
  const hidden = graph.around(thing).some((block) => !graph.open.has(block));
  graph.reveal(thing);
  if (hidden && !draw()) return;
  const drawn = thing.isBlock ? "r" + thing.id : "n" + thing.id;
  const copy = cy.nodes().filter((node) => node.data("copyOf") === thing.id).first();
  choose(cy.getElementById(drawn).nonempty() ? drawn : copy.id(), true);
}

const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};

function about(found) {
  const panel = $("panel");
  panel.replaceChildren();
  if (!found) return overview(panel);
  const plain = found.data();
  panel.append(element("h1", plain.title));
  for (const fault of plain.faults || []) panel.append(element("p", fault, "fault"));
  for (const one of plain.kind === "op" ? findingsAt(plain) : []) panel.append(element("p", `${one.level} ${one.rule}: ${one.message}`, "fault"));
  const facts = element("dl");
  for (const [name, value] of plain.facts) facts.append(element("dt", name), element("dd", value));
  panel.append(facts);
  if (plain.kind === "box" || plain.kind === "freed" || plain.kind === "block") {
    const button = element("button", plain.kind === "block" ? "Close this box (Enter)" : "Open this box (Enter)");
    button.onclick = () => toggle(plain.id);
    panel.append(button);
  }
  for (const at of plain.stack) source(panel, at);
  neighbours(panel, found);
}

function source(panel, [file, line, where]) {
  panel.append(element("h2", where));
  const text = element("pre");
  const lines = data.sources[file] || {};
  for (let at = line - 3; at <= line + 3; at++) {
    if (lines[at] === undefined) continue;
    const row = element("div", undefined, at === line ? "here" : "");
    row.append(element("span", String(at)), lines[at]);
    text.append(row);
  }
  if (text.children.length) panel.append(text);
}

function neighbours(panel, found) {
  for (const [heading, nodes] of [["used by", found.outgoers("node")], ["reads", found.incomers("node")]]) {
    if (nodes.empty()) continue;
    panel.append(element("h2", heading));
    const list = element("ul");
    nodes.slice(0, 12).forEach((node) => {
      const item = element("li");
      const link = element("a", node.data("title"));
      link.onclick = () => choose(node.id(), true);
      item.append(link);
      list.append(item);
    });
    if (nodes.length > 12) list.append(element("li", `${nodes.length - 12} more`));
    panel.append(list);
  }
}

function listed(panel) {
  if (!data.findings) return;
  panel.append(element("h1", data.title));
  if (!data.findings.length) panel.append(element("p", "no gradient faults"));
  for (const one of data.findings) {
    const times = one.occurrences > 1 ? `  (${one.occurrences} times)` : "";
    panel.append(element("h2", `${one.level} ${one.rule}${times}`));
    const link = element("a", one.message);
    link.onclick = () => reach(one);
    const text = element("p");
    text.append(link);
    panel.append(text);
    for (const at of one.stack) source(panel, at);
    for (const [stack, message] of one.related) {
      panel.append(element("p", message));
      for (const at of stack) source(panel, at);
    }
    panel.append(element("p", "help: " + one.help));
    if (one.fix) {
      panel.append(element("p", "fix: " + one.fix));
      const diff = element("pre");
      for (const row of one.diff) diff.append(element("div", row, { "+": "added", "-": "removed" }[row[0]] || ""));
      panel.append(diff);
    }
  }
}

// chooses the first node at a line of a finding, in whichever graph it is
function reach(one) {
  for (const [number, other] of graphs.entries()) {
    const node = other.nodes.find((node) => findingsAt(node).includes(one));
    if (!node) continue;
    if (other !== graph) {
      $("which").value = String(number);
      show(number);
    }
    goTo(node);
    return;
  }
  say("no node of the graphs was made at these lines");
}

function overview(panel) {
  listed(panel);
  if (!graph.nodes.length) return;
  panel.append(element("h1", graph.title));
  for (const line of graph.header) panel.append(element("p", line));
  for (const line of graph.warnings) panel.append(element("p", line, "fault"));
  for (const at of graph.stack) source(panel, at);
  panel.append(element("h2", "keys"));
  const keys = element("dl");
  const known = [["/", "search"], ["Enter", "open or close the chosen box"], ["↑ ↓ ← →", "follow the edges, or move the picture"], ["+ − 0", "zoom, fit"],
    ["o c", "open all, close all"], ["d", "light or dark"], ["Esc", "choose nothing"]];
  for (const [key, what] of known) {
    const term = element("dt");
    term.append(element("kbd", key));
    keys.append(term, element("dd", what));
  }
  panel.append(keys);
}

// --- search ----------------------------------------------------------------------------------------------------------

let hits = [];
let hit = 0;

function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...graph.blocks.map((block) => ({ ...block, isBlock: true })), ...graph.nodes];
  const first = (one) => (words.every((word) => one.title.toLowerCase().includes(word)) ? 0 : 1);
  const found = words.length ? all.filter((one) => words.every((word) => one.search.includes(word))) : [];
  hits = found.sort((a, b) => first(a) - first(b)).slice(0, 200);
  hit = 0;
  const list = $("hits");
  list.replaceChildren(...hits.map((one, number) => {
    const item = element("li", one.title + (one.place ? "   " + one.place : ""));
    item.onclick = () => take(number);
    return item;
  }));
  if (words.length && !hits.length) list.append(element("li", "nothing found", "none"));
  list.hidden = !words.length;
  mark();
}

function mark() {
  [...$("hits").children].forEach((item, number) => {
    item.setAttribute("aria-selected", String(number === hit && hits.length > 0));
    if (number === hit) item.scrollIntoView({ block: "nearest" });
  });
}

function take(number) {
  if (!hits[number]) return;
  $("hits").hidden = true;
  $("graph").focus();
  goTo(hits[number]);
}

// --- keys, pointer ---------------------------------------------------------------------------------------------------

function follow(direction) {
  const chosen = cy.nodes(":selected").first();
  const step = { ArrowUp: [0, 60], ArrowDown: [0, -60], ArrowLeft: [60, 0], ArrowRight: [-60, 0] }[direction];
  if (chosen.empty()) return cy.panBy({ x: step[0], y: step[1] });
  if (direction === "ArrowUp" || direction === "ArrowDown") {
    const next = direction === "ArrowUp" ? chosen.incomers("node") : chosen.outgoers("node");
    if (next.nonempty()) choose(next.first().id(), true);
    return undefined;
  }
  const side = direction === "ArrowLeft" ? -1 : 1;
  const row = cy.nodes().filter((node) => !node.isParent() && Math.abs(node.position("y") - chosen.position("y")) < 40);
  const beside = row.filter((node) => side * (node.position("x") - chosen.position("x")) > 1).sort((a, b) => side * (a.position("x") - b.position("x")));
  if (beside.nonempty()) choose(beside.first().id(), true);
  return undefined;
}

const zoom = (factor) => cy.stop().zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });

const KEYS = {
  "/": () => $("search").focus(), "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit, o: () => setAll(true), c: () => setAll(false),
  d: () => setTheme(theme === "dark" ? "light" : "dark"), "?": () => choose(""), Escape: () => choose(""),
  Enter: () => toggle(cy.nodes(":selected").first().id()),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === $("search")) {
    if (event.key === "Escape") { $("hits").hidden = true; $("graph").focus(); }
    if (event.key === "Enter") take(hit);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      hit = Math.min(Math.max(hit + (event.key === "ArrowDown" ? 1 : -1), 0), Math.max(hits.length - 1, 0));
      mark();
      event.preventDefault();
    }
    return;
  }
  if (["SELECT", "BUTTON"].includes(event.target.tagName) && event.key !== "Escape") return;
  if (event.key.startsWith("Arrow")) follow(event.key);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

cy.on("tap", (event) => (event.target === cy ? choose("") : event.target.isNode() && choose(event.target.id())));
cy.on("dbltap", "node", (event) => toggle(event.target.id()));
cy.on("mouseover", "node", (event) => {
  const node = event.target;
  if (node.data("kind") === "block") return;
  node.addClass("near");
  node.connectedEdges().addClass("near");
  const tip = $("tip");
  tip.textContent = [node.data("title"), ...(node.data("faults") || []), ...node.data("facts").map((fact) => fact.join(": ")), node.data("text")].filter(Boolean).join("\n");
  tip.hidden = false;
  const at = node.renderedBoundingBox();
  tip.style.left = Math.min(at.x2 + 8, cy.width() - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.max(Math.min(at.y1, cy.height() - tip.offsetHeight - 8), 8) + "px";
});
cy.on("mouseout viewport", () => {
  cy.elements(".near").removeClass("near");
  $("tip").hidden = true;
});

function setTheme(name) {
  theme = name;
  document.documentElement.dataset.theme = name;
  cy.style(style());
}

function show(number) {
  graph = graphs[number];
  $("search").value = "";
  search();
  draw();
  about(null);
}

graphs.forEach((one, number) => $("which").append(new Option(one.name, number)));
$("which").hidden = graphs.length < 2;
$("which").onchange = (event) => show(Number(event.target.value));
$("search").oninput = search;
$("search").onblur = () => setTimeout(() => { $("hits").hidden = true; }, 200);
$("open-all").onclick = () => setAll(true);
$("close-all").onclick = () => setAll(false);
$("fit").onclick = fit;
$("zoom-in").onclick = () => zoom(1.25);
$("zoom-out").onclick = () => zoom(0.8);
$("theme").onclick = () => setTheme(theme === "dark" ? "light" : "dark");
$("help").onclick = () => choose("");
setTheme(theme);
Viz.instance().then((made) => {
  viz = made;
  show(0);
});
