(() => {
  "use strict";
  const {
    content, find, LINES, DASHES, colour, widthOf, short, label, spoken, minus, show, percent, draw, caption, start,
  } = drawing;
  const { equations, points, variables, effects } = content;
  const chosen = (id) => (find(id) ? Number(find(id).value) : 0);
  // A colour that lets others through.
  const pale = (name, share) => {
    const hex = colour(name);
    return `rgba(${[1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)).join(",")},${share})`;
  };
  const across = (y, dash = "dot", color = colour("quiet")) => ({ y, dash, color });
  const interval = (low, high) => (low === null || high === null ? "" : ` (95 % interval ${show(low)} to ${show(high)})`);
  // Room for what is drawn, with a little on each side.
  const rangeOf = (values, share = 0.04) => {
    const known = values.filter((v) => v !== null && v !== undefined);
    let low = Math.min(...known), high = Math.max(...known);
    if (!known.length) [low, high] = [0, 1];
    if (low === high) { low -= 1; high += 1; }
    return [low - share * (high - low), high + share * (high - low)];
  };
  const dotSize = (many) => (many > 600 ? 4 : 6);
  const dotOpacity = (many) => (many > 600 ? 0.4 : 0.65);

  /* Coefficients */

  const MOST_TERMS = 60;
  const isIntercept = (term) => term.name === "Intercept";

  // Where one unit suits one regressor and not another, a standard deviation suits both.
  function startScale() {
    if (!find("forest-scale")) return;
    const ratios = equations.map((one) => {
      const widths = one.terms.filter((t) => !isIntercept(t) && t.error).map((t) => t.error);
      return widths.length ? Math.max(...widths) / Math.min(...widths) : 1;
    });
    if (Math.max(...ratios) > 8) find("forest-scale").value = "1";
  }

  function drawForest() {
    const equation = equations[chosen("forest-outcome")];
    const scaled = chosen("forest-scale") === 1;
    let terms = equation.terms.filter((t) => !isIntercept(t));
    const intercept = terms.length > 0 && terms.length < equation.terms.length;
    if (!terms.length) terms = equation.terms;
    const many = terms.length;
    if (many > MOST_TERMS) {
      const far = (t) => Math.abs(t.estimate) / (t.error || Infinity);
      const kept = new Set(terms.slice().sort((a, b) => far(b) - far(a)).slice(0, MOST_TERMS));
      terms = terms.filter((t) => kept.has(t));
    }
    const factor = (t) => (scaled && t.spread ? t.spread : 1);
    const at = terms.map((_, k) => k);
    const width = widthOf("forest-plot");
    const narrow = width < 520, letters = narrow ? 18 : 34;
    const times = (key) => terms.map((t) => (t[key] === null ? null : t[key] * factor(t)));
    const traces = [];
    const naive = (key, name, symbol, shift) => {
      const x = times(key);
      if (x.every((v) => v === null)) return false;
      traces.push({
        type: "marks", name, x, y: at.map((k) => k + shift), symbol, size: 9, color: pale("naive", 0.45),
        text: terms.map((t, k) => `${label(t.name, 60)}\n${name}: ${show(x[k])}`),
      });
      return true;
    };
    const seen = naive("naive", "seen rows", "circle", 0.2);
    const half = naive("half", "half limit", "diamond", 0.36);
    const x = times("estimate");
    const ends = terms.map((t) => (t.lower === null ? [null, null] : [t.lower, t.upper].map((v) => v * factor(t))));
    const given = terms.some((t) => !t.learned);
    traces.push({
      type: "marks", name: "recovered", x, y: at, xEnds: content.has_errors ? ends : null,
      color: colour("recovered"), open: terms.map((t) => !t.learned),
      text: terms.map((t, k) => `${label(t.name, 60)}\nrecovered: ${show(x[k])}${t.learned ? interval(...ends[k]) : ", given"}`),
    });
    const latent = equation.kind !== "continuous";
    const own = latent ? "latent standard deviations" : `units of ${label(equation.name, narrow ? 14 : 30)}`;
    const what = narrow ? (scaled ? "per standard deviation" : `in ${own}`)
      : scaled ? `change per standard deviation, in ${own}` : `coefficient, in ${own}`;
    draw("forest", traces, {
      height: Math.max(190, 120 + 30 * terms.length), rules: [{ x: 0, dash: "dot", color: colour("quiet") }],
      x: { title: what, range: rangeOf([0, ...traces.flatMap((t) => t.x), ...ends.flat()]), most: narrow ? 5 : 9 },
      y: { range: [terms.length - 0.4, -0.6], at, texts: terms.map((t) => label(t.name, letters)), plain: true, color: colour("ink") },
    });
    caption("forest", { scaled, seen, half, given, intercept, latent, most: many > MOST_TERMS });
  }

  /* Residuals */

  function drawResiduals() {
    const j = chosen("residual-outcome");
    drawQuantiles(content.quantiles[j]);
    const hidden = drawAgainst(j);
    const latent = equations[j].kind !== "continuous";
    caption("residual", { hidden: hidden && !latent, latent });
    const q = content.quantiles[j];
    const out = q.residual.filter((r, k) => r < q.lower[k] || r > q.upper[k]).length;
    const share = q.residual.length ? out / q.residual.length : 0;
    find("residual-reading").textContent = `${spoken(equations[j].name)}: ${q.count.toLocaleString("en")} residuals; `
      + `${share === 0 ? "none" : percent(share)} of those drawn against the normal ${share === 0 ? "lies" : "lie"} outside of the band.`;
  }

  function drawQuantiles(q) {
    const ends = rangeOf([...q.normal, ...q.residual, ...q.lower, ...q.upper]);
    const text = q.normal.map((z, k) => `residual ${show(q.residual[k], 3)}\nof a normal sample ${show(z, 3)}\nband ${show(q.lower[k], 3)} to ${show(q.upper[k], 3)}`);
    draw("quantile", [
      { type: "band", x: q.normal, low: q.lower, high: q.upper, color: pale("recovered", 0.16) },
      { type: "line", x: ends, y: ends, color: colour("recovered"), width: 1.2 },
      { type: "marks", x: q.normal, y: q.residual, text, size: 4, color: colour("point") },
    ], {
      height: 380, legend: false, x: { title: "normal quantile", range: rangeOf(q.normal) },
      y: { title: "quantile residual", range: rangeOf([...q.residual, ...q.lower, ...q.upper]) },
    });
  }

  // Points of which a value is seen, and others.
  function drawAgainst(j) {
    const point = points[j];
    const isSeen = (k) => (point.cells ? point.cells.kind[k] === "s" : true);
    const parts = [true, false].map((want) => point.predictor.map((_, k) => k).filter((k) => isSeen(k) === want && point.residual[k] !== null));
    const many = parts[0].length + parts[1].length;
    const dots = (rows, name, more) => ({
      type: "marks", name, x: rows.map((k) => point.predictor[k]), y: rows.map((k) => point.residual[k]),
      text: rows.map((k) => `row ${content.drawn_rows[k]}\npredictor ${show(point.predictor[k])}\nresidual ${show(point.residual[k], 3)}`),
      size: dotSize(many), opacity: dotOpacity(many), ...more,
    });
    const { at, mean, error } = point.bins;
    const seenColour = equations[j].kind === "continuous" ? colour("point") : colour("hidden");
    const traces = [];
    if (parts[1].length) traces.push(dots(parts[1], "hidden, drawn", { open: true, color: colour("hidden") }));
    if (parts[0].length) traces.push(dots(parts[0], equations[j].kind === "continuous" ? "seen" : "drawn within the category", { color: seenColour }));
    if (at.length) {
      traces.push({
        type: "line", marked: true, name: "means of tenths", x: at, y: mean, color: colour("naive"), size: 6, errorWidth: 1.5,
        yEnds: error.map((e, k) => [mean[k] - 1.96 * e, mean[k] + 1.96 * e]), text: mean.map((m, k) => `mean ${show(m, 2)} ± ${show(1.96 * error[k], 2)}`),
      });
    }
    draw("against", traces, {
      height: 380, rules: [across(0)], x: { title: `linear predictor of ${label(equations[j].name, 30)}`, range: rangeOf(point.predictor) },
      y: { title: "quantile residual", range: rangeOf(point.residual) },
    });
    return parts[1].length > 0;
  }

  /* Effects */

  // Where values of a variable are drawn: a little apart where there are few different ones.
  const FEW_VALUES = 25;
  const gapOf = (variable) => {
    const known = Array.from(new Set(variable.values.filter((v) => v !== null))).sort((a, b) => a - b);
    if (variable.levels) return 1;
    return known.length > FEW_VALUES || known.length < 2 ? 0 : Math.min(...known.slice(1).map((v, k) => v - known[k]));
  };
  function placesOf(variable) {
    const width = 0.4 * gapOf(variable);
    return variable.values.map((v, k) => (v === null ? null : v + width * (((k * 0.6180339887) % 1) - 0.5)));
  }

  function curve(variable, x, part, key, look) {
    const [y, low, high] = [part[key], part[key + "_lower"], part[key + "_upper"]];
    const text = x.map((v, k) => `${look.name}: ${show(y[k], 3)}` + (low ? interval(low[k], high[k]) : ""));
    const own = { name: look.name, text, color: colour(look.colour) };
    if (variable.levels) {
      return [{
        ...own, type: "marks", x: x.map((v) => v + look.shift), y, size: 10, symbol: look.symbol, yEnds: low ? low.map((l, k) => [l, high[k]]) : null,
      }];
    }
    const band = low ? [{ type: "band", x, low, high, color: pale(look.colour, 0.16) }] : [];
    return [...band, { ...own, type: "line", x, y, width: 2.5, dash: look.dash }];
  }

  function drawEffect() {
    const j = chosen("effect-outcome"), v = chosen("effect-variable");
    const equation = equations[j], variable = variables[v], part = effects[j][v], point = points[j];
    const x = variable.grid, at = placesOf(variable);
    const holds = { apart: gapOf(variable) > 0 }, traces = [], rules = [], notes = [];
    const ranges = [];
    const kind = equation.kind;
    const latentLook = { name: "all values", colour: "recovered", dash: "solid", symbol: "circle", shift: -0.08 };
    const seenLook = { name: "values that are seen", colour: "naive", dash: "dash", symbol: "diamond", shift: 0.08 };
    if (kind === "continuous") {
      const ticks = drawCells(equation, point, at, traces, ranges);
      Object.assign(holds, ticks, { latent: true, seen: Boolean(part.seen), why: Boolean(part.why) });
      if (part.seen) traces.push(...curve(variable, x, part, "seen", seenLook));
      traces.push(...curve(variable, x, part, "latent", latentLook));
    } else if (kind === "binary") {
      const name = `probability of ${label(equation.categories[1][0], 30)}`;
      traces.push(...rugs(point, at), ...curve(variable, x, part, "seen", { ...latentLook, name, shift: 0 }));
      Object.assign(holds, { chance: true, rows: true });
    } else if (chosen("effect-view") === 0) {
      traces.push(...chances(equation, variable, x, part));
      holds.chances = true;
      holds.apart = false;
    } else {
      traces.push(...curve(variable, x, part, "latent", { ...latentLook, name: "latent number", shift: 0 }));
      equation.cuts.forEach((cut) => rules.push(across(cut.estimate, "dot", colour("ink"))));
      Object.assign(holds, { cuts: true, apart: false });
      const ends = equation.cuts.map((c) => c.estimate);
      ranges.push(ends[0] - 1, ends[ends.length - 1] + 1);
      equation.categories.slice(0, 12).forEach(([name], k) => {
        const [low, high] = [ends[k - 1], ends[k]];
        const y = low === undefined ? high : low;
        notes.push({ x: null, y, hangs: low === undefined, text: label(name, 24), color: colour("quiet") });
      });
    }
    traces.forEach((t) => { if (t.y) ranges.push(...t.y); });
    ["latent", "seen"].forEach((key) => {
      if (part[key + "_lower"] && (kind === "continuous" || (kind === "ordered" && key === "latent" && !holds.chances))) ranges.push(...part[key + "_lower"], ...part[key + "_upper"]);
    });
    // Along a number the axis is that of the curve: a few rows may lie beyond it.
    const room = Math.max(0.02 * (x[x.length - 1] - x[0]), 0.3 * gapOf(variable));
    const xs = variable.levels ? [-0.5, x.length - 0.5] : [x[0] - room, x[x.length - 1] + room];
    const what = { continuous: label(equation.name, 40), binary: `probability of ${label(equation.categories ? equation.categories[1][0] : "", 24)}`, ordered: holds.chances ? "probability" : `latent ${label(equation.name, 30)}` }[kind];
    const levels = variable.levels ? { at: x, texts: variable.levels.map((l) => label(l, 16)), names: true } : {};
    draw("effect", traces, {
      height: 420, rules, notes, x: { title: label(variable.name, 60), range: xs, ...levels },
      y: { title: what, range: kind === "binary" || holds.chances ? [-0.06, 1.06] : rangeOf(ranges), most: 7 },
    });
    caption("effect", holds);
    find("effect-reading").textContent = effectReading(equation, variable, part);
  }

  // Seen values as dots, and hidden ones as ticks at their limits.
  function drawCells(equation, point, at, traces, ranges) {
    const { kind, at: values } = point.cells;
    const rows = (letters) => at.map((_, k) => k).filter((k) => letters.includes(kind[k]) && at[k] !== null);
    const seen = rows("s"), limited = rows("bai"), loose = rows("uentc");
    const text = (k, word) => `row ${content.drawn_rows[k]}\n${word}`;
    if (seen.length) {
      traces.push({
        type: "marks", name: "seen", x: seen.map((k) => at[k]), y: seen.map((k) => values[k]),
        size: dotSize(seen.length), opacity: dotOpacity(seen.length), color: colour("seen"),
        text: seen.map((k) => text(k, `${label(equation.name, 30)}: ${show(values[k])}`)),
      });
    }
    const words = { b: "hidden, below", a: "hidden, above", i: "hidden, near" };
    const ticks = (chosenRows, y, written, name) => ({
      type: "marks", name, x: chosenRows.map((k) => at[k]), y, text: chosenRows.map(written),
      symbol: "upright", open: true, size: 9, opacity: 0.7, color: colour("hidden"),
    });
    if (limited.length) traces.push(ticks(limited, limited.map((k) => values[k]), (k) => text(k, `${words[kind[k]]} ${show(values[k])}`), "hidden, at the limit"));
    if (loose.length) {
      const known = seen.concat(limited).map((k) => values[k]);
      const [low] = rangeOf(known.length ? known : [0], 0.05);
      ranges.push(low);
      traces.push(ticks(loose, loose.map(() => low), (k) => text(k, kind[k] === "u" ? "not selected" : "hidden"), "not seen"));
    }
    return { dots: seen.length > 0, ticks: limited.length > 0, edge: loose.length > 0 };
  }

  // Rows of either category at the edges of a probability.
  function rugs(point, at) {
    return [0, 1].map((code) => {
      const rows = at.map((_, k) => k).filter((k) => point.codes[k] === code && at[k] !== null);
      return {
        type: "marks", x: rows.map((k) => at[k]), y: rows.map(() => (code ? 1.035 : -0.035)),
        symbol: "upright", open: true, size: 9, opacity: 0.5, color: colour("hidden"), text: rows.map((k) => `row ${content.drawn_rows[k]}`),
      };
    });
  }

  // The probability of each category, told apart by colour and dash.
  function chances(equation, variable, x, part) {
    const many = equation.categories.length;
    return equation.categories.flatMap(([name], k) => curve(variable, x, part, "chance_" + k, {
      name: label(name, 30), colour: LINES[k % LINES.length], dash: DASHES[Math.floor(k / LINES.length) % DASHES.length],
      symbol: k % 2 ? "diamond" : "circle", shift: 0.5 * ((k + 0.5) / many - 0.5),
    }));
  }

  function effectReading(equation, variable, part) {
    const key = equation.kind === "binary" ? "seen" : "latent";
    const y = part[key], last = y.length - 1;
    const what = equation.kind === "binary" ? `the probability of ${spoken(equation.categories[1][0])}`
      : equation.kind === "ordered" ? `the latent number behind ${spoken(equation.name)}` : `the mean of ${spoken(equation.name)}`;
    const name = (k) => (variable.levels ? spoken(short(variable.levels[k], 40)) : show(variable.grid[k], 3));
    let text = y.every((one) => one === y[0]) ? `Along ${spoken(variable.name)} ${what} does not change: it is not among its regressors.`
      : `From ${name(0)} to ${name(last)} of ${spoken(variable.name)}, ${what} goes from ${show(y[0], 3)} to ${show(y[last], 3)}`;
    if (!text.endsWith(".")) {
      if (equation.kind === "continuous" && part.seen) text += `; that of values that are seen, from ${show(part.seen[0], 3)} to ${show(part.seen[last], 3)}`;
      text += ".";
    }
    return part.why ? `${text} ${part.why}` : text;
  }

  /* Selection */

  function drawMills() {
    const one = content.mills[chosen("mills-pair")];
    const many = one.predictor.length;
    draw("mills", [{
      type: "marks", x: one.predictor, y: one.added, size: dotSize(many), opacity: dotOpacity(many), color: colour("recovered"),
      text: one.added.map((a, k) => `selection adds ${show(a, 3)}\nMills ratio ${show(one.ratio[k], 3)}\npredictor ${show(one.predictor[k], 4)}`),
    }], {
      height: 320, legend: false, rules: [across(0)], x: { title: `linear predictor of ${label(one.name, 30)}`, range: rangeOf(one.predictor) },
      y: { title: `added to ${label(one.name, 24)}`, range: rangeOf([0, ...one.added]) },
    });
  }

  /* All together */

  startScale();
  start([["forest-plot", drawForest], ["quantile-plot", drawResiduals], ["effect-plot", drawEffect], ["mills-plot", drawMills]]);
  [["forest-outcome", drawForest], ["forest-scale", drawForest], ["residual-outcome", drawResiduals],
    ["effect-outcome", drawEffect], ["effect-variable", drawEffect], ["effect-view", drawEffect], ["mills-pair", drawMills]]
    .forEach(([id, make]) => { if (find(id)) find(id).addEventListener("change", make); });
})();
