"use strict";
// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
// Curves as SVG: several series over one another, zoom by dragging, values under the pointer, a logarithmic axis.
// Text goes in as text nodes alone, so that a name stays a name.

/** An element with attributes, and children that are nodes or text. */
function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}
function draw(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) if (value !== null) node.setAttribute(name, value);
  for (const child of children.flat(9)) if (child !== null && child !== undefined) node.append(child);
  return node;
}

/** Numbers as people read them: all digits that a chart can show, no more. */
function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(size >= 1e6 ? 2 : 1).replace("e+", "e");
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(4)));
}

/** About `count` round numbers from low to high. */
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999) * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) found.push(Number((i * step).toPrecision(12)));
  return found;
}
function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
    for (const factor of [1, 2, 5]) if (factor * 10 ** power >= low * 0.999 && factor * 10 ** power <= high * 1.001) found.push(factor * 10 ** power);
  const tens = found.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
  return found.length > 7 && tens.length > 1 ? tens : found;
}

/** What all curves of the page show: their range of steps (null: the whole), and the runs that are hidden. */
const view = { range: null, whole: [Infinity, -Infinity], hidden: new Set(), charts: [] };
function redrawAll() { for (const chart of view.charts) chart.redraw(); }

/**
 * One card with curves over steps.
 * series: {name, run, colour, style ("", "thin", "dashed"), dots, x: [...], y: [...]}; y may have nulls.
 */
