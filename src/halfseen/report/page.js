(() => {
  "use strict";
  const {
    content, find, LINES, DASHES, printing, colour, widthOf, label, spoken, minus, show, within, fixed, signed,
    percent, draw, caption, start,
  } = drawing;
  const columns = content.columns;
  const pairs = content.pairs;
  // Square root of the 95 % quantile of chi-square with two degrees of freedom.
  const ELLIPSE = 2.447747;
  // Of a standard column: normal, or t with some degrees of freedom.
  const law = content.law;
  const density = (z) => law.peak * (law.degrees === null
    ? Math.exp(-0.5 * z * z) : Math.pow(1 + (z * z) / law.degrees, -0.5 * (law.degrees + 1)));

  // An axis of a column: round numbers in original units where it was transformed.
  function axisOf(column) {
    const title = column.transform === null
      ? label(column.name, 60)
      : `${label(column.name, 40)} (axis on the scale of ${label(column.label, 30)})`;
    const ticks = column.ticks ? { at: column.ticks[0], texts: column.ticks[1].map(minus) } : {};
    return { title, range: column.range, ...ticks };
  }

  /* Column by column */

  function drawColumn() {
    const select = find("column");
    const column = columns[select ? Number(select.value) : 0];
    const { mean, deviation } = column.recovered;
    const traces = [];
    const h = column.histogram;
    let top = 0.4 / deviation;
    if (h) {
      const centres = h.seen.map((_, k) => h.start + (k + 0.5) * h.width);
      const between = h.seen.map((_, k) => {
        const ends = h.edges ? [h.edges[k], h.edges[k + 1]] : [h.start + k * h.width, h.start + (k + 1) * h.width];
        return `${show(ends[0])} to ${show(ends[1])}`;
      });
      const bars = { type: "bars", x: centres, width: h.width };
      traces.push({
        ...bars, name: "seen", y: h.seen, color: colour("seen"), edge: colour("paper"),
        text: h.counts.map((n, k) => `${n} seen, ${between[k]}`),
      });
      if (h.hidden.some((y) => y > 0)) {
        traces.push({ ...bars, name: "hidden", y: h.hidden, color: colour("hidden"), fill: "url(#hatch-column)" });
      }
      top = Math.max(top, ...h.seen.map((y, k) => y + h.hidden[k]));
    }
    const grid = Array.from({ length: 241 }, (_, k) =>
      column.range[0] + (k / 240) * (column.range[1] - column.range[0]));
    const y = grid.map((x) => density((x - mean) / deviation) / deviation);
    traces.push({
      type: "line", name: "recovered density", x: grid, y, color: colour("recovered"), width: 2.5,
      text: y.map((v) => `recovered density ${show(v, 3)}`),
    });
    const shares = shareTexts(column, top, grid, y);
    draw("column", traces, {
      height: 380, notes: shares.notes, ...limitMarks(column),
      x: axisOf(column), y: { title: "density", range: [0, shares.top], most: 5 },
    });
    find("column-reading").textContent = columnReading(column);
    caption("column", {
      hatched: h && h.hidden.some((y) => y > 0), limits: column.limits.length > 0, range: column.limit_range,
      missing: column.missing_share > 0,
    });
  }

  // Texts of hidden shares: above the bars and the curve, or at an end of the axis where that is lower.
  function shareTexts(column, top, grid, density) {
    const h = column.histogram;
    const [first, last] = column.range;
    const notes = [], taken = [];
    let highest = 1.12 * top;
    const tall = 0.08 * highest;
    const letter = (6.8 * (last - first)) / Math.max(widthOf("column-plot") - 80, 120);
    const heightOver = (a, b) => {
      let y = 0;
      grid.forEach((x, k) => { if (x >= a && x <= b) y = Math.max(y, density[k]); });
      h.seen.forEach((seen, k) => {
        const left = h.start + k * h.width;
        if (left < b && left + h.width > a) y = Math.max(y, seen + h.hidden[k]);
      });
      taken.forEach(([from, to, height]) => { if (from < b && to > a) y = Math.max(y, height); });
      return y;
    };
    (h ? h.texts : []).forEach((text) => {
      const lines = `${percent(text.share)} ${text.word}`.replace(", ", ",\n").split("\n");
      // Some room on both sides.
      const wide = letter * (2 + Math.max(...lines.map((line) => line.length)));
      const middle = Math.max(first, Math.min(text.at - wide / 2, last - wide));
      const places = [middle];
      if (text.ends.includes("l")) places.push(first);
      if (text.ends.includes("r")) places.push(last - wide);
      const heights = places.map((a) => heightOver(a, a + wide));
      // A text across a limit seems to speak of both of its sides.
      const costs = places.map((a, k) =>
        heights[k] + tall * column.limits.filter(({ at }) => at > a && at < a + wide).length);
      const least = Math.min(...costs);
      const chosen = costs[0] <= 1.3 * least ? 0 : costs.indexOf(least);
      const y = heights[chosen];
      taken.push([places[chosen], places[chosen] + wide, y + lines.length * tall]);
      highest = Math.max(highest, y / (1 - 0.08 * lines.length));
      notes.push({ x: places[chosen] + wide / 2, y, text: lines.join("\n") });
    });
    return { notes, top: highest };
  }

  // A line at each limit, with its number above; one shade where there are many.
  function limitMarks(column) {
    const units = (k) => show(column.original ? column.original.limits[k] : column.limits[k].at, 6);
    const range = column.limit_range;
    const heads = column.limits.map((limit, k) => ({ x: limit.at, text: `limit ${units(k)}` }));
    if (range) heads.push({ x: 0.5 * (range.from + range.to), text: `${range.many} limits` });
    return {
      heads,
      rules: column.limits.map((limit) => ({ x: limit.at, color: colour("ink"), width: 1.2, dash: "dash" })),
      spans: range ? [{ x: [range.from, range.to], fill: colour("wash"), color: colour("rule") }] : [],
    };
  }

  function columnReading(column) {
    const { mean, mean_interval: ends } = column.recovered;
    const kinds = Object.entries(column.kinds).map(([word, many]) => `${many} ${word}`);
    let text = `${spoken(column.label)}: ${percent(column.hidden_share)} hidden`;
    if (kinds.length) text += ` (${kinds.join(", ")})`;
    if (column.missing_share) text += `, ${percent(column.missing_share)} missing`;
    text += `; recovered mean ${within(mean, ends)}`;
    if (ends) text += ` (95 % interval ${within(ends[0], ends)} to ${within(ends[1], ends)})`;
    if (column.naive.mean !== null) text += `; mean of what is seen ${within(column.naive.mean, ends)}`;
    text += ".";
    const own = column.original;
    if (own) {
      const range = own.interval;
      text += ` In original units the recovered ${own.word} is ${within(own.recovered, range)}`;
      text += range ? ` (${within(range[0], range)} to ${within(range[1], range)})` : "";
      if (column.units.mean !== null) text += `, the recovered mean ${within(column.units.mean, column.units.mean_interval)}`;
      text += ".";
    }
    if (column.not_drawn) text += ` ${column.not_drawn} hidden cells have no limits of their own and are not drawn.`;
    return text;
  }

  /* Pairs */

  const place = (i, j) => {
    const [a, b] = i < j ? [i, j] : [j, i];
    return a * columns.length - (a * (a + 1)) / 2 + (b - a - 1);
  };

  function ellipse(x, y, r, radius) {
    const known = [x.mean, x.deviation, y.mean, y.deviation, r];
    if (known.some((v) => v === null)) return null;
    const out = { x: [], y: [] };
    const rest = Math.sqrt(Math.max(0, 1 - r * r));
    for (let k = 0; k <= 120; k++) {
      const t = (k / 120) * 2 * Math.PI;
      out.x.push(x.mean + radius * x.deviation * Math.cos(t));
      out.y.push(y.mean + radius * y.deviation * (r * Math.cos(t) + rest * Math.sin(t)));
    }
    return out;
  }

  // What is written of a cell when the pointer is over it.
  function cellText(column, k) {
    const { kind, at, original, half } = column.cells;
    const name = label(column.name, 30);
    const number = original ? original[k] : at[k];
    switch (kind[k]) {
      case "s": return `${name}: ${show(number, 5)}`;
      case "b": return `${name}: hidden, below ${show(number, 6)}`;
      case "a": return `${name}: hidden, above ${show(number, 6)}`;
      case "i": return original ? `${name}: hidden, near ${show(number, 4)}`
        : `${name}: between ${show(at[k] - half[k], 4)} and ${show(at[k] + half[k], 4)}`;
      case "e": return `${name}: hidden, on either side`;
      case "t": return `${name}: hidden, tied to other columns`;
      case "c": return `${name}: hidden by chance`;
      default: return `${name}: missing`;
    }
  }

  const SYMBOLS = {
    "b s": "left", "a s": "right", "s b": "down", "s a": "up", "b b": "down left", "a a": "up right",
    "b a": "up left", "a b": "down right", "n s": "level", "s n": "upright",
    "n b": "down", "n a": "up", "b n": "left", "a n": "right",
  };

  function pairPoints(x, y) {
    const seen = { x: [], y: [], text: [] };
    const hidden = { x: [], y: [], text: [], symbol: [], label: [], xEnds: [], yEnds: [] };
    const corners = new Map();
    const edge = (column) => column.range[0] + 0.012 * (column.range[1] - column.range[0]);
    const endsOf = ({ cells }, k, at) => (cells.half[k] ? [at - cells.half[k], at + cells.half[k]] : [null, null]);
    const loose = (kind) => ("etc".includes(kind) ? "n" : kind);
    content.drawn_rows.forEach((row, k) => {
      const kx = loose(x.cells.kind[k]), ky = loose(y.cells.kind[k]);
      if (kx === "n" && ky === "n") return;
      const at = [kx === "n" ? edge(x) : x.cells.at[k], ky === "n" ? edge(y) : y.cells.at[k]];
      const text = `${label(row, 30)}\n${cellText(x, k)}\n${cellText(y, k)}`;
      if (kx === "s" && ky === "s") {
        seen.x.push(at[0]); seen.y.push(at[1]); seen.text.push(text);
        return;
      }
      const plain = (kind) => (kind === "i" ? "s" : kind);
      const symbol = SYMBOLS[plain(kx) + " " + plain(ky)] || "diamond";
      const both = kx !== "s" && ky !== "s" && kx !== "i" && ky !== "i";
      const key = at.join(" ") + symbol;
      if (both && corners.has(key)) {
        const where = corners.get(key);
        where.many += 1;
        hidden.label[where.index] = `${where.many}`;
        hidden.text[where.index] = `${where.many} rows\n${cellText(x, k)}\n${cellText(y, k)}`;
        return;
      }
      if (both) corners.set(key, { index: hidden.x.length, many: 1 });
      hidden.x.push(at[0]); hidden.y.push(at[1]); hidden.text.push(text);
      hidden.symbol.push(symbol); hidden.label.push("");
      hidden.xEnds.push(endsOf(x, k, at[0])); hidden.yEnds.push(endsOf(y, k, at[1]));
    });
    return { seen, hidden };
  }

  function pairTraces(x, y, k) {
    const traces = [];
    if (content.has_table) {
      const { seen, hidden } = pairPoints(x, y);
      const size = seen.x.length > 600 ? 4 : 6;
      traces.push({
        type: "marks", name: "both seen", ...seen, color: colour("point"), size, opacity: seen.x.length > 600 ? 0.5 : 0.75,
      });
      if (hidden.x.length) {
        traces.push({
          type: "marks", name: "one or both hidden", ...hidden, open: true, color: colour("hidden"), size: size + 2,
          labels: hidden.label, labelColor: colour("quiet"), errorWidth: 1,
        });
      }
    }
    const outline = (name, found, r, look, radius) => {
      const curve = ellipse(...found, r, radius);
      if (!curve) return;
      traces.push({ type: "line", name, ...curve, ...look });
      traces.push({
        type: "marks", x: [found[0].mean], y: [found[1].mean], symbol: "cross", open: true, size: 11, color: look.color,
        text: [`${name.split(",")[0]}, means: ${show(found[0].mean)}, ${show(found[1].mean)}`],
      });
    };
    // Of the rows in which both are seen: other rows belong to neither dots nor correlation.
    const own = pairs.ellipses[k];
    const first = columns.indexOf(x) < columns.indexOf(y) ? [0, 2] : [2, 0];
    if (own) outline("seen only, 95 %", first.map((m) => ({ mean: own[m], deviation: own[m + 1] })), pairs.naive[k], { color: colour("naive"), width: 2, dash: "dash" }, ELLIPSE);
    outline("recovered, 95 %", [x.recovered, y.recovered], pairs.recovered[k], { color: colour("recovered"), width: 2.5 }, law.ellipse);
    return traces;
  }

  function drawPair() {
    const i = Number(find("pair-x").value), j = Number(find("pair-y").value);
    const x = columns[i], y = columns[j], k = place(i, j);
    draw("pair", pairTraces(x, y, k), {
      height: Math.round(Math.min(Math.max(0.72 * widthOf("pair-plot"), 400), 600)), x: axisOf(x), y: axisOf(y),
    });
    const drawn = Object.fromEntries(["ba", "i", "e", "t", "c", "n", "etcn"].map((letters) =>
      [letters, content.has_table && [x, y].some((c) => Array.from(c.cells.kind).some((one) => letters.includes(one)))]));
    caption("pair", drawn);
    const [low, high] = [pairs.lower[k], pairs.upper[k]];
    let text = `${spoken(x.label)} and ${spoken(y.label)}: recovered correlation ${signed(pairs.recovered[k])}`;
    if (pairs.known[k]) text += " (known)";
    else if (low !== null && high !== null) text += ` (95 % interval ${signed(low)} to ${signed(high)})`;
    if (pairs.naive[k] !== null) {
      text += `; ${signed(pairs.naive[k])} over the ${pairs.together[k].toLocaleString("en")} rows in which both are seen`;
    } else if (pairs.together[k] !== null) {
      text += `; both are seen in ${pairs.together[k]} rows, too few for a naive one`;
    }
    find("pair-reading").textContent = text + ".";
  }

  // Two different columns at any time: choosing the other one swaps them.
  function watchPairs() {
    const selects = [find("pair-x"), find("pair-y")];
    const before = selects.map((s) => s.value);
    selects.forEach((select, k) => {
      select.addEventListener("change", () => {
        if (select.value === selects[1 - k].value) selects[1 - k].value = before[k];
        selects.forEach((s, m) => { before[m] = s.value; });
        drawPair();
      });
    });
  }

  /* Correlations */

  // The colour of a correlation, as shares of red, green and blue.
  function mixed(r) {
    const parts = (name) => [1, 3, 5].map((k) => parseInt(colour(name).slice(k, k + 2), 16) / 255);
    const [from, to] = [parts("middle"), parts(r < 0 ? "low" : "high")];
    return from.map((v, k) => v + Math.abs(r) * (to[k] - v));
  }
  const shade = (r) => `rgb(${mixed(r).map((v) => Math.round(255 * v)).join(",")})`;
  // Black or white, whichever is easier to read on it.
  function inkOn(r) {
    const [red, green, blue] = mixed(r).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
  }

  // The colours of correlations from −1 to 1, below a heat map.
  function colourBar(id, frame, make) {
    const wide = Math.min(200, frame.width - 40), left = 0.5 * (frame.width - wide), top = frame.height - 28;
    const stops = [-1, 0, 1].map((r) => make("stop", { offset: 0.5 * (r + 1), "stop-color": shade(r) }));
    return [
      make("linearGradient", { id: `${id}-colours` }, ...stops),
      make("rect", { x: left, y: top, width: wide, height: 8, fill: `url(#${id}-colours)` }),
      ...[[-1, "−1"], [-0.5, "−0.5"], [0, "0"], [0.5, "+0.5"], [1, "+1"]].map(([r, text]) => make("text", {
        x: left + 0.5 * (r + 1) * wide, y: top + 21, "text-anchor": "middle", fill: colour("quiet"), "font-size": 11,
      }, text)),
    ];
  }

  function heatWords(id, i, j) {
    const k = place(i, j), r = pairs[id][k];
    const words = `${label(columns[i].short)} ~ ${label(columns[j].short)}\n${signed(r)}`;
    if (id === "naive") return `${words}, ${pairs.together[k]} rows`;
    const [low, high] = [pairs.lower[k], pairs.upper[k]];
    if (pairs.known[k]) return `${words}, known`;
    return low === null || high === null ? words : `${words}, 95 % interval ${signed(low)} to ${signed(high)}`;
  }

  function drawHeat(id, title) {
    const d = columns.length;
    const width = printing() ? 480 : widthOf(id + "-plot");
    const each = (make) => columns.map((_, i) => columns.map((__, j) => (i === j ? null : make(i, j))));
    const cell = (Math.min(width, 620) - 120) / d;
    const size = Math.min(12, Math.max(7, 0.9 * cell));
    const names = { at: columns.map((_, k) => k), texts: columns.map((c) => label(c.short, width < 420 ? 12 : 20)), names: true };
    const marks = { plain: true, size, ...(d <= 40 && cell > 7 ? names : { bare: true }) };
    const numbered = d <= 25 && cell > 30;
    draw(id, [{
      type: "heat", z: each((i, j) => pairs[id][place(i, j)]), text: each((i, j) => heatWords(id, i, j)), gap: d > 40 ? 0 : 1, shade, ink: inkOn,
      labels: numbered ? each((i, j) => signed(pairs[id][place(i, j)])) : null, labelSize: Math.min(12, cell / 3.4),
    }], {
      width, height: Math.round(Math.min(Math.max(width, 340), 620, 80 * d + 180)), title, legend: false, below: 34, extra: (...parts) => colourBar(id, ...parts),
      x: { range: [-0.5, d - 0.5], ...marks }, y: { range: [d - 0.5, -0.5], ...marks },
    });
  }

  function drawCorrelations() {
    drawHeat("naive", "Seen only");
    drawHeat("recovered", "Recovered");
  }

  /* Convergence */

  // Steps are whole numbers; where there are few, each is marked.
  const isShort = (steps) => steps[steps.length - 1] <= 60;
  const stepAxis = (steps) => {
    const last = steps[steps.length - 1];
    return { title: "step", range: [1 - 0.03 * last, last + 0.03 * last], whole: true, most: 8 };
  };

  function drawClimb() {
    const climb = content.climb;
    const one = (name, y, color, dash) => ({
      type: "line", name, x: climb.steps, y, color, dash, marked: isShort(climb.steps), size: 7, open: dash === "dash",
      text: climb.steps.map((step, m) => {
        const low = y[m] !== null && y[m] <= climb.smallest;
        return `${name}\nstep ${step}: ${low ? "less than a millionth" : show(y[m], 2)}`;
      }),
    });
    const lines = [one(climb.climbs ? "left, as estimated" : "change by a step", climb.estimated, colour("recovered"), "solid")];
    if (climb.gained) lines.push(one("below the last value", climb.gained, colour("naive"), "dash"));
    const known = lines.flatMap((l) => l.y).filter((y) => y !== null).concat(climb.climbs ? [climb.enough] : []);
    const ends = [Math.floor(Math.log10(Math.min(...known)) - 0.15), Math.ceil(Math.log10(Math.max(...known)) + 0.15)];
    draw("climb", lines, {
      height: 320, rules: climb.climbs ? [{ y: climb.enough, color: colour("quiet"), dash: "dot" }] : [],
      x: stepAxis(climb.steps), y: { title: "units of log-likelihood", log: true, range: ends.map((k) => 10 ** k), most: 7 },
    });
  }

  function drawTrace() {
    const trace = content.trace;
    const many = columns.length;
    // Few lines are told apart by colour and dash, many by the pointer alone.
    const few = many <= DASHES.length * LINES.length;
    const look = (k) => few
      ? { color: colour(LINES[k % LINES.length]), dash: DASHES[Math.floor(k / LINES.length)] }
      : { color: colour("recovered"), width: many > 20 ? 1 : 1.5, opacity: many > 20 ? 0.35 : 0.6 };
    const traces = columns.map((c, k) => ({
      type: "line", marked: few && isShort(trace.steps), size: 6, x: trace.steps, y: trace.columns[k], name: label(c.short, 24), ...look(k),
      text: trace.steps.map((step, m) => {
        const y = trace.columns[k][m];
        return `${label(c.short)}\nstep ${step}: ${y === null ? "–" : fixed(y, 3)}`;
      }),
    }));
    draw("trace", traces, {
      height: few ? 360 : 300, legend: few, rules: [{ y: 0, color: colour("rule") }],
      x: stepAxis(trace.steps), y: { title: trace.unit === "standard errors" ? "standard errors" : "units" },
    });
  }

  function drawSampling() {
    const errors = content.monte_carlo;
    const d = columns.length;
    const at = columns.map((_, k) => k);
    const one = (name, values, more) => ({
      type: "marks", name, x: at, y: values.map((v) => (v === null ? null : 100 * v)), size: d > 60 ? 5 : 8,
      text: columns.map((c, k) => `${label(c.short)}\n${name}: ${values[k] === null ? "–" : percent(values[k])}`), ...more,
    });
    const largest = Math.max(...errors.mean.concat(errors.deviation).map((v) => 100 * (v || 0)));
    draw("sampling", [
      one("mean", errors.mean, { color: colour("recovered") }),
      one("standard deviation", errors.deviation, { color: colour("naive"), symbol: "diamond", open: true }),
    ], {
      height: 320, rules: [{ y: 10, color: colour("quiet"), dash: "dash" }],
      x: { range: [-0.6, d - 0.4], ...(d <= 40 ? { at, texts: columns.map((c) => label(c.short, 18)), names: true } : { bare: true }) },
      y: { title: "% of the statistical error", range: [0, Math.max(12, 1.15 * largest)], most: 5 },
    });
  }

  /* All together */

  const drawers = [["column-plot", drawColumn], ["pair-plot", drawPair], ["naive-plot", drawCorrelations],
    ["climb-plot", drawClimb], ["trace-plot", drawTrace], ["sampling-plot", drawSampling]];

  start(drawers);
  if (find("column")) find("column").addEventListener("change", drawColumn);
  if (find("pair-x")) watchPairs();
})();
