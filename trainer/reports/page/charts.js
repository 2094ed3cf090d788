"use strict";
// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
// Curves as SVG: several series over one another by step, epoch or time, smoothed, zoomed by dragging, with the values
// under the pointer in all charts at once. Text goes in as text nodes alone, so that a name stays a name.

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

/** About `count` round numbers from low to high; none where that is no span. */
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  if (!(raw > 0) || !Number.isFinite(raw) || !(power > 0)) return [];
  const step = power * (raw < 1.414 * power ? 1 : raw < 3.162 * power ? 2 : raw < 7.071 * power ? 5 : 10);
  const first = Math.ceil(low / step - 1e-9), found = [];
  for (let i = 0; i <= 2 * count && (first + i) * step <= high + step * 1e-9; ++i) found.push(Number(((first + i) * step).toPrecision(12)));
  return found;
}
function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
    for (const factor of [1, 2, 5]) if (factor * 10 ** power >= low * 0.999 && factor * 10 ** power <= high * 1.001) found.push(factor * 10 ** power);
  const tens = found.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
  return found.length > 7 && tens.length > 1 ? tens : found;
}

/** A running mean over about 1 / (1 - weight) points; closer steps count less. The first points are not drawn to zero. */
function smooth(steps, values, weight) {
  const gap = (steps[steps.length - 1] - steps[0]) / Math.max(steps.length - 1, 1) || 1;
  let sum = 0, mass = 0, last = steps[0] - gap;
  return values.map((y, i) => {
    if (y === null) return null;
    const keep = weight ** ((steps[i] - last) / gap);
    last = steps[i];
    sum = keep * sum + (1 - keep) * y; mass = keep * mass + (1 - keep);
    return mass > 0 ? sum / mass : y;
  });
}

/** The place of x that is nearest in a sorted list. */
function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (low < high) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle + 1; else high = middle; }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}

// The axis below all curves. Seconds are shown in the unit that suits their range.

const kUnits = [[86400, "days"], [3600, "hours"], [60, "minutes"], [1, "seconds"]];
const kAxes = {
  step: { unit: () => [1, "step"], text: (x) => `step ${Math.round(x).toLocaleString("en-US")}` },
  epoch: { unit: () => [1, "epoch"], text: (x) => `epoch ${short(x)}` },
  time: { unit: (span) => kUnits.find(([size]) => span >= 2 * size) || kUnits[3],
    text: (x) => { const [size, name] = kAxes.time.unit(x); return `${short(x / size)} ${name}`; } },
};

/** All curves of the page alike: axis, range (null: the whole), smoothing, cursor, and the runs that are hidden. */
const view = { axis: "step", range: null, smoothing: 0, cursor: null, hidden: new Set(), charts: [],
  reset: make("button", { type: "button", hidden: "" }, "whole range") };
function redrawAll() { for (const chart of view.charts) chart.redraw(); }
function pointAll(x, chart, pointer) {
  view.cursor = x;
  for (const one of view.charts) { one.pointer = one === chart ? pointer : null; one.point(); }
}
function zoom(range) {
  view.range = range;
  view.reset.hidden = range === null;
  pointAll(null);
  redrawAll();
}

/**
 * One card with curves.
 * series: {name, kind, run, colour, look ("", "thin", "dashed", "dotted"), perStep, x: {step: [...], epoch: [...], time: [...]}, y: [...]};
 * y may have nulls.
 */
