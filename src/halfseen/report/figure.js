// Draws figures as SVG: bars, lines, bands, marks and heat maps, with axes, a legend, and what the pointer tells.
const figure = (() => {
  "use strict";
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";
  const DASHES = { dash: "7 4", dot: "2 3" };
  const LINE = 15, TICK = 4, GAP = 6;
  // How far from a mark the pointer may be, in pixels.
  const NEAR = 22;
  let drawn = 0;

  const make = (tag, attributes = {}, ...inside) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(attributes).forEach(([key, value]) => {
      if (value !== undefined && value !== null) node.setAttribute(key, value);
    });
    node.append(...inside);
    return node;
  };
  const ruler = document.createElement("canvas").getContext("2d");
  const wide = (text, size = 12) => {
    ruler.font = `${size}px ${FONT}`;
    return Math.max(...String(text).split("\n").map((line) => ruler.measureText(line).width));
  };
  const minus = (text) => String(text).replace(/-/g, "−");
  const known = (v) => v !== null && v !== undefined && Number.isFinite(v);
  const round = (v) => Math.round(100 * v) / 100;

  // Words in lines that are no wider than there is room.
  function wrapped(text, room, size) {
    const lines = [""];
    String(text).split(" ").forEach((word) => {
      const longer = lines[lines.length - 1] ? `${lines[lines.length - 1]} ${word}` : word;
      if (lines[lines.length - 1] && wide(longer, size) > room) lines.push(word);
      else lines[lines.length - 1] = longer;
    });
    return lines;
  }

  /* Axes */

  const SMALL = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const power = (k) => "10" + Array.from(String(k), (digit) => SMALL[digit]).join("");

  // Round numbers between two ends, and how they are written.
  function evenTicks(low, high, most, whole) {
    const rough = Math.max((high - low) / most, whole ? 1 : 0);
    const unit = 10 ** Math.floor(Math.log10(rough));
    const size = unit * [1, 2, 5, 10].find((k) => k * unit >= 0.999 * rough);
    const at = [];
    for (let k = Math.ceil(low / size - 1e-9); k * size <= high + 1e-9 * size; k++) at.push(k * size);
    const far = Math.floor(Math.log10(Math.max(...at.map(Math.abs), size)) + 1e-9);
    const powers = far > 6 || far < -4;
    const places = Math.max(0, (powers ? far : 0) - Math.floor(Math.log10(size) + 1e-9));
    const texts = at.map((v) => {
      const text = minus((powers ? v / 10 ** far : v).toFixed(Math.min(places, 12))).replace(/^−(0\.?0*)$/, "$1");
      return powers && Number(text) !== 0 ? `${text}×${power(far)}` : text;
    });
    return [at, texts];
  }

  function logTicks(low, high, most) {
    const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
    const step = Math.max(1, Math.ceil((last - first) / most));
    const at = [];
    for (let k = first - 1; k <= last; k += step) {
      (last - first < 2 ? [1, 2, 5] : [1]).forEach((digit) => at.push(digit * 10 ** k));
    }
    const inside = at.filter((v) => v >= low && v <= high);
    if (inside.length < 3) return evenTicks(low, high, most);
    return [inside, inside.map((v) => (v < 1e-4 || v > 1e5 ? power(Math.round(Math.log10(v))) : String(Number(v.toPrecision(3)))))];
  }

  // Ends of an axis that holds all that is drawn.
  function rangeOf(traces, key, log) {
    const all = traces.flatMap((t) => [...(t[key] || []), ...((t[key + "Ends"] || []).flat())])
      .filter((v) => known(v) && (!log || v > 0)).map((v) => (log ? Math.log10(v) : v));
    let [low, high] = all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const ends = [low - 0.05 * (high - low), high + 0.05 * (high - low)];
    return log ? ends.map((v) => 10 ** v) : ends;
  }

  // What is written along an axis; where ticks are given, those that lie on it.
  function ticksOf(axis, range, most) {
    const [low, high] = range[0] < range[1] ? range : [range[1], range[0]];
    if (axis.bare) return [[], []];
    if (!axis.at) return (axis.log ? logTicks : evenTicks)(low, high, axis.most || most, axis.whole);
    const inside = axis.at.map((_, k) => k).filter((k) => axis.at[k] >= low && axis.at[k] <= high);
    return [inside.map((k) => axis.at[k]), inside.map((k) => axis.texts[k])];
  }

  function scaleOf(axis, range, start, end) {
    const on = axis.log ? Math.log10 : (v) => v;
    const [low, high] = range.map(on);
    return (v) => start + ((on(v) - low) / (high - low)) * (end - start);
  }

  // Texts along the horizontal axis: level where they fit, else slanted (names) or fewer (numbers).
  function alongX(axis, ticks, scale, size) {
    const [at, texts] = ticks;
    const places = at.map(scale), widths = texts.map((text) => wide(text, size));
    const crowded = places.some((x, k) => k > 0 && Math.abs(x - places[k - 1]) < 0.5 * (widths[k] + widths[k - 1]) + GAP);
    if (!crowded) return { kept: at.map((_, k) => k), slant: false, tall: LINE };
    if (axis.names) {
      const step = Math.max(1, Math.ceil((1.15 * size) / Math.abs(places[1] - places[0])));
      const kept = at.map((_, k) => k).filter((k) => k % step === 0);
      return { kept, slant: true, tall: 0.71 * Math.max(...kept.map((k) => widths[k])) + 0.71 * size };
    }
    const kept = [];
    let end = -Infinity;
    places.map((x, k) => k).sort((a, b) => places[a] - places[b]).forEach((k) => {
      if (places[k] - 0.5 * widths[k] < end + GAP) return;
      kept.push(k);
      end = places[k] + 0.5 * widths[k];
    });
    return { kept, slant: false, tall: LINE };
  }

  /* What stands above the axes */

  // Rows of texts of which none covers another: each at its place, or as near as the edges allow.
  function headRows(heads, scale, left, right) {
    const rows = [];
    return heads.map((head) => {
      const half = 0.5 * wide(head.text) + 3;
      const x = Math.max(left + half, Math.min(scale(head.x), right - half));
      let row = rows.findIndex((taken) => taken.every(([a, b]) => x + half < a || x - half > b));
      if (row < 0) row = rows.push([]) - 1;
      rows[row].push([x - half, x + half]);
      return { ...head, x, row };
    });
  }

  function legendRows(traces, room) {
    let row = 0, x = 0;
    return traces.map((trace) => {
      const length = 30 + wide(trace.name) + 16;
      if (x > 0 && x + length - 16 > room) { row += 1; x = 0; }
      const place = { trace, x, row };
      x += length;
      return place;
    });
  }

  /* Marks */

  const polygon = (...points) => `M${points.map((p) => p.map(round).join(" ")).join("L")}Z`;
  const arrow = (turn, r) => polygon(...[0, 120, 240].map((a) => {
    const angle = ((turn + a - 90) * Math.PI) / 180;
    return [r * Math.cos(angle), r * Math.sin(angle)];
  }));
  const corner = (dx, dy, r) => polygon([dx * r, dy * r], [-dx * r, dy * r], [dx * r, -dy * r]);
  const SHAPES = {
    circle: (r) => `M${r} 0A${r} ${r} 0 1 1 ${-r} 0A${r} ${r} 0 1 1 ${r} 0Z`,
    diamond: (r) => polygon([0, -1.2 * r], [1.2 * r, 0], [0, 1.2 * r], [-1.2 * r, 0]),
    up: (r) => arrow(0, 1.15 * r), right: (r) => arrow(90, 1.15 * r), down: (r) => arrow(180, 1.15 * r), left: (r) => arrow(270, 1.15 * r),
    "down left": (r) => corner(-0.9, 0.9, r), "up right": (r) => corner(0.9, -0.9, r),
    "up left": (r) => corner(-0.9, -0.9, r), "down right": (r) => corner(0.9, 0.9, r),
    upright: (r) => `M0 ${-r}V${r}`, level: (r) => `M${-r} 0H${r}`, cross: (r) => `M${-r} 0H${r}M0 ${-r}V${r}`,
  };
  const one = (value, k) => (Array.isArray(value) ? value[k] : value);
  const mark = (trace, k, x, y) => {
    const open = one(trace.open, k) || false, symbol = one(trace.symbol, k) || "circle";
    return make("path", {
      class: "mark", d: SHAPES[symbol](0.5 * (trace.size || 8)), transform: `translate(${round(x)} ${round(y)})`,
      fill: open ? "none" : one(trace.color, k), stroke: open || trace.edge ? one(trace.color, k) : null,
      "stroke-width": open ? 1.3 : trace.edge, opacity: trace.opacity,
    });
  };
  const lineStyle = (trace) => ({
    fill: "none", stroke: trace.color, "stroke-width": trace.width || 1.8, "stroke-dasharray": DASHES[trace.dash],
    "stroke-linejoin": "round", opacity: trace.opacity,
  });

  // A path through the points that are known.
  function through(x, y) {
    let pen = "M";
    return x.map((v, k) => {
      if (!known(v) || !known(y[k])) { pen = "M"; return ""; }
      const step = `${pen}${round(v)} ${round(y[k])}`;
      pen = "L";
      return step;
    }).join("");
  }

  /* Traces: each draws itself into a group, and says what the pointer finds */

  const DRAW = {
    bars(trace, to, group, targets, stacked) {
      trace.x.forEach((x, k) => {
        const base = stacked[k] || 0, half = 0.5 * trace.width;
        if (!(trace.y[k] > 0)) return;
        const [left, right, top, bottom] = [to.x(x - half), to.x(x + half), to.y(base + trace.y[k]), to.y(base)];
        const box = { x: round(left), y: round(top), width: round(right - left), height: round(bottom - top) };
        group.append(make("rect", { class: "bar", ...box, fill: trace.fill || trace.color, stroke: trace.edge, "stroke-width": trace.edge ? 0.5 : null }));
        if (trace.text) targets.push({ box: [left, top, right, bottom], text: trace.text[k] });
        stacked[k] = base + trace.y[k];
      });
    },
    band(trace, to, group) {
      const forth = trace.x.map((x, k) => [to.x(x), to.y(trace.high[k])]);
      const back = trace.x.map((x, k) => [to.x(x), to.y(trace.low[k])]).reverse();
      const d = polygon(...[...forth, ...back].filter((p) => p.every(known)));
      group.append(make("path", { class: "band", d, fill: trace.color }));
    },
    line(trace, to, group, targets) {
      const x = trace.x.map((v) => (known(v) ? to.x(v) : null)), y = trace.y.map((v) => (known(v) ? to.y(v) : null));
      group.append(make("path", { class: "line", d: through(x, y), ...lineStyle(trace) }));
      x.forEach((at, k) => {
        if (!known(at) || !known(y[k])) return;
        if (trace.marked) group.append(mark(trace, k, at, y[k]));
        if (trace.text) targets.push({ at: [at, y[k]], text: trace.text[k] });
      });
      DRAW.errors(trace, to, group);
    },
    marks(trace, to, group, targets, _, inside) {
      DRAW.errors(trace, to, group);
      trace.x.forEach((v, k) => {
        if (!known(v) || !known(trace.y[k])) return;
        const at = [to.x(v), to.y(trace.y[k])];
        if (!inside(...at)) return;
        group.append(mark(trace, k, ...at));
        if (trace.labels && trace.labels[k]) {
          // Below the mark, unless the numbers of the axis are there.
          const y = at[1] + (inside(at[0], at[1] + 18) ? 14 : -8);
          group.append(make("text", { class: "count", x: round(at[0] - 7), y: round(y), "text-anchor": "end", fill: trace.labelColor, "font-size": 11 }, trace.labels[k]));
        }
        if (trace.text) targets.push({ at, text: trace.text[k] });
      });
    },
    // Intervals beside marks, given by their ends.
    errors(trace, to, group) {
      const parts = [];
      (trace.xEnds || []).forEach(([low, high], k) => {
        if (known(low) && known(high) && known(trace.y[k])) parts.push(`M${round(to.x(low))} ${round(to.y(trace.y[k]))}H${round(to.x(high))}`);
      });
      (trace.yEnds || []).forEach(([low, high], k) => {
        if (known(low) && known(high) && known(trace.x[k])) parts.push(`M${round(to.x(trace.x[k]))} ${round(to.y(low))}V${round(to.y(high))}`);
      });
      if (parts.length) group.append(make("path", { class: "error", d: parts.join(""), fill: "none", stroke: trace.errorColor || one(trace.color, 0), "stroke-width": trace.errorWidth || 2 }));
    },
    heat(trace, to, group, targets) {
      const gap = trace.gap;
      trace.z.forEach((row, i) => row.forEach((z, j) => {
        if (z === null) return;
        const [left, right, top, bottom] = [to.x(j - 0.5), to.x(j + 0.5), to.y(i - 0.5), to.y(i + 0.5)];
        const fill = trace.shade(z);
        group.append(make("rect", { class: "cell", x: round(left), y: round(top), width: round(right - left - gap), height: round(bottom - top - gap), fill }));
        if (trace.labels) {
          group.append(make("text", { class: "cell-number", x: round(0.5 * (left + right)), y: round(0.5 * (top + bottom)), "text-anchor": "middle", "dominant-baseline": "central", fill: trace.ink(z), "font-size": round(trace.labelSize) }, trace.labels[i][j]));
        }
        targets.push({ box: [left, top, right, bottom], text: trace.text[i][j] });
      }));
    },
  };

  function sample(trace, x, y) {
    const group = make("g", { class: "key" });
    if (trace.type === "bars" || trace.type === "band") {
      group.append(make("rect", { x, y: y - 5, width: 24, height: 10, fill: trace.fill || trace.color, stroke: trace.edge }));
    } else {
      if (trace.type === "line") group.append(make("path", { d: `M${x} ${y}h24`, ...lineStyle(trace), opacity: 1 }));
      if (trace.type === "marks" || trace.marked) group.append(mark({ ...trace, opacity: 1 }, 0, x + 12, y));
    }
    return group;
  }

  /* The pointer */

  function tell(host, targets) {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    host.append(tip);
    const find = (x, y) => {
      let best = null, least = NEAR * NEAR;
      targets.forEach((target) => {
        if (!target.at) return;
        const far = (target.at[0] - x) ** 2 + (target.at[1] - y) ** 2;
        if (far <= least) [best, least] = [target, far];
      });
      return best || targets.find(({ box }) => box && x >= box[0] && x < box[2] && y >= box[1] && y < box[3]);
    };
    const show = (event) => {
      const frame = host.getBoundingClientRect();
      const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
      const found = find(x, y);
      tip.hidden = !found;
      if (!found) return;
      tip.textContent = found.text;
      const [width, height] = [tip.offsetWidth, tip.offsetHeight];
      tip.style.left = `${Math.max(0, Math.min(x + 14 + width > frame.width ? x - width - 14 : x + 14, frame.width - width))}px`;
      tip.style.top = `${Math.max(0, Math.min(y - 0.5 * height, frame.height - height))}px`;
    };
    host.onpointermove = show;
    host.onpointerdown = show;
    host.onpointerleave = () => { tip.hidden = true; };
  }

  /* All together */

  function titled(svg, frame, axes, colours) {
    const style = { fill: colours.ink, "font-size": 13, "text-anchor": "middle" };
    frame.titleX.forEach((text, k) => svg.append(make("text", {
      class: "xtitle", ...style, x: round(0.5 * (frame.left + frame.right)), y: round(frame.height - 6 - 16 * (frame.titleX.length - 1 - k)),
    }, text)));
    frame.titleY.forEach((text, k) => svg.append(make("text", {
      class: "ytitle", ...style, transform: `translate(${14 + 16 * k} ${round(0.5 * (frame.top + frame.bottom))}) rotate(-90)`,
    }, text)));
  }

  function ticked(svg, frame, axes, colours) {
    const { x, y } = axes, stroke = { stroke: colours.quiet, fill: "none" };
    const tick = x.plain ? 0 : TICK;
    x.fit.kept.forEach((k) => {
      const at = round(x.scale(x.ticks[0][k]));
      const place = x.fit.slant
        ? { transform: `translate(${at + 3} ${round(frame.bottom + tick + 0.8 * x.size)}) rotate(-45)`, "text-anchor": "end" }
        : { x: at, y: round(frame.bottom + tick + x.size + 1), "text-anchor": "middle" };
      if (tick) svg.append(make("path", { d: `M${at} ${frame.bottom}v${tick}`, ...stroke }));
      svg.append(make("text", { class: "xtick", ...place, fill: colours.quiet, "font-size": x.size }, x.ticks[1][k]));
    });
    const apart = y.ticks[0].length > 1 ? Math.abs(y.scale(y.ticks[0][1]) - y.scale(y.ticks[0][0])) : Infinity;
    const step = Math.max(1, Math.ceil((1.1 * y.size) / apart));
    y.ticks[0].forEach((v, k) => {
      if (k % step) return;
      const at = round(y.scale(v));
      if (!y.plain) svg.append(make("path", { d: `M${frame.left} ${at}h${-TICK}`, ...stroke }));
      svg.append(make("text", { class: "ytick", x: frame.left - TICK - 4, y: at, "text-anchor": "end", "dominant-baseline": "central", fill: y.color || colours.quiet, "font-size": y.size }, y.ticks[1][k]));
    });
    if (!x.plain) svg.append(make("path", { class: "axis", d: `M${frame.left} ${frame.bottom}H${frame.right}`, ...stroke }));
    if (!y.plain) svg.append(make("path", { class: "axis", d: `M${frame.left} ${frame.top}V${frame.bottom}`, ...stroke }));
  }

  // Room for texts on all four sides, and the scales between them.
  function frameOf(traces, layout) {
    const { width, height } = layout, x = { size: 12, ...layout.x }, y = { size: 12, ...layout.y };
    x.range = x.range || rangeOf(traces, "x", x.log);
    y.range = y.range || rangeOf(traces, "y", y.log);
    y.ticks = ticksOf(y, y.range, 6);
    const titleY = y.title ? wrapped(y.title, Math.max(height - 130, 100), 13).slice(0, 2) : [];
    let left = Math.ceil(16 * titleY.length + Math.max(0, ...y.ticks[1].map((text) => wide(text, y.size))) + TICK + 10);
    let right = width - 14;
    x.ticks = ticksOf(x, x.range, Math.max(3, Math.min(10, Math.floor((right - left) / 75))));
    const fit = () => {
      x.scale = scaleOf(x, x.range, left, right);
      x.fit = alongX(x, x.ticks, x.scale, x.size);
    };
    fit();
    if (x.fit.slant) {
      left = Math.ceil(Math.max(left, ...x.fit.kept.map((k) => left - x.scale(x.ticks[0][k]) + 0.71 * wide(x.ticks[1][k], x.size) + 8)));
    } else {
      // The last number may reach beyond the axis.
      x.fit.kept.forEach((k) => {
        right = Math.min(right, right - (x.scale(x.ticks[0][k]) + 0.5 * wide(x.ticks[1][k], x.size) - width + 2));
      });
    }
    fit();
    const titleX = x.title ? wrapped(x.title, right - left, 13) : [];
    const bottom = height - (layout.below || 0) - Math.ceil((x.plain ? 0 : TICK) + (x.ticks[0].length ? x.fit.tall + 4 : 0) + (titleX.length ? 16 * titleX.length + 10 : 2));
    const keys = layout.legend === false ? [] : legendRows(traces.filter((t) => t.name && t.key !== false), width - 4);
    const heads = headRows(layout.heads || [], x.scale, 2, width - 2);
    const rows = (items) => (items.length ? Math.max(...items.map((item) => item.row)) + 1 : 0);
    const legendTop = layout.title ? 24 : 4;
    const headTop = legendTop + 19 * rows(keys) + (keys.length ? 4 : 0);
    const top = headTop + LINE * rows(heads) + 8;
    y.scale = scaleOf(y, y.range, bottom, top);
    return { frame: { width, height, left, right, top, bottom, titleX, titleY, legendTop, headTop, keys, heads }, axes: { x, y } };
  }

  function ruled(svg, frame, axes, layout) {
    (layout.spans || []).forEach(({ x, fill, color }) => {
      const [a, b] = x.map(axes.x.scale);
      svg.append(make("rect", { class: "span", x: round(a), y: frame.top, width: round(b - a), height: frame.bottom - frame.top, fill, stroke: color }));
    });
    (layout.rules || []).forEach((rule) => {
      const across = rule.x === undefined;
      const at = round(across ? axes.y.scale(rule.y) : axes.x.scale(rule.x));
      const d = across ? `M${frame.left} ${at}H${frame.right}` : `M${at} ${frame.top}V${frame.bottom}`;
      svg.append(make("path", { class: "rule", d, fill: "none", stroke: rule.color, "stroke-width": rule.width || 1, "stroke-dasharray": DASHES[rule.dash] }));
    });
  }

  // A text on paper of its own, so that what is below it does not show.
  function noted(svg, frame, axes, notes, colours) {
    notes.forEach((note) => {
      const lines = note.text.split("\n"), half = 0.5 * wide(note.text) + 3, tall = LINE * lines.length;
      const middle = note.x === null ? frame.right - half : axes.x.scale(note.x);
      const x = Math.max(frame.left + half + 1, Math.min(middle, frame.right - half));
      const y = axes.y.scale(note.y), top = note.hangs ? y + 2 : y - tall - 3;
      const group = make("g", { class: "note" }, make("rect", { x: round(x - half), y: round(top), width: round(2 * half), height: tall + 1, fill: colours.paper, opacity: 0.9 }));
      lines.forEach((text, k) => group.append(make("text", { x: round(x), y: round(top + LINE * k + 11.5), "text-anchor": "middle", fill: note.color || colours.ink, "font-size": 12 }, text)));
      svg.append(group);
    });
  }

  // Draws the traces into an element, in place of what was there.
  function draw(host, traces, layout) {
    const { frame, axes } = frameOf(traces, layout), { colours } = layout;
    const to = { x: axes.x.scale, y: axes.y.scale };
    const svg = make("svg", { class: "chart", width: frame.width, height: frame.height, "font-family": FONT, "aria-hidden": "true" });
    const clip = `clip-${(drawn += 1)}`, targets = [], stacked = [];
    const inside = (x, y) => x >= frame.left - 1 && x <= frame.right + 1 && y >= frame.top - 1 && y <= frame.bottom + 1;
    svg.append(make("defs", {},
      make("clipPath", { id: clip }, make("rect", { x: frame.left, y: frame.top, width: frame.right - frame.left, height: Math.max(0, frame.bottom - frame.top) })),
      ...(layout.patterns || [])));
    ruled(svg, frame, axes, layout);
    traces.forEach((trace) => {
      const group = make("g", { class: `trace ${trace.type}`, "clip-path": trace.type === "marks" ? null : `url(#${clip})` });
      DRAW[trace.type](trace, to, group, targets, stacked, inside);
      svg.append(group);
    });
    ticked(svg, frame, axes, colours);
    titled(svg, frame, axes, colours);
    if (layout.title) svg.append(make("text", { class: "title", x: 2, y: 15, fill: colours.ink, "font-size": 14 }, layout.title));
    frame.keys.forEach(({ trace, x, row }) => {
      const y = frame.legendTop + 19 * row + 9;
      svg.append(sample(trace, x + 2, y), make("text", { class: "legend", x: x + 32, y, "dominant-baseline": "central", fill: colours.ink, "font-size": 12 }, trace.name));
    });
    frame.heads.forEach((head) => svg.append(make("text", {
      class: "head", x: round(head.x), y: frame.headTop + LINE * head.row + 12, "text-anchor": "middle", fill: colours.ink, "font-size": 12,
    }, head.text)));
    noted(svg, frame, axes, layout.notes || [], colours);
    if (layout.extra) svg.append(...layout.extra(frame, make));
    host.replaceChildren(svg);
    if (!layout.still) tell(host, targets);
    host.figure = { traces, layout, to, frame };
  }

  return { draw, make, wide, FONT };
})();
