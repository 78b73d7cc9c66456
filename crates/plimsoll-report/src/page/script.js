// The read-out under the pointer, and zooming along the bottom axis. The page is complete without it: charts are drawn,
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

  function nearest(x, y) {
    let best = -1, least = Infinity;
    places.forEach(([px, py], index) => {
      const dx = shown(px) - x;
      const distance = svg.dataset.nearest === "xy" ? Math.hypot(dx, py - y) : Math.abs(dx);
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
    ring.setAttribute("cy", py);
    if (svg.dataset.nearest !== "xy") ring.style.display = "none";
    const box = svg.getBoundingClientRect();
    const scale = box.width / canvas.width;
    const beside = x * scale + 14;
    const room = beside + tip.offsetWidth < box.width;
    tip.style.left = (room ? beside : Math.max(0, x * scale - tip.offsetWidth - 14)) + "px";
    tip.style.top = Math.max(0, Math.min((svg.dataset.nearest === "xy" ? py : top) * scale,
      box.height - tip.offsetHeight)) + "px";
  }

  // Zooming: what is drawn along the axis is stretched, marks and words are moved, ticks are drawn anew.
  const straight = v => kind === "log" ? Math.log10(v) : kind === "percentile" ? -Math.log10(1 - v) : v;
  const bent = v => kind === "log" ? 10 ** v : kind === "percentile" ? 1 - 10 ** -v : v;
  const valueAt = place => bent(straight(lo) + (straight(hi) - straight(lo)) * place);
  const placeOf = value => (straight(value) - straight(lo)) / (straight(hi) - straight(lo));
  const digits = (v, n) => Number(v.toPrecision(n)).toLocaleString("en", { maximumFractionDigits: 6 }).replaceAll(",", "\u2009");
  function label(value, precision = 6) {
    // Shares near 1 differ only far behind the point.
    if (unit === "share") return digits(value * 100, Math.min(12, precision + Math.floor(-Math.log10(1 - value)))) + " %";
    return digits(value, precision) + (unit === "clock" ? " s" : "");
  }
  function newTicks() {
    const [from, to] = view.map(valueAt);
    if (kind === "percentile") {
      return [0, .5, .9, .95, .99, .995, .999, .9995, .9999, .99995, .99999, .999999].filter(v => v >= from && v <= to);
    }
    const rough = (to - from) / 7;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find(n => n * power >= rough);
    const out = [];
    for (let k = Math.ceil(from / step - 1e-9); k * step <= to && out.length < 20; k++) out.push(k * step);
    return out;
  }
  const home = new Map();
  function middle(element) {
    if (!home.has(element)) {
      const box = element.tagName === "text" ? null : element.getBBox();
      home.set(element, box ? box.x + box.width / 2 : Number(element.getAttribute("x")));
    }
    return home.get(element);
  }
  const clip = make("clipPath", { id: "clip-" + Math.random().toString(36).slice(2) });
  clip.append(make("rect", { x: left - 7, width: width + 14, y: 0, height: canvas.height }));
  svg.append(clip);

  function zoom(from, to) {
    const least = .002;
    const length = Math.min(1, Math.max(least, to - from));
    from = Math.min(1 - length, Math.max(0, from));
    view = [from, from + length];
    const whole = length > .9999;
    const stretch = 1 / length;
    svg.classList.toggle("zoomed", !whole);
    for (const group of groups) {
      if (whole) group.removeAttribute("clip-path"); else group.setAttribute("clip-path", `url(#${clip.id})`);
      for (const element of group.children) {
        if (whole) { element.removeAttribute("transform"); continue; }
        const fixed = element.tagName === "text" || element.classList.contains("m") || element.tagName === "circle"
          || element.tagName === "polygon";
        const move = fixed ? shown(middle(element)) - middle(element) : left - stretch * (left + from * width);
        element.setAttribute("transform", `matrix(${fixed ? 1 : stretch} 0 0 1 ${move} 0)`);
      }
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
