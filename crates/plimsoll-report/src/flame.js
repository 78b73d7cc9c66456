// Brings the flame graphs of a page to life: click to zoom, search, hover, inverted view, root at the bottom.
//
// The picture drawn beforehand is replaced by one drawn from the frames that stand beside it as JSON. Only frames wide
// enough to be seen are in the document at any time, and one handler serves them all: what keeps ten thousand smooth.
// Not here: merging stacks, choosing colours (both come with the data), fetching anything.
(() => {
  "use strict";
  const ROW = 17, TOP = 76, SIDE = 10, CHAR = 7.3, NARROWEST = 0.4;
  const SVG = "http://www.w3.org/2000/svg";

  const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

  // Frames in order, each after its caller: adds where each begins, who called it and where its callees end.
  function laidOut(frames) {
    const length = frames.depth.length;
    const tree = { ...frames, parent: new Int32Array(length), end: new Int32Array(length), x: new Float64Array(length), total: 0 };
    const next = new Float64Array(length), open = [];
    for (let i = 0; i < length; i++) {
      while (open.length > frames.depth[i]) tree.end[open.pop()] = i;
      const caller = open.length ? open[open.length - 1] : -1;
      tree.parent[i] = caller;
      next[i] = tree.x[i] = caller < 0 ? tree.total : next[caller];
      if (caller < 0) tree.total += frames.w[i]; else next[caller] += frames.w[i];
      open.push(i);
    }
    for (const i of open) tree.end[i] = length;
    tree.own = frames.columns.map((column) => {
      const own = Float64Array.from(column);
      for (let i = 0; i < length; i++) if (tree.parent[i] >= 0) own[tree.parent[i]] -= column[i];
      return own;
    });
    return tree;
  }

  // The same costs merged from the leaf: who runs, and under whom. Only what is wide enough to be seen is taken apart.
  function inverted(tree, names) {
    const { own, parent, fn, total } = tree, frames = { depth: [], fn: [], columns: own.map(() => []) };
    // Leaves (as frames of the tree) by the function at their place on the way to the root.
    const grouped = (leaves, places) => {
      const groups = new Map();
      for (let k = 0; k < leaves.length; k++) {
        const place = places[k];
        if (place < 0) continue;
        let group = groups.get(fn[place]);
        if (!group) groups.set(fn[place], (group = { fn: fn[place], sums: own.map(() => 0), leaves: [], callers: [] }));
        for (let c = 0; c < own.length; c++) group.sums[c] += own[c][leaves[k]];
        group.leaves.push(leaves[k]);
        group.callers.push(parent[place]);
      }
      return [...groups.values()].filter((group) => group.sums[0] > total * 4e-5)
        .sort((a, b) => (names[a.fn] < names[b.fn] ? 1 : -1));
    };
    const leaves = [];
    for (let i = 0; i < fn.length; i++) if (own[0][i] > total * 1e-9) leaves.push(i);
    const todo = grouped(leaves, leaves).map((group) => [group, 0]);
    while (todo.length) {
      const [group, depth] = todo.pop();
      frames.depth.push(depth);
      frames.fn.push(group.fn);
      group.sums.forEach((sum, c) => frames.columns[c].push(sum));
      for (const above of grouped(group.leaves, group.callers)) todo.push([above, depth + 1]);
    }
    frames.w = frames.columns[0];
    return laidOut(frames);
  }

  function amount(value, unit) {
    if (value === 0) return "0";
    const sign = value < 0 ? "-" : "", size = Math.abs(value);
    const digits = (x) => x.toFixed(x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
    const scaled = (units, step) => {
      let x = size, k = 0;
      while (k + 1 < units.length && x >= step * 0.9995) { x /= step; k++; }
      return `${sign}${digits(x)} ${units[k]}`;
    };
    if (unit === "nanoseconds" && size >= 7200e9) return `${sign}${digits(size / 3600e9)} h`;
    if (unit === "nanoseconds" && size >= 119.5e9) {
      const seconds = Math.round(size / 1e9);
      return `${sign}${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, "0")} s`;
    }
    if (unit === "nanoseconds") return scaled(["ns", "us", "ms", "s"], 1000);
    if (unit === "bytes") return scaled(["B", "KiB", "MiB", "GiB", "TiB"], 1024);
    if (unit === "percent") return `${sign}${digits(size)} %`;
    const count = Number.isInteger(size) ? String(size).replace(/\B(?=(\d{3})+$)/g, " ") : digits(size);
    return `${sign}${count}${unit === "count" ? "" : " " + unit}`;
  }

  // Dearer is red, cheaper blue, what may be chance is grey: as the picture drawn beforehand has it.
  function changeColour(before, after, variance) {
    const delta = after - before, mean = (Math.abs(after) + Math.abs(before)) / 2;
    if (!mean || (variance > 0 && Math.abs(delta) < 2 * Math.sqrt(variance))) return "#d9d9d4";
    const t = Math.min(1, Math.abs(delta) / mean), low = Math.round(215 - 135 * t), mid = Math.round(215 - 110 * t);
    return delta > 0 ? `rgb(240,${mid},${low})` : `rgb(${low},${mid},240)`;
  }

  function start(svg) {
    const data = JSON.parse(svg.querySelector("script.data").textContent);
    const columns = [data.w, data.v || data.w, ...(data.diff ? [data.b, data.e] : [])];
    const whole = laidOut({ depth: data.depth, fn: data.fn, w: data.w, columns });
    const views = [whole, null];
    const state = { view: 0, zoom: -1, flip: false, wanted: null };
    const drawing = svg.querySelector(".frames"), frame = svg.querySelector(".paper");
    const lower = data.names.map((name) => name.toLowerCase());
    let matches = null;

    const make = (parent, name, attributes, text) => {
      const element = document.createElementNS(SVG, name);
      for (const key in attributes) element.setAttribute(key, attributes[key]);
      if (text !== undefined) element.textContent = text;
      return parent.appendChild(element);
    };
    const controls = make(svg, "g", { class: "controls" });
    const found = make(controls, "text", { x: SIDE + 230, y: 65, class: "found" });
    let at = SIDE + 350;
    const button = (label, does) => {
      const group = make(controls, "g", { class: "button", tabindex: 0, role: "button" });
      make(group, "rect", { x: at, y: 50, width: label.length * CHAR + 16, height: 21, rx: 4 });
      make(group, "text", { x: at + 8, y: 65 }, label);
      at += label.length * CHAR + 24;
      const act = () => { does(); group.classList.toggle("on", label === "Inverted" ? !!state.view : label === "Root below" && state.flip); draw(); };
      group.addEventListener("click", act);
      group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } });
    };
    button("Reset zoom", () => { state.zoom = -1; });
    button("Inverted", () => {
      state.view = 1 - state.view;
      state.zoom = -1;
      views[1] = views[1] || inverted(whole, data.names);
    });
    button("Root below", () => { state.flip = !state.flip; });
    const box = make(controls, "foreignObject", { x: SIDE, y: 48, width: 222, height: 26 });
    const input = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
    input.setAttribute("placeholder", "Search (regular expression)");
    input.setAttribute("aria-label", "Search functions");
    input.setAttribute("style", "width:205px;font:12px ui-monospace,monospace;padding:2px 5px;border:1px solid #999;border-radius:4px");
    box.appendChild(input);
    let waiting = 0;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        const text = input.value.toLowerCase();
        let matching = (name) => name.includes(text);
        try { const pattern = new RegExp(text, "i"); matching = (name) => pattern.test(name); } catch { /* as plain text */ }
        matches = text ? Uint8Array.from(lower, (name) => (matching(name) ? 1 : 0)) : null;
        draw();
      }, 120);
    });

    const tip = make(svg, "g", { class: "tip", visibility: "hidden" });
    const tipBack = make(tip, "rect", { rx: 4 });

    const share = (w) => `${((w / whole.total) * 100).toFixed(2)} %`;
    const per = data.per ? ` / ${data.per}` : "";
    const show = (value) => amount(value, data.unit) + per;
    function described(i) {
      const tree = views[state.view], [, v, b, e] = tree.columns, own = tree.own[1];
      const name = data.names[tree.fn[i]], file = data.files[tree.fn[i]];
      const lines = [name];
      if (data.diff) {
        const delta = v[i] - b[i], z = e[i] > 0 ? `, ${(delta / Math.sqrt(e[i])).toFixed(1)} standard deviations` : "";
        lines.push(`${show(b[i])} before, ${show(v[i])} after`, `${delta > 0 ? "+" : ""}${show(delta)}${z}`);
      } else {
        const itself = state.view ? "" : `, itself ${show(Math.abs(own[i]) < whole.total * 1e-9 ? 0 : own[i])}`;
        lines.push(`${show(v[i])} (${share(tree.w[i])})${itself}`);
      }
      if (file) lines.push(file);
      return lines;
    }

    let width = 1200;
    function draw() {
      const host = svg === document.documentElement ? window.innerWidth : svg.parentElement.clientWidth;
      width = Math.max(700, host || 1200);
      const tree = views[state.view], { zoom } = state;
      const from = zoom < 0 ? 0 : tree.x[zoom], span = zoom < 0 ? tree.total : tree.w[zoom];
      const scale = span > 0 ? (width - 2 * SIDE) / span : 0, stop = zoom < 0 ? tree.fn.length : tree.end[zoom];
      const seen = [];
      let deepest = 0;
      for (let i = zoom; i >= 0; i = tree.parent[i]) if (i !== zoom) seen.push(i);
      const callers = seen.length;
      for (let i = Math.max(0, zoom); i < stop;) {
        if (tree.w[i] * scale < NARROWEST) { i = tree.end[i]; continue; }
        deepest = Math.max(deepest, tree.depth[i] + 1);
        seen.push(i);
        i++;
      }
      const y = (row) => TOP + (state.flip ? deepest - row : row) * ROW;
      const label = (name, px) => {
        const room = Math.floor((px - 6) / CHAR);
        return room < 3 ? "" : escaped(name.length > room ? name.slice(0, room - 1) + "\u2026" : name);
      };
      const piece = (i, name, x, top, px, fill, extra) => {
        const text = label(name, px);
        return `<g data-i="${i}"${extra}><rect x="${x.toFixed(2)}" y="${top}" width="${Math.max(0.3, px - 0.4).toFixed(2)}" height="${ROW - 1}" fill="${fill}"/>` +
          (text ? `<text x="${(x + 3).toFixed(2)}" y="${top + 12}">${text}</text>` : "") + "</g>";
      };
      const out = [piece(-1, `all ${show(data.total)}`, SIDE, y(0), width - 2 * SIDE, "#e8e6df", "")];
      for (let k = 0; k < seen.length; k++) {
        const i = seen[k], caller = k < callers;
        const x = caller ? SIDE : SIDE + (tree.x[i] - from) * scale, px = caller ? width - 2 * SIDE : tree.w[i] * scale;
        const [, v, b, e] = tree.columns;
        const match = matches && matches[tree.fn[i]];
        const fill = match ? "#e23ce2" : data.diff ? changeColour(b[i], v[i], e[i]) : data.colours[tree.fn[i]];
        out.push(piece(i, data.names[tree.fn[i]], x, y(tree.depth[i] + 1), px, fill, matches && !match ? ' opacity="0.35"' : caller ? ' opacity="0.55"' : ""));
      }
      drawing.innerHTML = out.join("");
      const height = TOP + (deepest + 1) * ROW + SIDE;
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("width", width);
      svg.setAttribute("height", height);
      frame.setAttribute("width", width);
      frame.setAttribute("height", height);
      found.textContent = matches ? `found: ${share(matched(tree))}` : "";
    }

    // Frames below one that matched do not count again.
    function matched(tree) {
      let sum = 0;
      for (let i = 0; i < tree.fn.length;) {
        if (matches[tree.fn[i]]) { sum += tree.w[i]; i = tree.end[i]; } else i++;
      }
      return sum;
    }

    const frameAt = (event) => event.target.closest ? event.target.closest("[data-i]") : null;
    drawing.addEventListener("click", (event) => {
      const piece = frameAt(event);
      if (!piece) return;
      state.zoom = Number(piece.getAttribute("data-i"));
      tip.setAttribute("visibility", "hidden");
      draw();
    });
    drawing.addEventListener("mousemove", (event) => {
      const piece = frameAt(event), i = piece ? Number(piece.getAttribute("data-i")) : -1;
      if (i < 0) { tip.setAttribute("visibility", "hidden"); return; }
      const lines = described(i), longest = Math.max(...lines.map((line) => line.length));
      while (tip.childNodes.length > 1) tip.removeChild(tip.lastChild);
      lines.forEach((line, k) => make(tip, "text", { x: 8, y: 17 + k * 16 }, line));
      const box = svg.getBoundingClientRect(), unit = width / box.width, wide = longest * CHAR + 16;
      const x = Math.max(2, Math.min((event.clientX - box.left) * unit + 12, width - wide - 4));
      const high = lines.length * 16 + 10, below = (event.clientY - box.top) * unit + 16;
      const fits = event.clientY + high + 20 < window.innerHeight;
      tip.setAttribute("transform", `translate(${x},${fits ? below : below - high - 28})`);
      tipBack.setAttribute("width", wide);
      tipBack.setAttribute("height", high);
      tip.setAttribute("visibility", "visible");
    });
    drawing.addEventListener("mouseleave", () => tip.setAttribute("visibility", "hidden"));
    window.addEventListener("keydown", (event) => { if (event.key === "Escape") { state.zoom = -1; draw(); } });
    window.addEventListener("resize", draw);
    draw();
  }

  for (const svg of document.querySelectorAll("svg.plimsoll-flame:not([data-live])")) {
    svg.setAttribute("data-live", "");
    start(svg);
  }
})();
