// The read-out under the pointer, and zooming along the bottom axis, with the axes of height fitted to what is shown. The page is complete without it: charts are drawn,
// and their figures stand in tables. Each chart says by data-places what is read out where, and by data-axis how its
// bottom axis runs; groups of class z are stretched with the axis, groups of class t are its ticks.
"use strict";
for (const plot of document.querySelectorAll(".plot")) {
  const svg = plot.querySelector("svg");
  if (svg && svg.dataset.places) interactive(plot, svg);
}

function interactive(plot, svg) {
  const NS = "http://www.w3.org/2000/svg";
  const places = JSON.parse(svg.dataset.places).sort((a, b) => a[0] - b[0]);
  const [left, width, kind, lo, hi, unit] = JSON.parse(svg.dataset.axis || "[0,0,\"\",0,1,\"\"]")
    .map((v, i) => i < 2 ? Number(v) : v);
  const groups = [...svg.querySelectorAll("g.z")];
  const ticks = [...svg.querySelectorAll("g.t")];
  // What follows an axis of height: shapes, what moves in height only, and the axes' ticks; all of one axis by its key.
  const scale = new Map([...svg.querySelectorAll("g[data-scale]")].map(g => [g, JSON.parse(g.dataset.scale)]));
  const key = g => g.dataset.y + scale.get(g)[0];
  const flat = [...scale.keys()].filter(g => g.classList.contains("h"));
  const sides = [...scale.keys()].filter(g => g.classList.contains("v"));
  const canvas = svg.viewBox.baseVal;
  let view = [0, 1];
  let drag = null;
  let at = -1;

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  plot.append(tip);
  const cross = make("line", { stroke: "var(--plimsoll-axis)", "stroke-dasharray": "3 3", "pointer-events": "none" });
  const ring = make("circle", { r: 7, fill: "none", stroke: "var(--plimsoll-ink)", "stroke-width": 1.5, "pointer-events": "none" });
  const band = make("rect", { fill: "var(--plimsoll-blue)", "fill-opacity": .15, "pointer-events": "none" });
  const fresh = make("g", {});
  for (const shape of [cross, ring, band]) shape.style.display = "none";
  svg.append(fresh, band, cross, ring);
  svg.setAttribute("tabindex", "0");

  // The vertical extent of everything that is plotted.
  const heights = [...groups, ...ticks].map(g => g.dataset.y.split(" ").map(Number));
  const top = Math.min(...heights.map(h => h[0]));
  const bottom = Math.max(...heights.map(h => h[1]));

  function make(name, attributes) {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }
  // From the place on the whole axis to the place on what is shown of it.
  const shown = x => left + ((x - left) / width - view[0]) / (view[1] - view[0]) * width;
  const inside = x => !width || (x >= left - 1 && x <= left + width + 1);
  function pointed(event) {
    const box = svg.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * canvas.width, (event.clientY - box.top) / box.height * canvas.height];
  }

  // Where a height stands as it is shown.
  const risen = py => raised([...high.values()].find(at => py >= at.y1 && py <= at.y2), py);
  function nearest(x, y) {
    let best = -1, least = Infinity;
    places.forEach(([px, py], index) => {
      const dx = shown(px) - x;
      const distance = svg.dataset.nearest === "xy" ? Math.hypot(dx, risen(py) - y) : Math.abs(dx);
      if (distance < least && inside(shown(px))) { least = distance; best = index; }
    });
    return svg.dataset.nearest === "xy" && least > 60 ? -1 : best;
  }

  function read(index) {
    at = index;
    tip.hidden = index < 0;
    cross.style.display = ring.style.display = index < 0 ? "none" : "";
    if (index < 0) return;
    const [px, py] = places[index];
    const x = shown(px);
    // Several series may have something to say at one place.
    const same = svg.dataset.nearest === "xy" ? [places[index]] : places.filter(p => p[0] === px);
    tip.textContent = same.map(p => p[2]).join("\n");
    for (const [key, value] of [["x1", x], ["x2", x], ["y1", top], ["y2", bottom]]) cross.setAttribute(key, value);
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", risen(py));
    if (svg.dataset.nearest !== "xy") ring.style.display = "none";
    const box = svg.getBoundingClientRect();
    const ratio = box.width / canvas.width;
    const beside = x * ratio + 14;
    const room = beside + tip.offsetWidth < box.width;
    tip.style.left = (room ? beside : Math.max(0, x * ratio - tip.offsetWidth - 14)) + "px";
    tip.style.top = Math.max(0, Math.min((svg.dataset.nearest === "xy" ? risen(py) : top) * ratio,
      box.height - tip.offsetHeight)) + "px";
  }

  // Zooming: what is drawn along the axis is stretched, marks and words are moved, ticks are drawn anew.
  const straight = (v, of = kind) => of === "log" ? Math.log10(v) : of === "percentile" ? -Math.log10(1 - v) : v;
  const bent = (v, of = kind) => of === "log" ? 10 ** v : of === "percentile" ? 1 - 10 ** -v : v;
  const valueAt = place => bent(straight(lo) + (straight(hi) - straight(lo)) * place);
  const placeOf = value => (straight(value) - straight(lo)) / (straight(hi) - straight(lo));
  const digits = (v, n) => Number(v.toPrecision(n)).toLocaleString("en", { maximumFractionDigits: 6 }).replaceAll(",", "\u2009");
  function label(value, precision = 6, of = unit) {
    // Shares near 1 differ only far behind the point.
    if (of === "share") {
      const nines = value < 1 ? Math.max(0, Math.floor(-Math.log10(1 - value))) : 0;
      return digits(value * 100, Math.min(12, precision + nines)) + " %";
    }
    const units = { time: [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"]], bytes: [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"]] }[of];
    if (units && value) {
      const [size, name] = units.findLast(u => Math.abs(value) >= u[0]) || units[0];
      return digits(value / size, precision) + " " + name;
    }
    return digits(value, precision) + (of === "clock" ? " s" : "");
  }
  // Round values from `from` to `to`, about seven: even steps, or on a log axis that spans much 1, 2, 5 or powers of ten.
  function round(from, to, log) {
    const out = [];
    if (log && to / from > 8) {
      const steps = to / from > 1e4 ? [1] : [1, 2, 5];
      for (let e = Math.floor(Math.log10(from)); e <= Math.log10(to) && out.length < 30; e++) {
        out.push(...steps.map(n => n * 10 ** e).filter(v => v >= from && v <= to));
      }
      return out;
    }
    const rough = (to - from) / 7;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find(n => n * power >= rough * .999);
    for (let k = Math.ceil(from / step - 1e-9); k * step <= to * (1 + 1e-12) && out.length < 20; k++) out.push(k * step);
    return out;
  }
  function newTicks() {
    const [from, to] = view.map(valueAt);
    if (kind === "percentile") {
      return [0, .5, .9, .95, .99, .995, .999, .9995, .9999, .99995, .99999, .999999].filter(v => v >= from && v <= to);
    }
    return round(from, to, false);
  }

  // Heights: from where to where the shapes of an axis reach, of those that are shown; null where it shows none.
  function reach(groups) {
    const [from, to] = view.map(v => left + v * width);
    let low = Infinity, high = -Infinity;
    const take = (x, y) => { if (x >= from && x <= to) { low = Math.min(low, y); high = Math.max(high, y); } };
    for (const element of groups.flatMap(g => [...g.children])) {
      if (element.classList.contains("m")) { take(...middle(element)); continue; }
      if (element.tagName !== "path") continue;
      let before = null;
      for (const [, command, x, y] of (element.getAttribute("d") || "").matchAll(/([ML])(-?[\d.]+) (-?[\d.]+)/g)) {
        const point = [Number(x), Number(y)];
        take(...point);
        // Where a line crosses the edges of what is shown.
        if (before && command === "L") {
          for (const edge of [from, to]) {
            const share = (edge - before[0]) / (point[0] - before[0]);
            if (share > 0 && share < 1) take(edge, before[1] + share * (point[1] - before[1]));
          }
        }
        before = point;
      }
    }
    return high < low ? null : [low, high];
  }
  // How each axis of height is stretched: y becomes y * by + move.
  function stretches(whole) {
    const found = new Map();
    for (const group of groups.filter(g => scale.has(g) && !whole)) {
      if (found.has(key(group))) continue;
      const shapes = reach(groups.filter(g => scale.has(g) && key(g) === key(group)));
      if (!shapes) continue;
      const [y1, y2] = group.dataset.y.split(" ").map(Number);
      const room = Math.max(5, (shapes[1] - shapes[0]) * .08), center = (shapes[0] + shapes[1]) / 2;
      const half = Math.max(8, (shapes[1] - shapes[0]) / 2 + room);
      const [from, to] = [Math.max(y1, center - half), Math.min(y2, center + half)];
      const by = (y2 - y1) / (to - from);
      found.set(key(group), { by, move: y1 - by * from, y1, y2, from, to });
    }
    return found;
  }
  const home = new Map();
  function middle(element) {
    if (!home.has(element)) {
      const box = element.tagName === "text" ? null : element.getBBox();
      home.set(element, box ? [box.x + box.width / 2, box.y + box.height / 2]
        : ["x", "y"].map(name => Number(element.getAttribute(name))));
    }
    return home.get(element);
  }
  const clip = make("clipPath", { id: "clip-" + Math.random().toString(36).slice(2) });
  clip.append(make("rect", { x: left - 7, width: width + 14, y: 0, height: canvas.height }));
  svg.append(clip);
  const clips = new Map();
  function clipOf(group, along) {
    const [y1, y2] = group.dataset.y.split(" ").map(Number);
    const name = group.dataset.y + along;
    if (!clips.has(name)) {
      const own = make("clipPath", { id: clip.id + "-" + clips.size });
      own.append(make("rect", { x: along ? left - 7 : 0, width: along ? width + 14 : canvas.width, y: y1 - 7, height: y2 - y1 + 14 }));
      svg.append(own);
      clips.set(name, own.id);
    }
    return `url(#${clips.get(name)})`;
  }
  const isFixed = element => ["text", "circle", "polygon"].includes(element.tagName) || element.classList.contains("m");
  let high = new Map();
  // Where a height is shown; `upright` things that span the plot stay as they are.
  const raised = (at, y) => at && y >= at.y1 - 1 && y <= at.y2 + 1 ? y * at.by + at.move : y;

  function zoom(from, to) {
    const least = .002;
    const length = Math.min(1, Math.max(least, to - from));
    from = Math.min(1 - length, Math.max(0, from));
    view = [from, from + length];
    const whole = length > .9999;
    const stretch = 1 / length;
    svg.classList.toggle("zoomed", !whole);
    high = stretches(whole);
    for (const group of groups) {
      const at = scale.has(group) ? high.get(key(group)) : undefined;
      if (whole) group.removeAttribute("clip-path");
      else group.setAttribute("clip-path", at ? clipOf(group, true) : `url(#${clip.id})`);
      for (const element of group.children) {
        if (whole) { element.removeAttribute("transform"); continue; }
        if (isFixed(element)) {
          const [x, y] = middle(element);
          element.setAttribute("transform", `translate(${shown(x) - x} ${raised(at, y) - y})`);
          continue;
        }
        const spans = element.tagName === "line" && element.getAttribute("x1") === element.getAttribute("x2")
          && element.getBBox().height > (at ? at.y2 - at.y1 : 0) * .9;
        const [by, move] = at && !spans ? [at.by, at.move] : [1, 0];
        element.setAttribute("transform", `matrix(${stretch} 0 0 ${by} ${left - stretch * (left + from * width)} ${move})`);
      }
    }
    for (const group of flat) {
      const at = high.get(key(group));
      for (const element of group.children) {
        element.removeAttribute("transform");
        element.style.display = "";
        element.removeAttribute("clip-path");
        if (!at) continue;
        if (isFixed(element)) {
          const y = middle(element)[1], to = raised(at, y);
          element.setAttribute("transform", `translate(0 ${to - y})`);
          if (to < at.y1 - 8 || to > at.y2 + 8) element.style.display = "none";
        } else element.setAttribute("transform", `matrix(1 0 0 ${at.by} 0 ${at.move})`);
      }
      if (at) group.setAttribute("clip-path", clipOf(group, false)); else group.removeAttribute("clip-path");
    }
    fresh.replaceChildren();
    for (const group of ticks) {
      group.style.display = whole ? "" : "none";
      if (whole) continue;
      const [y1, y2] = group.dataset.y.split(" ").map(Number);
      for (const value of newTicks()) {
        const x = shown(left + placeOf(value) * width);
        fresh.append(make("line", { x1: x, x2: x, y1, y2,
          stroke: group.dataset.label ? "var(--plimsoll-axis)" : "var(--plimsoll-grid)" }));
        if (group.dataset.label) {
          const text = make("text", { x, y: group.dataset.label, "font-size": 12, "text-anchor": "middle",
            fill: "var(--plimsoll-muted)" });
          text.textContent = label(value);
          fresh.append(text);
        }
      }
    }
    for (const group of sides) {
      const at = high.get(key(group));
      group.style.display = at ? "none" : "";
      const axis = [...scale].find(([g, of]) => !g.classList.contains("v") && key(g) === key(group) && of.length === 5);
      if (!at || !axis) continue;
      const [, of, lo, hi, unit] = axis[1];
      const [, x1, x2, x, anchor, fill] = scale.get(group);
      const [low, most] = [straight(lo, of), straight(hi, of)];
      const valueOf = y => bent(low + (at.y2 - y) / (at.y2 - at.y1) * (most - low), of);
      const [from, to] = [valueOf(at.to), valueOf(at.from)];
      const values = round(from, to, of === "log");
      const precision = Math.min(12, Math.ceil(Math.log10(Math.max(Math.abs(from), Math.abs(to)) / ((to - from) / 7))) + 1);
      for (const value of values) {
        const y = (at.y2 - (straight(value, of) - low) / (most - low) * (at.y2 - at.y1)) * at.by + at.move;
        fresh.append(make("line", { x1, x2, y1: y, y2: y, stroke: x2 - x1 > 9 ? "var(--plimsoll-grid)" : "var(--plimsoll-axis)" }));
        const text = make("text", { x, y: y + 4.2, "font-size": 12, "text-anchor": anchor, fill });
        text.textContent = label(value, precision, unit);
        fresh.append(text);
      }
    }
    // New lines of the grid lie under what is plotted.
    if (!whole && groups.length) groups[0].before(fresh);
    note.textContent = whole ? "Drag over the chart to zoom in; arrow keys read out." : `Shown: ${label(valueAt(view[0]), 3)} to ${label(valueAt(view[1]), 3)}`;
    out.disabled = all.disabled = whole;
    read(-1);
  }

  const tools = document.createElement("div");
  tools.className = "tools on";
  const button = (text, name, act) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = text;
    element.setAttribute("aria-label", name);
    element.addEventListener("click", act);
    tools.append(element);
    return element;
  };
  const around = factor => {
    const center = at < 0 || !width ? (view[0] + view[1]) / 2 : (places[at][0] - left) / width;
    const half = (view[1] - view[0]) * factor / 2;
    zoom(center - half, center + half);
  };
  const note = document.createElement("span");
  const closer = button("+", "zoom in", () => around(.5));
  const out = button("\u2212", "zoom out", () => around(2));
  const all = button("all", "show the whole axis", () => zoom(0, 1));
  tools.append(note);
  plot.after(tools);
  closer.disabled = !width;

  svg.addEventListener("pointerdown", event => {
    const [x, y] = pointed(event);
    if (width && event.pointerType !== "touch" && event.button === 0 && inside(x) && y >= top && y <= bottom) {
      drag = x;
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
    }
  });
  svg.addEventListener("pointermove", event => {
    const [x, y] = pointed(event);
    read(nearest(x, y));
    if (drag === null) return;
    const [a, b] = [Math.max(left, Math.min(drag, x)), Math.min(left + width, Math.max(drag, x))];
    for (const [key, value] of [["x", a], ["width", b - a], ["y", top], ["height", bottom - top]]) band.setAttribute(key, value);
    band.style.display = "";
  });
  svg.addEventListener("pointerup", event => {
    if (drag === null) return;
    const x = pointed(event)[0];
    const [a, b] = [Math.min(drag, x), Math.max(drag, x)];
    drag = null;
    band.style.display = "none";
    const length = view[1] - view[0];
    if (b - a > 8) zoom(view[0] + (a - left) / width * length, view[0] + (b - left) / width * length);
  });
  svg.addEventListener("pointercancel", () => { drag = null; band.style.display = "none"; });
  svg.addEventListener("pointerleave", () => { if (drag === null) read(-1); });
  svg.addEventListener("dblclick", () => zoom(0, 1));
  svg.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      let next = at < 0 ? (step > 0 ? 0 : places.length - 1) : at + step;
      while (svg.dataset.nearest !== "xy" && places[next] && at >= 0 && places[next][0] === places[at][0]) next += step;
      if (places[next]) read(next);
      event.preventDefault();
    } else if (event.key === "Escape") { read(-1); zoom(0, 1); }
    else if (event.key === "+") around(.5);
    else if (event.key === "-") around(2);
  });
  zoom(0, 1);
}
