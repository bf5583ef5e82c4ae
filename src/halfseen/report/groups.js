(() => {
  "use strict";
  const { content, find, colour, widthOf, label, show, draw, start } = drawing;
  const { groups, columns, means, differences, scales } = content;
  const chosen = (id) => (find(id) ? Number(find(id).value) : 0);
  const level = `${+(100 * content.level).toPrecision(4)} %`;

  // Dots with intervals, one below the other, and a dotted line to compare them with.
  function rows(id, items, at, what, logarithmic) {
    const letters = widthOf(id + "-plot") < 520 ? 18 : 40;
    const known = items.filter((one) => one.value !== null && one.low !== null && one.high !== null);
    draw(id, [{
      type: "marks", x: known.map((one) => one.value), y: known.map((one) => one.place), xEnds: known.map((one) => [one.low, one.high]),
      color: colour("recovered"), open: known.map((one) => !one.clear),
      text: known.map((one) => `${label(one.name, 60)}\n${show(one.value)} (${level} interval ${show(one.low)} to ${show(one.high)})`),
    }], {
      height: Math.max(170, 90 + 26 * items.length), legend: false, rules: at === null ? [] : [{ x: at, dash: "dot", color: colour("quiet") }],
      x: { title: what, log: logarithmic },
      y: {
        range: [items.length - 0.4, -0.6], at: items.map((one) => one.place), texts: items.map((one) => label(one.name, letters)),
        plain: true, color: colour("ink"),
      },
    });
  }

  const isLog = (j) => scales !== null && scales[j].startsWith("log");

  function drawMeans() {
    const j = chosen("means-column");
    const own = means.filter((row) => row.column === columns[j]);
    const items = own.map((row, g) => ({ name: groups[g], place: g, value: row.median, low: row.median_lower, high: row.median_upper, clear: true }));
    const known = own.map((row) => row.median).filter((value) => value !== null);
    const middle = known.length ? (isLog(j) ? Math.exp(known.reduce((a, b) => a + Math.log(b), 0) / known.length) : known.reduce((a, b) => a + b, 0) / known.length) : null;
    rows("means", items, middle, `${scales === null ? "mean" : "median"} of ${label(columns[j], 40)}`, isLog(j));
  }

  function drawDifferences() {
    const j = chosen("differences-column");
    const own = differences.filter((row) => row.column === columns[j]);
    const ratio = own.length > 0 && own[0].scale === "ratio";
    const items = own.map((row, k) => ({
      name: `${row.first} ${ratio ? "/" : "−"} ${row.second}`, place: k, value: row.estimate, low: row.lower, high: row.upper, clear: row.p_value < 1 - content.level,
    }));
    rows("differences", items, ratio ? 1 : 0, `${ratio ? "ratio of medians" : own.length ? own[0].scale : ""}, ${label(columns[j], 40)}`, ratio);
  }

  start([["means-plot", drawMeans], ["differences-plot", drawDifferences]]);
  [["means-column", drawMeans], ["differences-column", drawDifferences]].forEach(([id, make]) => find(id).addEventListener("change", make));
})();
