"use strict";
// Where the names of a graph stand: the first half of the page's script (page.js follows).
// A node has at, near (a set of nodes), degree, x, y, dx, dy, held; an edge has from and to.
function layout(nodes, edges, byDegree) {
  const linked = byDegree.filter((node) => node.near.size > 0);
  const alone = nodes.filter((node) => node.near.size === 0);

  // Springs along statements, repulsion between all, a little gravity; cooling, a capped number of
  // rounds, and a start without chance: the same graph looks the same every time.
  const IDEAL = 95;
  const rounds = Math.round(Math.max(80, Math.min(320, 150000 / Math.max(1, linked.length))));

  function place() {
    const order = [];
    const seen = new Set();
    for (const root of byDegree) {
      const queue = [root];
      while (queue.length) {
        const node = queue.shift();
        if (seen.has(node) || node.near.size === 0) continue;
        seen.add(node);
        order.push(node);
        queue.push(...node.near);
      }
    }
    order.forEach((node, at) => {
      const far = IDEAL * 0.62 * Math.sqrt(at + 0.5);
      const angle = at * 2.399963229728653; // the golden angle: an even spread
      node.x = far * Math.cos(angle);
      node.y = far * Math.sin(angle);
    });
  }

  function relax(round) {
    const heat = IDEAL * 0.55 * (1 - round / rounds) ** 1.5 + 0.4;
    const reach = IDEAL * (linked.length > 1500 ? 4 : 9);
    const weight = 0.008 + 0.5 / Math.max(1, linked.length); // a few parts would fly far apart
    for (const node of linked) {
      node.dx = -node.x * weight;
      node.dy = -node.y * weight * 1.8; // a screen is wider than high
    }
    repel(reach);
    for (const edge of edges) {
      const { from, to } = edge;
      if (from === to) continue;
      const x = to.x - from.x;
      const y = to.y - from.y;
      const far = Math.hypot(x, y) || 0.01;
      // a hub's many springs pull it less each, or it would swallow its neighbours
      const pull = (far - IDEAL) / far * 0.6 / Math.sqrt(Math.min(from.degree, to.degree));
      from.dx += x * pull; from.dy += y * pull;
      to.dx -= x * pull; to.dy -= y * pull;
    }
    for (const node of linked) {
      if (node.held) continue;
      const far = Math.hypot(node.dx, node.dy) || 0.01;
      const step = Math.min(far, heat) / far;
      node.x += node.dx * step;
      node.y += node.dy * step;
    }
  }

  function repel(reach) {
    const push = (a, b) => {
      let x = a.x - b.x;
      let y = a.y - b.y;
      let square = x * x + y * y;
      if (square > reach * reach) return;
      if (square < 1) { x = (a.at - b.at) % 7 || 1; y = (a.at * b.at) % 5 || 1; square = 25; }
      const force = (IDEAL * IDEAL * 0.42) / square;
      a.dx += x * force; a.dy += y * force;
      b.dx -= x * force; b.dy -= y * force;
    };
    const cells = new Map(); // far apart does not count: each looks into the cells around its own
    for (const node of linked) {
      const key = `${Math.floor(node.x / reach)} ${Math.floor(node.y / reach)}`;
      if (!cells.has(key)) cells.set(key, []);
      cells.get(key).push(node);
    }
    for (const [key, cell] of cells) {
      const [column, row] = key.split(" ").map(Number);
      cell.forEach((node, i) => { for (let j = 0; j < i; j += 1) push(node, cell[j]); });
      for (const [right, down] of [[1, 0], [-1, 1], [0, 1], [1, 1]])
        for (const other of cells.get(`${column + right} ${row + down}`) || [])
          for (const node of cell) push(node, other);
    }
  }

  function placeAlone() {
    // What no statement joins to anything stands in rows below the rest.
    const box = bounds(linked);
    const columns = Math.max(4, Math.ceil(Math.sqrt(alone.length * 2)));
    const left = (box.left + box.right) / 2 - ((columns - 1) * 130) / 2;
    alone.forEach((node, at) => {
      node.x = left + (at % columns) * 130;
      node.y = (linked.length ? box.bottom + 110 : 0) + Math.floor(at / columns) * 46;
    });
  }

  function bounds(some) {
    const box = { left: 0, right: 0, top: 0, bottom: 0 };
    some.forEach((node, at) => {
      box.left = at ? Math.min(box.left, node.x) : node.x;
      box.right = at ? Math.max(box.right, node.x) : node.x;
      box.top = at ? Math.min(box.top, node.y) : node.y;
      box.bottom = at ? Math.max(box.bottom, node.y) : node.y;
    });
    return box;
  }

  return { place, relax, placeAlone, bounds, rounds };
}
