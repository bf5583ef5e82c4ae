(() => {
  "use strict";
  const {
    content, find, LINES, DASHES, printing, colour, widthOf, label, spoken, minus, show, fixed, signed, percent,
    axis, title, draw, caption, start,
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
  function axisOf(column, more) {
    const name = column.transform === null
      ? label(column.name, 60)
      : `${label(column.name, 40)} (axis on the scale of ${label(column.label, 30)})`;
    const far = Math.max(...column.range.map(Math.abs));
    const own = { title: title(name), range: column.range, exponentformat: far < 1e7 ? "none" : "power" };
    if (column.ticks) Object.assign(own, { tickvals: column.ticks[0], ticktext: column.ticks[1].map(minus) });
    return axis(Object.assign(own, more));
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
      traces.push(
        {
          type: "bar", name: "seen", x: centres, y: h.seen, width: h.width,
          marker: { color: colour("seen"), line: { width: 0.5, color: colour("paper") } },
          customdata: h.counts.map((n, k) => [n, between[k]]),
          hovertemplate: "%{customdata[0]} seen, %{customdata[1]}<extra></extra>",
        }
      );
      if (h.hidden.some((y) => y > 0)) {
        traces.push({
          type: "bar", name: "hidden", x: centres, y: h.hidden, width: h.width, hoverinfo: "skip",
          marker: {
            color: "rgba(0,0,0,0)", line: { width: 0 },
            pattern: { shape: "/", fgcolor: colour("hidden"), bgcolor: "rgba(0,0,0,0)", size: 7, solidity: 0.16 },
          },
        });
      }
      top = Math.max(top, ...h.seen.map((y, k) => y + h.hidden[k]));
    }
    const grid = Array.from({ length: 241 }, (_, k) =>
      column.range[0] + (k / 240) * (column.range[1] - column.range[0]));
    traces.push({
      type: "scatter", mode: "lines", name: "recovered density", x: grid,
      y: grid.map((x) => density((x - mean) / deviation) / deviation),
      line: { color: colour("recovered"), width: 2.5 },
      hovertemplate: "recovered density %{y:.3g}<extra></extra>",
    });
    const { shapes, annotations } = limitMarks(column);
    const shares = shareTexts(column, top, grid, traces[traces.length - 1].y);
    draw("column", traces, {
      height: 380, barmode: "stack", bargap: 0, shapes, annotations: annotations.concat(shares.annotations),
      xaxis: axisOf(column),
      yaxis: axis({ title: title("density"), range: [0, shares.top], nticks: 5, exponentformat: "power" }),
    });
    find("column-reading").textContent = columnReading(column);
    caption("column", {
      hatched: h && h.hidden.some((y) => y > 0), limits: column.limits.length > 0, range: column.limit_range,
    });
  }

  // Texts of hidden shares: above the bars and the curve, or at an end of the axis where that is lower.
  function shareTexts(column, top, grid, density) {
    const h = column.histogram;
    const [first, last] = column.range;
    const annotations = [], taken = [];
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
      // Below the labels of the limits, which stand at the top.
      highest = Math.max(highest, y / (0.9 - 0.08 * lines.length));
      annotations.push({
        x: places[chosen] + wide / 2, xanchor: "center", y, yanchor: "bottom", yshift: 3, showarrow: false,
        font: { color: colour("ink"), size: 12 }, text: lines.join("<br>"), bgcolor: colour("paper"), borderpad: 2, opacity: 0.9,
      });
    });
    return { annotations, top: highest };
  }

  function limitMarks(column) {
    const shapes = [], annotations = [];
    const ink = { color: colour("ink"), size: 12 };
    const units = (k) => show(column.original ? column.original.limits[k] : column.limits[k].at, 6);
    column.limits.forEach((limit, k) => {
      shapes.push({
        type: "line", x0: limit.at, x1: limit.at, y0: 0, y1: 1, yref: "paper",
        line: { color: colour("ink"), width: 1.2, dash: "dash" },
      });
      if (column.limits.length <= 3) {
        // On the hidden side, unless the text would not fit there.
        const [first, last] = column.range;
        const room = (70 * (last - first)) / Math.max(widthOf("column-plot") - 80, 120);
        const right = limit.side === "above" ? limit.at + room < last : limit.at - room < first;
        annotations.push({
          x: limit.at, y: 1, yref: "paper", yanchor: "top", showarrow: false, font: ink,
          xanchor: right ? "left" : "right", text: `limit ${units(k)} `,
          bgcolor: colour("paper"), borderpad: 2, xshift: right ? 4 : -4,
        });
      }
    });
    const range = column.limit_range;
    if (range) {
      shapes.push({
        type: "rect", x0: range.from, x1: range.to, y0: 0, y1: 1, yref: "paper", layer: "below",
        fillcolor: colour("wash"), line: { width: 1, color: colour("rule") },
      });
      annotations.push({
        x: 0.5 * (range.from + range.to), y: 1, yref: "paper", yanchor: "top", showarrow: false,
        font: ink, text: `${range.many} limits`,
      });
    }
    return { shapes, annotations };
  }

  function columnReading(column) {
    const { mean, mean_interval: ends } = column.recovered;
    const kinds = Object.entries(column.kinds).map(([word, many]) => `${many} ${word}`);
    let text = `${spoken(column.label)}: ${percent(column.hidden_share)} hidden`;
    if (kinds.length) text += ` (${kinds.join(", ")})`;
    text += `; recovered mean ${show(mean)}`;
    if (ends) text += ` (95 % interval ${show(ends[0])} to ${show(ends[1])})`;
    if (column.naive.mean !== null) text += `; mean of what is seen ${show(column.naive.mean)}`;
    text += ".";
    const own = column.original;
    if (own) {
      text += ` In original units the recovered ${own.word} is ${show(own.recovered)}`;
      text += own.interval ? ` (${show(own.interval[0])} to ${show(own.interval[1])})` : "";
      if (column.units.mean !== null) text += `, the recovered mean ${show(column.units.mean)}`;
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
      default: return `${name}: hidden, anywhere`;
    }
  }

  const SYMBOLS = {
    "b s": "triangle-left-open", "a s": "triangle-right-open", "s b": "triangle-down-open",
    "s a": "triangle-up-open", "b b": "triangle-sw-open", "a a": "triangle-ne-open",
    "b a": "triangle-nw-open", "a b": "triangle-se-open", "n s": "line-ew-open", "s n": "line-ns-open",
    "n b": "triangle-down-open", "n a": "triangle-up-open", "b n": "triangle-left-open", "a n": "triangle-right-open",
  };

  function pairPoints(x, y) {
    const seen = { x: [], y: [], text: [] };
    const hidden = { x: [], y: [], text: [], symbol: [], label: [], halfX: [], halfY: [] };
    const corners = new Map();
    const edge = (column) => column.range[0] + 0.012 * (column.range[1] - column.range[0]);
    const loose = (kind) => (kind === "e" || kind === "t" ? "n" : kind);
    content.drawn_rows.forEach((row, k) => {
      const kx = loose(x.cells.kind[k]), ky = loose(y.cells.kind[k]);
      if (kx === "n" && ky === "n") return;
      const at = [kx === "n" ? edge(x) : x.cells.at[k], ky === "n" ? edge(y) : y.cells.at[k]];
      const text = `${label(row, 30)}<br>${cellText(x, k)}<br>${cellText(y, k)}`;
      if (kx === "s" && ky === "s") {
        seen.x.push(at[0]); seen.y.push(at[1]); seen.text.push(text);
        return;
      }
      const plain = (kind) => (kind === "i" ? "s" : kind);
      const symbol = SYMBOLS[plain(kx) + " " + plain(ky)] || "diamond-open";
      const both = kx !== "s" && ky !== "s" && kx !== "i" && ky !== "i";
      const key = at.join(" ") + symbol;
      if (both && corners.has(key)) {
        const where = corners.get(key);
        where.many += 1;
        hidden.label[where.index] = `${where.many}`;
        hidden.text[where.index] = `${where.many} rows<br>${cellText(x, k)}<br>${cellText(y, k)}`;
        return;
      }
      if (both) corners.set(key, { index: hidden.x.length, many: 1 });
      hidden.x.push(at[0]); hidden.y.push(at[1]); hidden.text.push(text);
      hidden.symbol.push(symbol); hidden.label.push("");
      hidden.halfX.push(x.cells.half[k] || 0); hidden.halfY.push(y.cells.half[k] || 0);
    });
    return { seen, hidden };
  }

  function pairTraces(x, y, k) {
    const traces = [];
    if (content.has_table) {
      const { seen, hidden } = pairPoints(x, y);
      const size = seen.x.length > 600 ? 4 : 6;
      traces.push({
        type: "scatter", mode: "markers", name: "both seen", x: seen.x, y: seen.y, text: seen.text,
        hovertemplate: "%{text}<extra></extra>",
        marker: { color: colour("point"), size, opacity: seen.x.length > 600 ? 0.5 : 0.75, line: { width: 0 } },
      });
      if (hidden.x.length) {
        const bars = (half) => ({
          type: "data", array: half, visible: half.some((v) => v > 0), color: colour("hidden"), thickness: 1, width: 0,
        });
        traces.push({
          type: "scatter", mode: "markers+text", name: "one or both hidden", x: hidden.x, y: hidden.y,
          text: hidden.label, textposition: "bottom left", customdata: hidden.text,
          textfont: { color: colour("quiet"), size: 11 }, hovertemplate: "%{customdata}<extra></extra>",
          error_x: bars(hidden.halfX), error_y: bars(hidden.halfY), cliponaxis: false,
          marker: { color: colour("hidden"), symbol: hidden.symbol, size: size + 2, line: { width: 1.2, color: colour("hidden") } },
        });
      }
    }
    const outline = (name, found, r, line, radius) => {
      const curve = ellipse(...found, r, radius);
      if (!curve) return;
      traces.push({ type: "scatter", mode: "lines", name, x: curve.x, y: curve.y, line, hoverinfo: "skip" });
      traces.push({
        type: "scatter", mode: "markers", x: [found[0].mean], y: [found[1].mean], showlegend: false,
        marker: { symbol: "cross-thin-open", size: 11, color: line.color, line: { width: 2, color: line.color } },
        text: `${name.split(",")[0]}, means: ${show(found[0].mean)}, ${show(found[1].mean)}`, hovertemplate: "%{text}<extra></extra>",
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
    const width = widthOf("pair-plot");
    const narrow = width < 520;
    draw("pair", pairTraces(x, y, k), {
      height: Math.round(Math.min(Math.max(0.72 * width, 380), 600)),
      xaxis: axisOf(x), yaxis: axisOf(y), margin: { l: 60, r: 14, t: narrow ? 76 : 40, b: 52 },
    });
    const drawn = Object.fromEntries(["ba", "i", "e", "t", "n", "etn"].map((letters) =>
      [letters, content.has_table && [x, y].some((c) => Array.from(c.cells.kind).some((one) => letters.includes(one)))]));
    caption("pair", drawn);
    const [low, high] = [pairs.lower[k], pairs.upper[k]];
    let text = `${spoken(x.label)} and ${spoken(y.label)}: recovered correlation ${signed(pairs.recovered[k])}`;
    if (low !== null && high !== null) text += ` (95 % interval ${signed(low)} to ${signed(high)})`;
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

  // Black or white, whichever is easier to read on the colour of a correlation.
  function inkOn(r) {
    const parts = (name) => [1, 3, 5].map((k) => parseInt(colour(name).slice(k, k + 2), 16) / 255);
    const [from, to] = [parts("middle"), parts(r < 0 ? "low" : "high")];
    const mixed = from.map((v, k) => v + Math.abs(r) * (to[k] - v));
    const [red, green, blue] = mixed.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
  }

  function numbersOn(values, size) {
    const out = { type: "scatter", mode: "text", x: [], y: [], text: [], hoverinfo: "skip", textfont: { size, color: [] } };
    columns.forEach((_, i) => columns.forEach((__, j) => {
      const r = i === j ? null : values[place(i, j)];
      if (r === null) return;
      out.x.push(j); out.y.push(i); out.text.push(signed(r)); out.textfont.color.push(inkOn(r));
    }));
    return out;
  }

  function drawHeat(id, values, heading) {
    const d = columns.length;
    const width = printing() ? 480 : widthOf(id + "-plot");
    const names = columns.map((c) => label(c.short, width < 420 ? 12 : 20));
    const z = [], hover = [];
    for (let i = 0; i < d; i++) {
      z.push([]); hover.push([]);
      for (let j = 0; j < d; j++) {
        const k = i === j ? -1 : place(i, j);
        const r = k < 0 ? null : values[k];
        z[i].push(r);
        let words = `${label(columns[i].short)} ~ ${label(columns[j].short)}<br>${signed(r)}`;
        if (k >= 0 && id === "recovered" && pairs.lower[k] !== null && pairs.upper[k] !== null) {
          words += `, 95 % interval ${signed(pairs.lower[k])} to ${signed(pairs.upper[k])}`;
        }
        if (k >= 0 && id === "naive") words += `, ${pairs.together[k]} rows`;
        hover[i].push(words);
      }
    }
    const cell = (Math.min(width, 620) - 120) / d;
    const tickfont = { color: colour("quiet"), size: Math.min(12, Math.max(7, 0.9 * cell)) };
    const marks = d <= 40 && cell > 7 ? { tickfont, tickvals: columns.map((_, k) => k), ticktext: names } : { showticklabels: false };
    const numbers = d <= 25 && cell > 30 ? [numbersOn(values, Math.min(12, cell / 3.4))] : [];
    draw(id, [{
      type: "heatmap", z, customdata: hover, hovertemplate: "%{customdata}<extra></extra>", hoverongaps: false,
      zmin: -1, zmax: 1, xgap: d > 40 ? 0 : 1, ygap: d > 40 ? 0 : 1,
      colorscale: [[0, colour("low")], [0.5, colour("middle")], [1, colour("high")]],
      colorbar: {
        orientation: "h", thickness: 8, len: 0.6, yref: "container", ypad: 0, x: 0.5,
        tickvals: [-1, -0.5, 0, 0.5, 1], ticktext: ["−1", "−0.5", "0", "+0.5", "+1"], outlinewidth: 0, y: 0.06, yanchor: "bottom",
        tickfont: { color: colour("quiet"), size: 11 },
      },
    }, ...numbers], {
      width, height: Math.round(Math.min(Math.max(width, 340), 620, 80 * d + 180)), showlegend: false,
      title: { text: heading, font: { size: 14, color: colour("ink") }, x: 0, xref: "container", y: 0.985, yanchor: "top" },
      margin: { l: 20, r: 8, t: 34, b: 72 },
      xaxis: axis(Object.assign({ side: "bottom", tickangle: d > 3 ? -45 : 0, showline: false, ticks: "", range: [-0.5, d - 0.5] }, marks)),
      yaxis: axis(Object.assign({ range: [d - 0.5, -0.5], showline: false, ticks: "" }, marks)),
    });
  }

  function drawCorrelations() {
    drawHeat("naive", pairs.naive, "Seen only");
    drawHeat("recovered", pairs.recovered, "Recovered");
  }

  /* Convergence */

  // Steps are whole numbers; where there are few, each is marked.
  const FEW_STEPS = 60;
  const stepAxis = (steps) => {
    const last = steps[steps.length - 1];
    return axis(Object.assign(
      { title: title("step"), range: [1 - 0.03 * last, last + 0.03 * last] },
      last <= 12 ? { dtick: 1, tick0: 1 } : { nticks: 10 }
    ));
  };
  const markedLines = (steps) => (steps[steps.length - 1] <= FEW_STEPS ? "lines+markers" : "lines");

  function drawClimb() {
    const climb = content.climb;
    const one = (name, y, color, dash, symbol) => ({
      type: "scatter", mode: markedLines(climb.steps), name, x: climb.steps, y,
      line: { color, width: 1.8, dash }, marker: { color, size: 7, symbol, line: { width: 1.5, color } },
      text: climb.steps.map((step, m) => {
        const low = y[m] !== null && y[m] <= climb.smallest;
        return `${name}<br>step ${step}: ${low ? "less than a millionth" : show(y[m], 2)}`;
      }),
      hovertemplate: "%{text}<extra></extra>",
    });
    const lines = [one(climb.climbs ? "left, as estimated" : "change by a step", climb.estimated, colour("recovered"), "solid", "circle")];
    if (climb.gained) lines.push(one("below the last value", climb.gained, colour("naive"), "dash", "circle-open"));
    const known = lines.flatMap((l) => l.y).filter((y) => y !== null).concat(climb.climbs ? [climb.enough] : []);
    const ends = [Math.floor(Math.log10(Math.min(...known)) - 0.15), Math.ceil(Math.log10(Math.max(...known)) + 0.15)];
    const at = [];
    for (let k = ends[0]; k <= ends[1]; k += Math.ceil((ends[1] - ends[0]) / 7)) at.push(k);
    const words = (k) => (k < -4 || k > 5 ? `10<sup>${minus(k)}</sup>` : String(Number("1e" + k)));
    draw("climb", lines, {
      height: 320,
      shapes: climb.climbs ? [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: climb.enough, y1: climb.enough, layer: "below", line: { color: colour("quiet"), width: 1, dash: "dot" } }] : [],
      xaxis: stepAxis(climb.steps),
      yaxis: axis({ title: title("units of log-likelihood"), type: "log", range: ends, tickvals: at.map((k) => Number("1e" + k)), ticktext: at.map(words) }),
    });
  }

  function drawTrace() {
    const trace = content.trace;
    const many = columns.length;
    // Few lines are told apart by colour and dash, many by the pointer alone.
    const few = many <= DASHES.length * LINES.length;
    const line = (k) => few
      ? { color: colour(LINES[k % LINES.length]), width: 1.8, dash: DASHES[Math.floor(k / LINES.length)] }
      : { color: colour("recovered"), width: many > 20 ? 1 : 1.5 };
    const traces = columns.map((c, k) => ({
      type: "scatter", mode: few ? markedLines(trace.steps) : "lines", marker: { size: 6 },
      x: trace.steps, y: trace.columns[k], name: label(c.short, 24), line: line(k),
      opacity: few ? 1 : many > 20 ? 0.35 : 0.6,
      text: trace.steps.map((step, m) => {
        const y = trace.columns[k][m];
        return `${label(c.short)}<br>step ${step}: ${y === null ? "–" : fixed(y, 3)}`;
      }),
      hovertemplate: "%{text}<extra></extra>",
    }));
    draw("trace", traces, {
      height: few ? 340 : 300, showlegend: few, margin: { l: 56, r: 12, t: few ? 40 : 12, b: 48 },
      shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 0, y1: 0, layer: "below", line: { width: 1, color: colour("rule") } }],
      xaxis: stepAxis(trace.steps),
      yaxis: axis({ title: title(trace.unit === "standard errors" ? "standard errors" : "units"), nticks: 6 }),
    });
  }

  function drawSampling() {
    const errors = content.monte_carlo;
    const d = columns.length;
    const at = columns.map((_, k) => k);
    const one = (name, values, symbol, color, shift) => ({
      type: "scatter", mode: "markers", name, x: at.map((k) => k + shift), y: values.map((v) => (v === null ? null : 100 * v)),
      text: columns.map((c) => label(c.short)), marker: { symbol, color, size: d > 60 ? 5 : 8, line: { width: 1.5, color } },
      hovertemplate: "%{text}<br>%{y:.1f} %<extra></extra>",
    });
    const largest = Math.max(...errors.mean.concat(errors.deviation).map((v) => 100 * (v || 0)));
    draw("sampling", [
      one("mean", errors.mean, "circle", colour("recovered"), 0),
      one("standard deviation", errors.deviation, "diamond-open", colour("naive"), 0),
    ], {
      height: 320,
      shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 10, y1: 10, line: { color: colour("quiet"), width: 1, dash: "dash" } }],
      xaxis: axis(Object.assign({ range: [-0.6, d - 0.4], tickangle: d > 4 ? -35 : 0 },
        d <= 40 ? { tickvals: at, ticktext: columns.map((c) => label(c.short, 18)) } : { showticklabels: false })),
      yaxis: axis({ title: title("% of the statistical error"), range: [0, Math.max(12, 1.15 * largest)], nticks: 5 }),
    });
  }

  /* All together */

  const drawers = [["column-plot", drawColumn], ["pair-plot", drawPair], ["naive-plot", drawCorrelations],
    ["climb-plot", drawClimb], ["trace-plot", drawTrace], ["sampling-plot", drawSampling]];

  start(drawers);
  if (find("column")) find("column").addEventListener("change", drawColumn);
  if (find("pair-x")) watchPairs();
})();
