// What the page shows and what hands do with it; layout.js stands before it.
(() => {
  const graph = JSON.parse(document.getElementById("graph").textContent);
  const KINDS = {
    knowledge: "Knowledge", rule: "Rule", taboo: "Taboo", memory: "Memory", "work-unit": "Work unit",
    summary: "Summary", session: "Session", message: "Message", name: "Name without an entry",
  };
  const LISTED = 300; // names in the list at once
  const LABELS = 260; // labels drawn at once
  const by = (id) => document.getElementById(id);
  const canvas = by("view");
  const pen = canvas.getContext("2d");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  // --- the graph -------------------------------------------------------------------------------

  const nodes = graph.nodes.map((one, at) => ({
    ...one, at, x: 0, y: 0, dx: 0, dy: 0, degree: 0, near: new Set(), edges: [],
    kind: one.kind in KINDS ? one.kind : "knowledge",
    seek: fold([one.name, ...one.synonyms, ...one.tags, one.text].join("\n")),
  }));
  const edges = graph.edges.map(([from, to, predicate, text]) => ({
    from: nodes[from], to: nodes[to], predicate, text, bend: 0,
  }));
  const together = new Map();
  for (const edge of edges) {
    const low = Math.min(edge.from.at, edge.to.at);
    const key = `${low} ${edge.from.at + edge.to.at - low}`;
    if (!together.has(key)) together.set(key, []);
    together.get(key).push(edge);
    edge.from.edges.push(edge);
    if (edge.from !== edge.to) edge.to.edges.push(edge);
    edge.from.degree += 1;
    edge.to.degree += 1;
    edge.from.near.add(edge.to);
    edge.to.near.add(edge.from);
  }
  for (const group of together.values()) {
    group.forEach((edge, place) => {
      // several statements between the same two: each gets a bow of its own
      const bend = (place - (group.length - 1) / 2) * 44;
      edge.bend = edge.from.at <= edge.to.at ? bend : -bend;
    });
  }
  for (const node of nodes) node.radius = 5 + 2.2 * Math.sqrt(Math.min(node.degree, 60));
  const byDegree = [...nodes].sort((a, b) => b.degree - a.degree || a.at - b.at);

  function fold(text) {
    return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  }

  const { place, relax, placeAlone, bounds, rounds } = layout(nodes, edges, byDegree);
  let round = 0;

  // --- what is shown ---------------------------------------------------------------------------

  const look = { scale: 1, x: 0, y: 0, moved: false };
  const hidden = new Set();
  let colours = {};
  let selected = null;
  let over = null;
  let wanted = ""; // what is searched for
  let matches = null; // null: everything
  let drawing = false;

  const visible = (node) => !hidden.has(node.kind);

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const names = ["ground", "ink", "quiet", "edge", "halo", "mark", ...Object.keys(KINDS)];
    colours = Object.fromEntries(names.map((one) => [one, style.getPropertyValue(`--${one}`).trim()]));
  }

  function size() {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = canvas.getBoundingClientRect();
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    if (!look.moved) fit();
    paint(); // at once: giving it a size has emptied the canvas
  }

  function fit() {
    const { width, height } = canvas.getBoundingClientRect();
    const box = bounds(nodes.filter(visible));
    const margin = 60;
    const legendHigh = by("legend").offsetHeight + 24;
    const wide = Math.max(1, box.right - box.left);
    const high = Math.max(1, box.bottom - box.top);
    look.scale = Math.max(0.02, Math.min(1.6, (width - 2 * margin) / wide, (height - margin - legendHigh - 40) / high));
    look.x = width / 2 - ((box.left + box.right) / 2) * look.scale;
    look.y = (height - legendHigh + 20) / 2 - ((box.top + box.bottom) / 2) * look.scale;
    look.moved = false;
    draw();
  }

  function zoom(factor, x, y) {
    const { width, height } = canvas.getBoundingClientRect();
    const [px, py] = x === undefined ? [width / 2, height / 2] : [x, y];
    const scale = Math.max(0.02, Math.min(6, look.scale * factor));
    look.x = px - ((px - look.x) / look.scale) * scale;
    look.y = py - ((py - look.y) / look.scale) * scale;
    look.scale = scale;
    look.moved = true;
    draw();
  }

  function move(x, y) {
    look.x += x;
    look.y += y;
    look.moved = true;
    draw();
  }

  function draw() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; paint(); });
  }

  const grown = () => Math.min(1.4, Math.max(0.48, Math.sqrt(look.scale)));
  const onScreen = (node) => [node.x * look.scale + look.x, node.y * look.scale + look.y];

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.width / ratio;
    const height = canvas.height / ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colours.ground;
    pen.fillRect(0, 0, width, height);
    pen.lineCap = "round";
    const focus = over || selected;
    const lit = focus ? new Set([focus, ...focus.near]) : matches;
    const words = []; // labels of edges, drawn last
    for (const edge of edges) {
      if (!visible(edge.from) || !visible(edge.to)) continue;
      const near = focus && (edge.from === focus || edge.to === focus);
      pen.globalAlpha = lit && !near && !(matches && !focus && lit.has(edge.from) && lit.has(edge.to)) ? 0.18 : 1;
      pen.strokeStyle = pen.fillStyle = near ? colours.ink : colours.edge;
      pen.lineWidth = near ? 1.8 : 1.1;
      const middle = paintEdge(edge, width, height);
      if (middle && (near || !lit)) words.push([edge, middle, near]);
    }
    pen.globalAlpha = 1;
    for (const node of nodes) if (visible(node)) paintNode(node, width, height, lit);
    pen.globalAlpha = 1;
    if (!document.body.dataset.ready) return; // names would only flicker while everything moves
    const taken = [];
    paintNames(taken, width, height, lit, focus);
    paintPredicates(words, taken);
  }

  function paintEdge(edge, width, height) {
    const [ax, ay] = onScreen(edge.from);
    const [bx, by_] = onScreen(edge.to);
    if (Math.max(ax, bx) < -80 || Math.min(ax, bx) > width + 80) return null;
    if (Math.max(ay, by_) < -80 || Math.min(ay, by_) > height + 80) return null;
    const size = grown();
    if (edge.from === edge.to) {
      const r = (edge.from.radius + 8) * size;
      pen.beginPath();
      pen.arc(ax, ay - r - 2, r, 0.6 * Math.PI, 2.4 * Math.PI);
      pen.stroke();
      return { x: ax, y: ay - 2 * r - 4, room: Infinity };
    }
    const far = Math.hypot(bx - ax, by_ - ay) || 0.01;
    const nx = (by_ - ay) / far;
    const ny = (ax - bx) / far;
    const bow = edge.bend * size;
    const cx = (ax + bx) / 2 + nx * bow;
    const cy = (ay + by_) / 2 + ny * bow;
    const tip = Math.hypot(bx - cx, by_ - cy) || 0.01;
    const ux = (bx - cx) / tip;
    const uy = (by_ - cy) / tip;
    const stop = edge.to.radius * size + 3;
    const ex = bx - ux * stop;
    const ey = by_ - uy * stop;
    pen.beginPath();
    pen.moveTo(ax, ay);
    pen.quadraticCurveTo(cx, cy, ex, ey);
    pen.stroke();
    const head = 7 * size;
    pen.beginPath();
    pen.moveTo(ex, ey);
    pen.lineTo(ex - ux * head - uy * head * 0.45, ey - uy * head + ux * head * 0.45);
    pen.lineTo(ex - ux * head + uy * head * 0.45, ey - uy * head - ux * head * 0.45);
    pen.fill();
    return { x: (ax + 2 * cx + bx) / 4, y: (ay + 2 * cy + by_) / 4, room: far - 2 * stop };
  }

  function paintNode(node, width, height, lit) {
    const [x, y] = onScreen(node);
    if (x < -60 || y < -60 || x > width + 60 || y > height + 60) return;
    const r = node.radius * grown();
    pen.globalAlpha = lit && !lit.has(node) ? 0.22 : 1;
    pen.beginPath();
    pen.arc(x, y, r, 0, 2 * Math.PI);
    pen.fillStyle = node.kind === "name" ? colours.ground : colours[node.kind];
    pen.strokeStyle = node.kind === "name" ? colours.name : colours.halo;
    pen.lineWidth = node.kind === "name" ? 2 : 1.5;
    pen.fill();
    pen.stroke();
    if (node === selected || (matches && matches.size < 80 && matches.has(node))) {
      pen.beginPath();
      pen.arc(x, y, r + 4, 0, 2 * Math.PI);
      pen.strokeStyle = node === selected ? colours.ink : colours.mark;
      pen.lineWidth = 2;
      pen.stroke();
    }
  }

  const shorten = (text, most) => {
    const letters = [...text.replace(/\s+/gu, " ")];
    return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join("");
  };

  function room(taken, box) {
    for (const one of taken)
      if (box.left < one.right && one.left < box.right && box.top < one.bottom && one.top < box.bottom) return false;
    taken.push(box);
    return true;
  }

  function write(text, x, y, colour) {
    pen.lineWidth = 3.5;
    pen.lineJoin = "round";
    pen.strokeStyle = colours.halo;
    pen.strokeText(text, x, y);
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
  }

  function paintNames(taken, width, height, lit, focus) {
    const first = [...new Set([over, selected, ...(lit ? byDegree.filter((one) => lit.has(one)) : [])])];
    const order = [...first.filter(Boolean), ...byDegree];
    const done = new Set();
    const size = look.scale < 0.5 ? 11 : 12.5;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const node of order) {
      if (done.has(node) || !visible(node) || taken.length > LABELS) continue;
      done.add(node);
      const [x, y] = onScreen(node);
      if (x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
      const bold = node === selected || node === over;
      pen.font = `${bold ? "600 " : ""}${size}px system-ui, sans-serif`;
      const text = shorten(node.name, bold ? 60 : 30);
      const half = pen.measureText(text).width / 2 + 2;
      const top = y + node.radius * grown() + 3;
      const box = { left: x - half, right: x + half, top, bottom: top + size + 3 };
      if (!room(taken, box) && node !== focus) continue;
      pen.globalAlpha = lit && !lit.has(node) ? 0.35 : 1;
      write(text, x, top, colours.ink);
    }
    pen.globalAlpha = 1;
  }

  function paintPredicates(words, taken) {
    words.sort((a, b) => (b[2] ? 1 : 0) - (a[2] ? 1 : 0));
    pen.textBaseline = "middle";
    for (const [edge, at, near] of words) {
      if (taken.length > 2 * LABELS) return;
      pen.font = `italic ${near ? 12 : 11}px system-ui, sans-serif`;
      const text = shorten(edge.predicate, 28);
      const wide = pen.measureText(text).width;
      if (!near && wide + 6 > at.room) continue;
      const box = { left: at.x - wide / 2, right: at.x + wide / 2, top: at.y - 7, bottom: at.y + 7 };
      if (!room(taken, box)) continue;
      write(text, at.x, at.y, near ? colours.ink : colours.quiet);
    }
  }

  // --- the panel: every text of the store goes through textContent -------------------------------

  function element(name, text, more = {}) {
    const made = Object.assign(document.createElement(name), more);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function spot(kind) {
    const made = element("span", undefined, { className: "dot" });
    made.style.color = `var(--${kind})`;
    if (kind !== "name") made.style.background = "currentColor";
    return made;
  }

  function choice(node, ...before) {
    const button = element("button", undefined, { type: "button" });
    button.append(...before, element("span", node.name, { className: "words", dir: "auto" }));
    button.addEventListener("click", () => select(node, true));
    return button;
  }

  function list() {
    const shownNodes = byDegree.filter((node) => visible(node) && (!matches || matches.has(node)));
    const first = fold(wanted); // what has it in the name comes before what has it in the text
    if (matches) shownNodes.sort((a, b) => fold(b.name).includes(first) - fold(a.name).includes(first));
    const rows = shownNodes.slice(0, LISTED).map((node) => {
      const row = element("li");
      const button = choice(node, spot(node.kind));
      button.setAttribute("aria-current", String(node === selected));
      button.dataset.at = node.at;
      row.append(button);
      return row;
    });
    by("list").replaceChildren(...rows);
    const more = shownNodes.length > LISTED ? `, the first ${LISTED} listed` : "";
    by("found").textContent = wanted
      ? `${shownNodes.length} of ${nodes.length} match${more}`
      : `${shownNodes.length} names${more}`;
  }

  function search() {
    wanted = by("search").value.trim();
    const parts = fold(wanted).split(/\s+/u).filter(Boolean);
    matches = parts.length
      ? new Set(nodes.filter((node) => parts.every((part) => node.seek.includes(part))))
      : null;
    list();
    draw();
  }

  function select(node, follow) {
    selected = node;
    for (const button of by("list").querySelectorAll("button"))
      button.setAttribute("aria-current", String(node !== null && Number(button.dataset.at) === node.at));
    tell(node);
    try {
      history.replaceState(null, "", node ? `#${encodeURIComponent(node.name)}` : location.pathname);
    } catch { /* a page opened from a file may not be allowed to */ }
    if (node && follow) {
      const { width, height } = canvas.getBoundingClientRect();
      const [x, y] = onScreen(node);
      if (x < 60 || y < 60 || x > width - 60 || y > height - 60) move(width / 2 - x, height / 2 - y);
    }
    draw();
  }

  function tell(node) {
    const panel = by("entry");
    panel.hidden = node === null;
    if (node === null) { panel.replaceChildren(); return; }
    const facts = element("dl");
    const fact = (name, value) => {
      if (value) facts.append(element("dt", name), element("dd", value, { dir: "auto" }));
    };
    fact("Kind", KINDS[node.kind]);
    fact("Also", node.synonyms.join(", "));
    fact("Tags", node.tags.join(", "));
    fact("Scope", node.scopes.map((scope) => scope || "global").join(", "));
    fact("Since", node.since);
    const parts = [element("h2", node.name, { dir: "auto" }), facts];
    if (node.text) parts.push(element("pre", node.text, { dir: "auto" }));
    if (node.cut) parts.push(element("p", "The text goes on; hypatia-mem show prints all of it."));
    if (node.edges.length) {
      parts.push(element("h3", `${node.edges.length} ${node.edges.length === 1 ? "statement" : "statements"}`));
      const rows = element("ul");
      for (const edge of node.edges.slice(0, LISTED)) {
        const out = edge.from === node;
        const row = element("li");
        const how = element("span", out ? `${edge.predicate} →` : `← ${edge.predicate}`, { className: "how", dir: "auto" });
        const button = choice(out ? edge.to : edge.from, how);
        if (edge.text) button.title = edge.text;
        row.append(button);
        rows.append(row);
      }
      parts.push(rows);
    }
    panel.replaceChildren(...parts);
    panel.scrollTop = 0;
  }

  function legend() {
    const count = (kind) => nodes.filter((node) => node.kind === kind).length;
    const rows = Object.keys(KINDS).filter(count).map((kind) => {
      const button = element("button", undefined, { type: "button" });
      button.setAttribute("aria-pressed", "true");
      button.append(spot(kind), element("span", `${KINDS[kind]} ${count(kind)}`));
      button.addEventListener("click", () => {
        if (!hidden.delete(kind)) hidden.add(kind);
        button.setAttribute("aria-pressed", String(!hidden.has(kind)));
        if (selected && !visible(selected)) select(null);
        list();
        draw();
      });
      return button;
    });
    by("legend").replaceChildren(...rows);
  }

  // --- hands -----------------------------------------------------------------------------------

  const fingers = new Map();
  let grabbed = null;
  let travelled = 0;

  function at(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  function under([px, py]) {
    let best = null;
    let least = Infinity;
    for (const node of nodes) {
      if (!visible(node)) continue;
      const [x, y] = onScreen(node);
      const far = Math.hypot(px - x, py - y) - node.radius * grown();
      if (far < 6 && far < least) { best = node; least = far; }
    }
    return best;
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    grabbed = fingers.size === 1 ? under(at(event)) : null;
    if (grabbed) grabbed.held = true;
    travelled = 0;
    canvas.classList.add("held");
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = at(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      const found = under(now);
      if (found !== over) { over = found; canvas.classList.toggle("over", found !== null); draw(); }
      return;
    }
    const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place_]) => place_);
    travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (others.length) {
      const [other] = others;
      const was = Math.hypot(before[0] - other[0], before[1] - other[1]) || 1;
      zoom(Math.hypot(now[0] - other[0], now[1] - other[1]) / was, ...other);
    } else if (grabbed && travelled > 3) {
      grabbed.x += (now[0] - before[0]) / look.scale;
      grabbed.y += (now[1] - before[1]) / look.scale;
      look.moved = true;
      draw();
    } else if (!grabbed) {
      move(now[0] - before[0], now[1] - before[1]);
    }
    fingers.set(event.pointerId, now);
  });
  const release = (event) => {
    if (!fingers.delete(event.pointerId)) return;
    canvas.classList.remove("held");
    if (grabbed) grabbed.held = false;
    if (event.type === "pointerup" && travelled <= 3) select(grabbed, false);
    grabbed = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { if (over) { over = null; draw(); } });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), ...at(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (steps[event.key]) move(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== by("search")) {
      event.preventDefault();
      by("search").focus();
    } else if (event.key === "Escape") {
      if (event.target === by("search") && by("search").value) { by("search").value = ""; search(); }
      else select(null);
    }
  });
  by("list").addEventListener("keydown", (event) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const next = step && event.target.closest("li")[step];
    if (!step) return;
    event.preventDefault();
    if (next) next.firstChild.focus();
    else if (event.key === "ArrowUp") by("search").focus();
  });
  by("search").addEventListener("input", search);
  by("search").addEventListener("keydown", (event) => {
    const first = by("list").querySelector("button");
    if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); }
    if (event.key === "Enter" && first) first.click();
  });
  by("closer").addEventListener("click", () => zoom(1.25));
  by("farther").addEventListener("click", () => zoom(0.8));
  by("fit").addEventListener("click", fit);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); draw(); });
  new ResizeObserver(size).observe(canvas);

  // --- begin -----------------------------------------------------------------------------------

  function settle() {
    const until = performance.now() + (calm.matches ? Infinity : 14);
    while (round < rounds && performance.now() < until) { relax(round); round += 1; }
    if (round < rounds) {
      if (!look.moved) fit();
      requestAnimationFrame(settle);
      return;
    }
    placeAlone();
    if (!look.moved) fit();
    document.body.dataset.ready = "true";
    fromAddress();
    paint();
  }

  function fromAddress() {
    let name = "";
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const node = name && nodes.find((one) => one.name === name);
    if (node) select(node, true);
  }

  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  by("size").textContent = `${plural(nodes.length, "name")}, ${plural(edges.length, "statement")}`;
  canvas.setAttribute("aria-label", `A graph of ${by("size").textContent}; the list beside it holds the names.`);
  readColours();
  place();
  placeAlone();
  legend();
  list();
  size();
  settle();
  // For whoever looks at the page with the browser's tools.
  window.memoryGraph = Object.freeze({ positions: () => nodes.map((node) => [node.x, node.y]), onScreen: (name) => onScreen(nodes.find((node) => node.name === name)) });
})();
