// The sections of the report, made of the JSON document in the page.

const report = JSON.parse(document.getElementById("data").textContent);
const runs = report.runs, single = runs.length === 1;
const colourOf = (i) => `var(--c${i % 8})`;
const whole = (number) => number === null || number === undefined ? "–" : number.toLocaleString("en-US");
const name = (text) => make("bdi", { class: "clip", title: text }, text);
/** The word as a shell reads it back. */
const shellWord = (word) => /^[\w%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
const inSixties = (number, large, small) => `${Math.floor(number / 60)} ${large} ${number % 60} ${small}`;
const seconds = (s) => s === null || s === undefined ? "–" : s < 60 ? `${short(s)} s` : s < 3599.5 ?
  inSixties(Math.round(s), "min", "s") : inSixties(Math.round(s / 60), "h", "min");

/** Less than 1 is at most 99.99, and more than 0 at least 0.01. */
function percent(share) {
  if (share === null || share === undefined) return "–";
  const most = share < 1 ? Math.min(100 * share, 99.99) : 100 * share;
  return `${(share > 0 ? Math.max(most, 0.01) : most).toFixed(2)} %`;
}

function table(head, rows, numbers) {
  const kind = (i) => ({ class: numbers.includes(i) ? "n" : null });
  return make("div", { class: "scroll" }, make("table", null,
    make("thead", null, make("tr", null, head.map((cell, i) => make("th", kind(i), cell)))),
    make("tbody", null, rows.map((row) => row instanceof Node ? row : make("tr", null, row.map((cell, i) => make("td", kind(i), cell)))))));
}
const meter = (share) => make("span", { class: "meter" }, make("i", { style: `width:${(100 * (share || 0)).toFixed(1)}%` }));
const tile = (value, what) => make("div", { class: "tile" }, make("b", null, value), make("span", null, what));
const fact = (what, value) => value === null || value === undefined || value === "" ? [] : [make("dt", null, what), make("dd", null, value)];

function statePill(run) {
  const kind = run.state === "finished" ? "good" : ["failed", "lost", "damaged"].includes(run.state) ? "bad" : "";
  return make("span", { class: `pill ${kind}` }, run.state);
}
function publishedPill(run) {
  if (run.published === null || run.published === undefined) return null;
  return run.published ? make("span", { class: "pill good" }, "published hash: yes") : make("span", { class: "pill bad" }, "published hash: no");
}

// Head

const whereOf = (best) => best.epoch ? `epoch ${best.epoch}` : `step ${best.step}`;

/** "2026-11-28 21:18 UTC on node1", as far as the run tells. */
function startOf({ start }) {
  const { time, host } = start || {};
  return [time && `${String(time).slice(0, 16).replace("T", " ")} UTC`, host && `on ${host}`].filter(Boolean).join(" ");
}

function headOfOne(run) {
  const start = run.start || {};
  const line = [start.model, start.data && `on ${start.data}`, start.world && `${start.world} rank${start.world === 1 ? "" : "s"}`,
    start.device, start.optimizer].filter(Boolean).join(" · ");
  const best = run.best, speed = run.samples_per_second;
  return [make("div", { class: "head" }, make("h1", null, name(run.name)), statePill(run), publishedPill(run)),
    make("p", { class: "soft" }, name([line, startOf(run)].filter(Boolean).join(" · "))),
    start.command ? make("p", { class: "soft mono" }, name(start.command)) : null,
    make("div", { class: "tiles" },
      run.accuracy !== null ? tile(percent(run.accuracy), "test accuracy") : null,
      best ? tile(percent(best.accuracy), `best${best.of === "validation" ? " validation" : ""}, after ${whereOf(best)}`) : null,
      run.test_loss !== null ? tile(short(run.test_loss), "test loss") : null,
      run.steps !== null ? tile(whole(run.steps), "steps") : null,
      run.seconds !== null ? tile(seconds(run.seconds), !run.end ? "of epochs' training" : run.from_step ? `from step ${whole(run.from_step)} on` : "in all") : null,
      speed ? tile(whole(Math.round(speed)), "samples a second") : null,
      start.parameters ? tile(whole(start.parameters), "parameters") : null)];
}

function headOfMany() {
  const rows = runs.map((run, i) => {
    const box = make("input", { type: "checkbox", checked: "", "aria-label": "show" });
    const row = make("tr", null, make("td", null, box, " ", make("span", { class: "swatch", style: `background:${colourOf(i)}` })),
      make("td", { class: "name" }, name(run.name)), make("td", null, statePill(run)), make("td", { class: "n" }, percent(run.accuracy)),
      make("td", { class: "n" }, run.best ? `${percent(run.best.accuracy)} (${run.best.of === "validation" ? "validation, " : ""}${whereOf(run.best)})` : "–"),
      make("td", { class: "n" }, short(run.test_loss)), make("td", { class: "n" }, whole(run.steps)), make("td", { class: "n" }, `${run.from_step ? "> " : ""}${seconds(run.seconds)}`),
      make("td", { class: "n" }, whole((run.start || {}).world)), make("td", { class: "mono" }, (run.sha256 || "").slice(0, 12)));
    box.addEventListener("change", () => {
      row.classList.toggle("off", !box.checked);
      if (box.checked) view.hidden.delete(i); else view.hidden.add(i);
      redrawAll();
    });
    return row;
  });
  return [make("h1", null, `${runs.length} runs`), make("div", { class: "card", style: "margin-top:16px" },
    table(["", "run", "state", "test accuracy", "best", "test loss", "steps", "time", "ranks", "weights"], rows, [3, 4, 5, 6, 7, 8])), differences()];
}

/** Where the runs differ: a row for each key and a column for each run, or of many runs the other way round. */
function differences() {
  const rows = [["start", runs.map(startOf)], ["command", runs.map((run) => (run.start || {}).command)],
    ...(report.differing_keys || []).map(({ key, values }) => [key, values])].filter(([, values]) => values.some((value) => value !== values[0]));
  const say = (...words) => make("p", { class: "soft", style: "margin-top:12px;overflow-wrap:anywhere" }, words);
  const unread = runs.filter((run) => run.why_no_job)
    .map((run) => say("The job of ", make("bdi", null, run.name), " could not be read: ", make("bdi", null, run.why_no_job)));
  if (!rows.length) return unread.length ? unread : say("All keys of the jobs are alike.");
  const cell = (value) => make("span", { class: "mono" }, value === null || value === undefined || value === "" ? "–" : name(value));
  const names = runs.map((run, i) => make("span", { class: "named" }, make("span", { class: "swatch", style: `background:${colourOf(i)}` }), name(run.name)));
  const across = runs.length <= 6;
  return [make("h2", null, "Where they differ"), make("div", { class: "card differences" }, across
    ? table(["", ...names], rows.map(([key, values]) => [make("span", { class: "soft" }, key), ...values.map(cell)]), [])
    : table(["", ...rows.map(([key]) => key)], names.map((run, i) => [run, ...rows.map(([, values]) => cell(values[i]))]), [])), unread];
}

// Curves. With one run, colours tell what is drawn; with several, which run it is of.

/** Where each row of a kind of events stands on the axes; [] where the run does not tell. */
function placesOf(run, events) {
  const { step: ends = [], epoch = [], train_seconds: isEnd = [] } = (run.curves || {}).epoch || {}, start = run.start || {};
  const known = [[0, 0]];
  ends.forEach((step, i) => { if (isEnd[i] !== null && isEnd[i] !== undefined && step > known[known.length - 1][0]) known.push([step, epoch[i]]); });
  if (known.length === 1 && start.train_samples && start.global_batch) known.push([Math.ceil(start.train_samples / start.global_batch), 1]);
  const epochOf = (step) => {
    const after = known.findIndex(([end]) => end >= step), k = after < 0 ? known.length - 1 : Math.max(after, 1);
    const [[from, past], [to, now]] = [known[k - 1], known[k]];
    return past + (now - past) * (step - from) / (to - from);
  };
  const seconds = events.seconds || [];
  return { step: events.step, epoch: known.length > 1 ? events.step.map(epochOf) : [], time: seconds.includes(null) ? [] : seconds };
}

function curves() {
  const cards = [], axes = new Set(["step"]);
  const places = runs.map((run) => Object.fromEntries(Object.entries(run.curves || {}).map(([kind, events]) => [kind, placesOf(run, events)])));
  for (const { title, unit, scale, curves: parts } of JSON.parse(document.getElementById("charts").textContent)) {
    const series = [], legend = [];
    for (const part of parts) {
      const before = series.length;
      runs.forEach((run, i) => {
        const values = ((run.curves || {})[part.events] || {})[part.column];
        if (!values || values.every((y) => y === null)) return;
        const x = places[i][part.events];
        for (const axis of ["epoch", "time"]) if (x[axis].length) axes.add(axis);
        series.push({ run: i, x, y: scale === 1 ? values : values.map((y) => y === null ? null : y * scale), look: part.look, perStep: part.events === "step",
          colour: single ? `var(--c${part.colour})` : colourOf(i), name: single ? "" : run.name, kind: part.name || (single ? title.toLowerCase() : "") });
      });
      if (series.length > before && part.name) legend.push({ name: part.name, look: part.look, colour: single ? `var(--c${part.colour})` : "var(--soft)" });
    }
    if (series.length) cards.push(lineChart({ title, series, unit, legend }));
  }
  if (!cards.length) return [];
  const thinned = runs.some((run) => run.steps_drawn < run.steps_logged);
  return [make("h2", null, "Curves"), curveControls([...axes]), make("div", { class: "grid" }, cards),
    make("p", { class: "soft hint", style: "margin-top:8px" }, "Drag across a curve to zoom into all of them; a double click shows the whole again.",
      thinned ? " Of long runs some of the steps are drawn, peaks among them." : "")];
}

// Classes and mistakes

function confusion(found) {
  const names = found.classes.map((one) => one.name), most = 30;
  const totals = found.confusion.map((row) => row.reduce((a, b) => a + b, 0));
  if (names.length > most) {
    const cells = [];
    found.confusion.forEach((row, y) => row.forEach((count, x) => { if (count) cells.push(draw("rect", { x, y, width: 1, height: 1,
      style: `fill:rgb(var(--${x === y ? "right" : "wrong"}) / ${(0.15 + 0.85 * Math.sqrt(count / totals[y])).toFixed(3)})` },
      draw("title", null, `${names[y]} taken for ${names[x]}: ${count}`))); }));
    return draw("svg", { viewBox: `0 0 ${names.length} ${names.length}`, style: "max-width:640px" }, cells);
  }
  const isLong = names.some((text) => text.length > 5), cell = isLong ? 34 : 26;
  const nameOf = (text) => make("bdi", { class: "cut", title: text }, text);
  return make("table", { class: `confusion${isLong ? " long" : ""}`, style: `max-width:${(isLong ? 280 : 80) + 64 * names.length}px;min-width:${(isLong ? 120 : 30) + cell * names.length}px` },
    make("thead", null, make("tr", null, make("th", { class: "corner" }, ""), names.map((text) => make("th", null, nameOf(text))))),
    make("tbody", null, found.confusion.map((row, label) => make("tr", null, make("th", { class: "row" }, isLong ? name(names[label]) : nameOf(names[label])), row.map((count, answer) => {
      const share = totals[label] ? count / totals[label] : 0, right = label === answer, depth = right ? share : Math.min(1, Math.sqrt(share) * 1.6);
      return make("td", { class: count === 0 ? "zero" : depth > 0.6 ? "strong" : null, title: `${names[label]} taken for ${names[answer]}: ${count}`,
        style: count ? `background:rgb(var(--${right ? "right" : "wrong"}) / ${(0.08 + 0.8 * depth).toFixed(3)})` : null }, String(count));
    })))));
}

function classSection(run) {
  const found = run.classes;
  if (!found) return [];
  const isLong = found.classes.some((one) => one.name.length > 8), number = (text) => make("td", { class: "n" }, text);
  const rows = found.classes.map((one) => make("tr", null, make("td", { class: "name" }, name(one.name)), number(whole(one.samples)), number(whole(one.correct)),
    number([percent(one.precision), meter(one.precision)]), number([percent(one.recall), meter(one.recall)]), number(percent(one.f1))));
  const title = single ? "Classes" : make("span", null, "Classes of ", make("bdi", { class: "cut", title: run.name }, run.name));
  return [make("h2", null, title, " ", make("span", { class: "soft", style: "font-weight:400;font-size:14px" },
    `${whole(found.correct)} of ${whole(found.samples)} right, ${percent(found.correct / found.samples)}${found.without_answer ? `; ${whole(found.without_answer)} without an answer` : ""}`)),
    found.note ? make("p", { class: "soft", style: "overflow-wrap:anywhere" }, make("bdi", null, found.note)) : null,
    make("div", { class: "pair" }, make("div", { class: `card classes${isLong ? " long" : ""}` }, table(["class", "samples", "right", "precision", "recall", "F1"], rows, [1, 2, 3, 4, 5])),
      make("div", { class: "card" }, make("h3", { style: "margin-bottom:10px" }, "A row for each class of the data, a column for each answer"), make("div", { class: "scroll" }, confusion(found)))),
    mistakes(found)];
}

function mistakes(found) {
  if (!found.mistakes.length) return make("p", { class: "soft" }, found.correct === found.samples ? "No mistakes." : "No mistake has finite outputs to show.");
  const names = found.classes.map((one) => one.name), isOutput = found.scores === "outputs";
  const figure = (one) => {
    const scores = isOutput ? one.outputs : one.probabilities;
    const order = scores.map((_, c) => c).sort((a, b) => scores[b] - scores[a]).slice(0, 3);
    if (!order.includes(one.label)) order[2] = one.label;
    return make("figure", null, one.picture ? make("img", { src: one.picture, alt: `sample ${one.sample}`, loading: "lazy" }) : null,
      make("figcaption", null, make("div", null, make("span", { class: "soft" }, "is "), make("b", null, make("bdi", null, names[one.label]))),
        make("div", null, make("span", { class: "soft" }, "taken for "), make("b", null, make("bdi", null, names[one.answer])))),
      make("div", { class: "path soft", title: one.name || null }, make("bdi", { dir: "ltr" }, one.name || `sample ${one.sample}`)),
      make("div", { class: "odds" }, order.map((c) => [make("span", { class: "cut", title: names[c] }, make("bdi", null, names[c])),
        make("span", { class: "bar" }, make("i", { class: c === one.label ? "truth" : null, style: `width:${(100 * Math.max(0, Math.min(1, scores[c]))).toFixed(1)}%` })),
        make("span", { class: "soft" }, isOutput ? scores[c].toFixed(3) : percent(scores[c]))])));
  };
  const note = isOutput ? "Outputs of the network, trained towards 1 for the class and 0 for the others (mse): no probabilities."
    : found.scores === "sigmoid" ? "The probability of each class by itself (binary_cross_entropy): they need not add up to 100 %." : null;
  return [make("h2", null, `The ${found.mistakes.length} surest mistakes`), note && make("p", { class: "soft" }, note), make("div", { class: "mistakes" }, found.mistakes.map(figure))];
}

// Filters and network

function filterSection(run) {
  if (!run.filters) return [];
  return [make("h2", null, "First-layer filters"), make("div", { class: "card" }, make("p", { class: "soft" }, run.filters.what),
    make("div", { class: "filters" }, run.filters.pictures.map((uri, i) => make("img", { src: uri, alt: `filter ${i}`, title: `filter ${i}` }))))];
}

function networkGraph(model) {
  const tall = 28, gap = 20, left = 16, wide = 300, at = (i) => i * (tall + gap) + 4;
  const parts = [], skips = [];
  model.layers.forEach((layer, i) => {
    for (const from of layer.from) {
      if (from === i - 1) {
        parts.push(draw("path", { d: `M${left + wide / 2} ${at(i) - gap}V${at(i)}` }));
        parts.push(draw("text", { x: left + wide / 2 + 8, y: at(i) - 6 }, model.layers[from].output));
      } else skips.push([from, i]);
    }
  });
  skips.forEach(([from, to], k) => {
    const far = left + wide + 26 + 16 * (k % 4);
    parts.push(draw("path", { class: "skip", d: `M${left + wide} ${at(from) + tall / 2}C${far} ${at(from) + tall / 2} ${far} ${at(from) + tall / 2} ${far} ${at(from) + tall}V${at(to)}C${far} ${at(to) + tall / 2} ${far} ${at(to) + tall / 2} ${left + wide} ${at(to) + tall / 2}` }));
  });
  const cut = (text) => text.length > 44 ? text.slice(0, 43) + "…" : text;
  const boxes = model.layers.map((layer, i) => draw("g", null, draw("title", null, `${layer.name}: ${layer.kind}, ${layer.output}`),
    draw("rect", { class: layer.parameters ? "learns" : null, x: left, y: at(i), width: wide, height: tall, rx: 7 }),
    draw("text", { class: "what", x: left + 12, y: at(i) + 18.5 }, cut(i === 0 ? `input ${layer.output}` : layer.kind)),
    layer.parameters ? draw("text", { x: left + wide - 12, y: at(i) + 18.5, "text-anchor": "end" }, whole(layer.parameters)) : null));
  return draw("svg", { viewBox: `0 0 ${left + wide + (skips.length ? 90 : 16)} ${at(model.layers.length)}`, role: "img", "aria-label": "network" }, parts, boxes);
}

function networkSection(run) {
  const model = run.model;
  if (!model) return [];
  const rows = model.layers.map((layer) => [name(layer.name), name(layer.kind), layer.output, layer.parameters ? whole(layer.parameters) : "",
    layer.parameters ? meter(layer.parameters / model.parameters) : ""]);
  return [make("h2", null, "Network"), make("div", { class: "pair" },
    make("div", { class: "card long" }, table(["layer", "kind", "output", "parameters", ""], [...rows, [make("b", null, "total"), "", "", make("b", null, whole(model.parameters)), ""]], [3])),
    make("div", { class: "card graph" }, networkGraph(model)))];
}

// The run: ranks, what happened, machine, proof, job

/** How the ranks compare over all epochs: work and waiting as parts of the longest. */
function rankSection(run) {
  const ranks = run.ranks || [];
  if (ranks.length < 2) return [];
  const all = ranks.map((rank) => rank.busy_seconds + rank.exposed_seconds), most = Math.max(...all) || 1;
  const bar = (rank) => make("span", { class: "meter wide", role: "img", "aria-label": "work, then waiting" },
    make("i", { style: `width:${(100 * rank.busy_seconds / most).toFixed(1)}%` }), make("i", { class: "waits", style: `width:${(100 * rank.exposed_seconds / most).toFixed(1)}%` }));
  const rows = ranks.map((rank, i) => [String(i), seconds(rank.busy_seconds), seconds(rank.exposed_seconds), percent(rank.exposed_seconds / (all[i] || 1)), bar(rank)]);
  return [make("h2", null, "Ranks"), make("div", { class: "card" },
    make("p", { class: "soft" }, "Seconds in steps, over all epochs that record it: at work, and waiting for communication and other ranks after the rank's own work."),
    table(["rank", "at work", "waiting", "of its time", ""], rows, [1, 2, 3]))];
}

const kSaid = new Set(["event", "model", "data", "device"]);
function courseSection(run) {
  const events = run.events || [], start = run.start || {};
  const say = (value) => typeof value === "object" ? JSON.stringify(value) : String(value);
  const happened = events.map((event) => [event.event, whole(event.step),
    name(Object.entries(event).filter(([key]) => key !== "event" && key !== "step").map(([key, value]) => `${key.replaceAll("_", " ")} ${say(value)}`).join(", "))]);
  const facts = Object.entries(start).filter(([key]) => !kSaid.has(key)).map(([key, value]) => fact(key.replaceAll("_", " "), name(say(value))));
  return [make("h2", null, "Course of the run"), make("div", { class: "pair" },
    make("div", { class: "card" }, make("h3", { style: "margin-bottom:8px" }, "Weights"), make("dl", null,
      fact("directory", name(run.directory)), fact("weights sha256", run.sha256 ? make("span", { class: "mono" }, run.sha256) : "not finished"),
      fact("published", run.published === null || run.published === undefined ? "no hash is published of this computation" : run.published ? "the very same" : "another hash is published"),
      fact("trail", run.trail), fact("prove it", make("span", { class: "mono" }, name(`lockstep prove ${shellWord(run.directory)}`))),
      fact("checkpoints", run.checkpoints.length ? run.checkpoints.map((one) => `step ${whole(one.step)}${one.accuracy === null ? "" : ` (${percent(one.accuracy)})`}`).join(", ") : "none"),
      run.notes.map((note) => fact("note", name(note))))),
    make("div", { class: "card" }, make("h3", { style: "margin-bottom:8px" }, "Start"), make("dl", null, facts))),
    make("div", { class: "card", style: "margin-top:14px" }, make("h3", { style: "margin-bottom:8px" }, "Losses and verdicts"),
      (run.verdicts || []).map((one) => [make("p", { class: "verdict" }, "A start lost a rank:"), make("pre", { dir: "auto", style: "margin-bottom:10px" }, one)]),
      happened.length ? table(["event", "step", "what"], happened, [1]) : (run.verdicts || []).length ? null : make("p", { class: "soft" }, ["lost", "damaged"].includes(run.state) ? "No verdict was written." : "None: no rank was lost, and no line.")),
    run.log.length ? make("div", { class: "card long", style: "margin-top:14px" }, make("h3", { style: "margin-bottom:8px" }, "Starts, stops and ranks, from the log"), make("pre", { dir: "auto" }, run.log.join("\n"))) : null,
    run.job ? [make("h2", null, "Job, as resolved"), make("div", { class: "card long" }, make("pre", { style: "columns:3 320px", dir: "auto" }, run.job))] : null];
}

function showReport() {
  document.title = single ? `${runs[0].name.slice(0, 80)} · Lockstep report` : `${runs.length} runs · Lockstep report`;
  const parts = [single ? headOfOne(runs[0]) : headOfMany(), curves()];
  for (const run of runs) {
    parts.push(classSection(run));
    if (single) parts.push(filterSection(run), networkSection(run), rankSection(run), courseSection(run));
  }
  parts.push(make("footer", null, `Lockstep ${report.version}, ${report.made}. All numbers are in this page as JSON; it loads nothing.`));
  document.getElementById("report").replaceChildren(...parts.flat(9).filter((part) => part !== null));
  redrawAll();
}
showReport();