function lineChart({ title, series, unit, legend }) {
  let log = false, picked = null;
  const isShare = unit === "%", format = isShare ? (y) => short(100 * y) + " %" : short;
  const all = series.flatMap((one) => one.y).filter((y) => y !== null);
  const logButton = make("button", { type: "button", "aria-pressed": "false", hidden: !isShare && all.every((y) => y > 0) ? null : "" }, "log");
  const plot = draw("svg", { class: "plot", role: "img", "aria-label": title });
  const tip = make("div", { class: "tip", hidden: "" });
  const card = make("section", { class: "card chart" },
    make("header", null, make("h3", null, title),
      make("div", { class: "legend" }, legend.map((entry) => make("span", null,
        make("i", { class: entry.look, style: `--k:${entry.colour}` }), entry.name))), logButton), plot, tip);
  const box = { left: 52, right: 12, top: 10, bottom: 26, width: 480, height: 264 };
  const xOf = (one) => one.x[view.axis];
  const shown = () => series.filter((one) => !view.hidden.has(one.run) && xOf(one).length);

  function xRange() {
    if (view.range) return view.range;
    let low = Infinity, high = -Infinity;  // the same of all charts
    for (const chart of view.charts) for (const one of chart.shown()) { low = Math.min(low, xOf(one)[0]); high = Math.max(high, xOf(one)[xOf(one).length - 1]); }
    return low < high ? [low, high] : low === high ? [low - 1, high + 1] : [0, 1];
  }

  function yRange([from, to]) {
    let low = Infinity, high = -Infinity;
    for (const one of shown()) one.y.forEach((y, i) => {
      if (y === null || xOf(one)[i] < from || xOf(one)[i] > to || (log && y <= 0)) return;
      low = Math.min(low, y); high = Math.max(high, y);
    });
    if (low > high) return log ? [0.1, 1] : [0, 1];
    if (log) return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
    const margin = low === high ? Math.abs(low) / 2 || 1 : (high - low) * 0.06;
    return [low >= 0 ? Math.max(0, low - margin) : low - margin, isShare && high <= 1 ? Math.min(1, high + margin) : high + margin];
  }

  function scales() {
    const [x0, x1] = xRange(), [y0, y1] = yRange([x0, x1]);
    const wide = box.width - box.left - box.right, tall = box.height - box.top - box.bottom;
    const up = log ? (y) => (Math.log(y) - Math.log(y0)) / (Math.log(y1) - Math.log(y0)) : (y) => (y - y0) / (y1 - y0);
    return { x0, x1, y0, y1, x: (x) => box.left + wide * (x - x0) / (x1 - x0), y: (y) => box.top + tall * (1 - up(y)),
      back: (px) => x0 + (x1 - x0) * (px - box.left) / wide };
  }

  /** A lone point is a line of no length, which its round ends make visible. */
  function path(xs, ys, at) {
    let text = "", pen = "M";
    for (let i = 0; i < xs.length; ++i) {
      const y = ys[i], outside = xs[i + 1] < at.x0 || xs[i - 1] > at.x1;
      if (y === null || outside || (log && y <= 0)) { pen = "M"; continue; }
      text += `${pen}${at.x(xs[i]).toFixed(1)} ${at.y(y).toFixed(1)}${pen === "M" ? "h0" : ""}`; pen = "L";
    }
    return text;
  }

  function axes(at, bottom) {
    const right = box.width - box.right, [size, name] = kAxes[view.axis].unit(at.x1 - at.x0), parts = [];
    for (const y of log ? logTicks(at.y0, at.y1) : ticks(at.y0, at.y1, 5)) {
      parts.push(draw("line", { class: "rule", x1: box.left, x2: right, y1: at.y(y), y2: at.y(y) }));
      parts.push(draw("text", { x: box.left - 8, y: at.y(y) + 4, "text-anchor": "end" }, isShare ? short(100 * y) + "%" : short(y)));
    }
    for (const x of ticks(at.x0 / size, at.x1 / size, box.width / 90)) {
      const px = at.x(x * size);
      const text = view.axis === "step" ? x.toLocaleString("en-US") : short(x);
      if ((view.axis === "step" && !Number.isInteger(x)) || px - 3.3 * text.length < box.left - 6) continue;
      parts.push(draw("text", { x: px, y: box.height - 8, "text-anchor": "middle" }, text));
    }
    parts.push(draw("text", { class: "unit", x: box.left - 8, y: box.height - 8, "text-anchor": "end" }, name));
    parts.push(draw("line", { class: "axis", x1: box.left, x2: right, y1: bottom, y2: bottom }));
    return parts;
  }

  function redraw() {
    box.width = Math.max(260, plot.clientWidth || 480);
    const at = scales(), bottom = box.height - box.bottom, clip = `clip${view.charts.indexOf(chart)}`;
    plot.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    const cut = draw("clipPath", { id: clip }, draw("rect", { x: box.left - 4, y: 0, width: box.width - box.left - box.right + 8, height: bottom + 4 }));
    const curves = draw("g", { "clip-path": `url(#${clip})` });
    for (const one of shown()) {
      const xs = xOf(one), smoothed = one.perStep && view.smoothing > 0, style = `--k:${one.colour}`;
      one.drawn = smoothed ? smooth(one.x.step, one.y, view.smoothing) : one.y;
      if (smoothed) curves.append(draw("path", { class: "curve raw", d: path(xs, one.y, at), style }));
      curves.append(draw("path", { class: `curve ${smoothed ? "" : one.look}`, d: path(xs, one.drawn, at), style }));
      if (xs.length <= 60) xs.forEach((x, i) => {
        const y = one.drawn[i];
        if (y !== null && x >= at.x0 && x <= at.x1 && !(log && y <= 0))
          curves.append(draw("circle", { class: one.look, cx: at.x(x), cy: at.y(y), r: 2.4, style }));
      });
    }
    const marks = draw("g", null);
    plot.replaceChildren(cut, ...axes(at, bottom), curves, marks);
    chart.at = at; chart.marks = marks;
    if (view.cursor !== null) point();
  }

  // The cursor is at the same place in all charts: a line, a dot on each curve, and their values in a tip.

  const kMostRows = 12;
  function point() {
    const { at, pointer } = chart, x = view.cursor;
    if (!at) return;
    const found = x === null ? [] : shown().map((one) => ({ one, i: nearest(xOf(one), x) })).filter(({ one, i }) => {
      const own = xOf(one)[i];
      return one.drawn[i] !== null && own >= at.x0 && own <= at.x1 && !(log && one.drawn[i] <= 0) && (Math.abs(at.x(own) - at.x(x)) < 14 || (x > xOf(one)[0] && x < xOf(one)[xOf(one).length - 1]));
    });
    tip.hidden = !found.length || (!pointer && plot.getBoundingClientRect().width < 420);
    if (x === null) return chart.marks.replaceChildren();
    let rows = found;
    if (rows.length > kMostRows) {
      const middle = pointer ? pointer.y : 0, far = ({ one, i }) => Math.abs(at.y(one.drawn[i]) - middle);
      rows = rows.sort((a, b) => far(a) - far(b)).slice(0, kMostRows);
    }
    chart.marks.replaceChildren(draw("line", { class: "cross", x1: at.x(x), x2: at.x(x), y1: box.top, y2: box.height - box.bottom }),
      ...rows.map(({ one, i }) => draw("circle", { cx: at.x(xOf(one)[i]), cy: at.y(one.drawn[i]), r: 4, style: `--k:${one.colour}` })));
    if (picked !== null && pointer) chart.marks.append(draw("rect", { class: "band", x: Math.min(pointer.x, picked), width: Math.abs(pointer.x - picked), y: box.top, height: box.height - box.top - box.bottom }));
    if (tip.hidden) return;
    tip.replaceChildren(pointer ? make("div", { class: "soft" }, kAxes[view.axis].text(x)) : "", ...rows.map(({ one, i }) =>
      make("div", null, make("i", { class: one.look, style: `--k:${one.colour}` }), make("bdi", { class: "cut" }, one.name), make("span", null, one.kind), make("b", null, format(one.drawn[i])))),
      found.length > rows.length ? make("div", { class: "soft" }, `and ${found.length - rows.length} more`) : "");
    const frame = plot.getBoundingClientRect(), outer = card.getBoundingClientRect(), scale = frame.width / box.width;
    const left = frame.left - outer.left + at.x(x) * scale;
    const down = pointer ? Math.min(pointer.y * scale, frame.height - tip.offsetHeight) : 0;
    const right = outer.width - tip.offsetWidth - 4, beside = left > outer.width / 2 ? left - tip.offsetWidth - 12 : left + 12;
    tip.style.left = `${Math.max(4, Math.min(right, beside))}px`;
    tip.style.top = `${frame.top - outer.top + Math.max(4, down)}px`;
  }

  const place = (event) => {
    const frame = plot.getBoundingClientRect(), scale = box.width / frame.width;
    return { x: (event.clientX - frame.left) * scale, y: (event.clientY - frame.top) * scale };
  };
  function follow(event) {
    const pointer = place(event), px = Math.min(Math.max(pointer.x, box.left), box.width - box.right), wanted = chart.at.back(px);
    const xs = shown().map((one) => xOf(one)[nearest(xOf(one), wanted)]);
    if (xs.length) pointAll(xs.reduce((a, b) => Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a), chart, pointer);
  }
  plot.addEventListener("pointerdown", (event) => { picked = place(event).x; plot.setPointerCapture(event.pointerId); });
  plot.addEventListener("pointermove", follow);
  plot.addEventListener("pointerleave", () => pointAll(null));
  plot.addEventListener("pointercancel", () => { picked = null; pointAll(null); });
  plot.addEventListener("pointerup", (event) => {
    const from = picked, to = place(event).x;
    picked = null;
    if (from === null || Math.abs(to - from) < 8) return follow(event);
    zoom([chart.at.back(Math.min(from, to)), chart.at.back(Math.max(from, to))]);
  });
  plot.addEventListener("dblclick", () => zoom(null));
  logButton.addEventListener("click", () => { log = !log; logButton.setAttribute("aria-pressed", String(log)); redraw(); });

  const chart = { redraw, point, shown, pointer: null };
  view.charts.push(chart);
  new ResizeObserver(() => requestAnimationFrame(() => { if (Math.abs(plot.clientWidth - box.width) > 1) redraw(); })).observe(plot);
  requestAnimationFrame(redraw);
  return card;
}

/** What is chosen for all curves: the axis, where the runs tell it, and smoothing. */
function curveControls(axes) {
  const buttons = axes.map((axis) => make("button", { type: "button", "aria-pressed": String(axis === view.axis) }, axis));
  buttons.forEach((button, i) => button.addEventListener("click", () => {
    view.axis = axes[i];
    for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
    zoom(null);
  }));
  const slider = make("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: 0, "aria-label": "smoothing" });
  const value = make("output", null, "0");
  view.reset.addEventListener("click", () => zoom(null));
  slider.addEventListener("input", () => { view.smoothing = Number(slider.value); value.textContent = String(view.smoothing); redrawAll(); });
  return make("div", { class: "controls" }, axes.length > 1 ? make("span", { class: "switch", role: "group", "aria-label": "axis" }, buttons) : null,
    make("label", null, "smoothing ", slider, value), view.reset);
}