function lineChart({ title, series, percent, legend }) {
  let log = false, picked = null;
  const format = percent ? (y) => short(100 * y) + " %" : short;
  const all = series.flatMap((one) => one.y).filter((y) => y !== null);
  const logButton = make("button", { type: "button", "aria-pressed": "false", hidden: !percent && all.every((y) => y > 0) ? null : "" }, "log");
  const reset = make("button", { type: "button", hidden: "" }, "whole");
  const plot = draw("svg", { class: "plot", role: "img", "aria-label": title });
  const tip = make("div", { class: "tip", hidden: "" });
  const card = make("section", { class: "card chart" },
    make("header", null, make("h3", null, title),
      make("div", { class: "legend" }, legend.map((entry) => make("span", null,
        make("i", { class: entry.style, style: `border-color:${entry.colour}` }), entry.name))),
      reset, logButton), plot, tip);
  const box = { left: 52, right: 12, top: 10, bottom: 26, width: 480, height: 264 };

  const shown = () => series.filter((one) => !view.hidden.has(one.run));
  const xRange = () => {
    const [low, high] = view.range || view.whole;
    return low < high ? [low, high] : [low - 1, high + 1];
  };

  function yRange([from, to]) {
    let low = Infinity, high = -Infinity;
    for (const one of shown()) one.y.forEach((y, i) => {
      if (y === null || one.x[i] < from || one.x[i] > to || (log && y <= 0)) return;
      low = Math.min(low, y); high = Math.max(high, y);
    });
    if (low > high) return log ? [0.1, 1] : [0, 1];
    if (log) return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
    if (low === high) return [low - (Math.abs(low) / 2 || 1), high + (Math.abs(high) / 2 || 1)];
    const margin = (high - low) * 0.06;
    return [low >= 0 ? Math.max(0, low - margin) : low - margin, percent && high <= 1 ? Math.min(1.0, high + margin) : high + margin];
  }

  function scales() {
    const [x0, x1] = xRange(), [y0, y1] = yRange([x0, x1]);
    const wide = box.width - box.left - box.right, tall = box.height - box.top - box.bottom;
    const up = log ? (y) => (Math.log(y) - Math.log(y0)) / (Math.log(y1) - Math.log(y0)) : (y) => (y - y0) / (y1 - y0);
    return { x0, x1, y0, y1, x: (x) => box.left + wide * (x - x0) / (x1 - x0), y: (y) => box.top + tall * (1 - up(y)),
      back: (px) => x0 + (x1 - x0) * (px - box.left) / wide };
  }

  function path(one, at) {
    let text = "", pen = "M";
    for (let i = 0; i < one.x.length; ++i) {
      const y = one.y[i], outside = one.x[i + 1] < at.x0 || one.x[i - 1] > at.x1;
      if (y === null || outside || (log && y <= 0)) { pen = "M"; continue; }
      text += `${pen}${at.x(one.x[i]).toFixed(1)} ${at.y(y).toFixed(1)}`; pen = "L";
    }
    return text;
  }

  function redraw() {
    box.width = Math.max(260, plot.clientWidth || 480);
    const at = scales(), bottom = box.height - box.bottom, clip = `clip${view.charts.indexOf(chart)}`;
    plot.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    reset.toggleAttribute("hidden", view.range === null);
    const parts = [draw("clipPath", { id: clip }, draw("rect", { x: box.left - 4, y: 0, width: box.width - box.left - box.right + 8, height: bottom + 4 }))];
    for (const y of log ? logTicks(at.y0, at.y1) : ticks(at.y0, at.y1, 5)) {
      parts.push(draw("line", { class: "rule", x1: box.left, x2: box.width - box.right, y1: at.y(y), y2: at.y(y) }));
      parts.push(draw("text", { x: box.left - 8, y: at.y(y) + 4, "text-anchor": "end" }, percent ? short(100 * y) + "%" : short(y)));
    }
    for (const x of ticks(at.x0, at.x1, box.width / 75)) if (Number.isInteger(x))
      parts.push(draw("text", { x: at.x(x), y: box.height - 8, "text-anchor": "middle" }, x.toLocaleString("en-US")));
    parts.push(draw("line", { class: "axis", x1: box.left, x2: box.width - box.right, y1: bottom, y2: bottom }));
    const curves = draw("g", { "clip-path": `url(#${clip})` });
    for (const one of shown()) {
      curves.append(draw("path", { class: `curve ${one.style}`, d: path(one, at), style: `stroke:${one.colour}` }));
      if (one.dots && one.x.length <= 60) one.x.forEach((x, i) => {
        if (one.y[i] !== null && x >= at.x0 && x <= at.x1 && !(log && one.y[i] <= 0))
          curves.append(draw("circle", { cx: at.x(x), cy: at.y(one.y[i]), r: 2.6, style: `fill:${one.colour}` }));
      });
    }
    const marks = draw("g", null);
    plot.replaceChildren(...parts, curves, marks);
    chart.at = at; chart.marks = marks;
  }

  /** The place of x that is nearest in a sorted list. */
  function nearest(xs, x) {
    let low = 0, high = xs.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle + 1; else high = middle; }
    return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
  }
  const place = (event) => { const frame = plot.getBoundingClientRect(); return (event.clientX - frame.left) * box.width / frame.width; };

  function point(event) {
    const px = place(event), at = chart.at, step = at.back(Math.min(Math.max(px, box.left), box.width - box.right));
    const found = shown().filter((one) => one.x.length).map((one) => ({ one, i: nearest(one.x, step) }));
    if (!found.length) return;
    const gap = (entry) => Math.abs(entry.one.x[entry.i] - step);
    const best = found.reduce((a, b) => gap(b) < gap(a) ? b : a), x = best.one.x[best.i];
    const rows = found.filter((entry) => entry.one.y[entry.i] !== null && Math.abs(at.x(entry.one.x[entry.i]) - at.x(x)) < 14);
    chart.marks.replaceChildren(draw("line", { class: "cross", x1: at.x(x), x2: at.x(x), y1: box.top, y2: box.height - box.bottom }));
    if (picked !== null) chart.marks.append(draw("rect", { class: "band", x: Math.min(px, picked), width: Math.abs(px - picked), y: box.top, height: box.height - box.top - box.bottom }));
    tip.replaceChildren(make("div", { class: "soft" }, make("span", null, `step ${x.toLocaleString("en-US")}`)), ...rows.slice(0, 12).map(({ one, i }) =>
      make("div", null, make("span", { style: `color:${one.colour}` }, one.name), make("b", null, format(one.y[i])))));
    tip.hidden = false;
    const frame = card.getBoundingClientRect(), left = event.clientX - frame.left;
    tip.style.left = `${left > frame.width / 2 ? Math.max(4, left - tip.offsetWidth - 14) : left + 14}px`;
    tip.style.top = `${event.clientY - frame.top + 12}px`;
  }
  function leave() { tip.hidden = true; if (chart.marks) chart.marks.replaceChildren(); }

  plot.addEventListener("pointerdown", (event) => { picked = place(event); plot.setPointerCapture(event.pointerId); });
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerleave", leave);
  plot.addEventListener("pointercancel", () => { picked = null; leave(); });
  plot.addEventListener("pointerup", (event) => {
    const from = picked, to = place(event);
    picked = null;
    if (from === null || Math.abs(to - from) < 8) return point(event);
    view.range = [chart.at.back(Math.min(from, to)), chart.at.back(Math.max(from, to))];
    leave(); redrawAll();
  });
  plot.addEventListener("dblclick", () => { view.range = null; redrawAll(); });
  reset.addEventListener("click", () => { view.range = null; redrawAll(); });
  logButton.addEventListener("click", () => { log = !log; logButton.setAttribute("aria-pressed", String(log)); redraw(); });

  for (const { x } of series) if (x.length) view.whole = [Math.min(view.whole[0], x[0]), Math.max(view.whole[1], x[x.length - 1])];
  const chart = { redraw };
  view.charts.push(chart);
  new ResizeObserver(() => requestAnimationFrame(() => { if (Math.abs(plot.clientWidth - box.width) > 1) redraw(); })).observe(plot);
  requestAnimationFrame(redraw);
  return card;
}
