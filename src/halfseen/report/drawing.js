// What the figures of all pages have in common.
const drawing = (() => {
  "use strict";
  const content = JSON.parse(document.getElementById("content").textContent);
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const PRINT_WIDTH = 660;
  // Colours of lines that are told apart, solid first, then dashed, then dotted.
  const LINES = ["recovered", "naive", "ink", "hidden"];
  const DASHES = ["solid", "dash", "dot"];

  const short = (text, most) => {
    const letters = Array.from(String(text).replace(/\s+/g, " "));
    return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : letters.join("");
  };
  // Names that begin alike differ at their ends, so a long one loses its middle.
  const label = (text, most = 40) => {
    const letters = Array.from(short(text, Infinity)), end = Math.floor((most - 1) / 3);
    if (letters.length <= most) return letters.join("");
    return letters.slice(0, most - 1 - end).join("") + "…" + letters.slice(-end).join("");
  };
  // In running text a name keeps its direction of writing to itself.
  const spoken = (text) => "\u2068" + short(text, 80) + "\u2069";
  const minus = (text) => String(text).replace(/-/g, "−");
  const show = (x, digits = 4) => {
    if (x === null || x === undefined) return "–";
    // A whole number is shown whole.
    const whole = Math.abs(x) < 1e7 && Math.abs(x - Math.round(x)) <= 1e-9 * Math.abs(x);
    return minus(whole ? Math.round(x) + 0 : Number(x.toPrecision(digits)));
  };
  const fixed = (x, places) => {
    const text = x.toFixed(places);
    return minus(Number(text) === 0 ? text.replace("-", "") : text);
  };
  // Two digits of the error that an interval stands for, as in tables.
  const within = (x, ends) => {
    const error = ends ? Math.abs(ends[1] - ends[0]) / 4 : 0;
    if (x === null || !error || Math.abs(x) > 1e9) return show(x);
    return fixed(x, Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(error)))));
  };
  const signed = (r) => (r === null ? "–" : (r > 0 && Number(r.toFixed(2)) > 0 ? "+" : "") + fixed(r, 2));
  const percent = (share) => {
    const p = 100 * share;
    if (p > 0 && p < 0.1) return "< 0.1 %";
    return (p > 0 && p < 9.95 ? p.toFixed(1) : p.toFixed(0)) + " %";
  };
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const printing = () => root.hasAttribute("data-printing");
  const widthOf = (id) => (printing() ? PRINT_WIDTH : find(id).clientWidth);

  // Lines from one corner to the other, for what is hidden.
  function hatch(id) {
    return figure.make("pattern", { id: `hatch-${id}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
      figure.make("path", { d: "M-1 1L1 -1M0 6L6 0M5 7L7 5", stroke: colour("hidden"), "stroke-width": 1.1 }));
  }

  function draw(id, traces, layout) {
    const colours = { ink: colour("ink"), quiet: colour("quiet"), paper: colour("paper") };
    const patterns = traces.some((t) => t.fill === `url(#hatch-${id})`) ? [hatch(id)] : [];
    figure.draw(find(id + "-plot"), traces, { width: widthOf(id + "-plot"), still: printing(), colours, patterns, ...layout });
  }

  // Shows the parts of a caption that hold for what is drawn.
  function caption(id, holds) {
    find(id + "-caption").querySelectorAll("[data-when]").forEach((part) => {
      part.hidden = !holds[part.dataset.when];
    });
  }

  // Tables that are larger than their box say so.
  function watchTables() {
    const look = new ResizeObserver((entries) => entries.forEach(({ target }) => {
      target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1);
      target.classList.toggle("tall", target.scrollHeight > target.clientHeight + 1);
    }));
    document.querySelectorAll(".table").forEach((table) => look.observe(table));
  }

  // Draws everything, and again where the window, the light or the paper is another.
  function start(drawers) {
    const drawAll = () => drawers.forEach(([id, make]) => { if (find(id)) make(); });
    document.querySelectorAll(".needs-script").forEach((figure) => { figure.hidden = false; });
    drawAll();
    watchTables();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

    let waiting = 0, lastWidth = root.clientWidth;
    addEventListener("resize", () => {
      if (root.clientWidth === lastWidth || printing()) return;
      lastWidth = root.clientWidth;
      clearTimeout(waiting);
      waiting = setTimeout(drawAll, 120);
    });
    // A link to a closed table opens it.
    const openTarget = () => {
      const target = location.hash ? find(location.hash.slice(1)) : null;
      if (target && target.tagName === "DETAILS") target.open = true;
    };
    addEventListener("hashchange", openTarget);
    openTarget();

    let closed = [];
    addEventListener("beforeprint", () => {
      closed = Array.from(document.querySelectorAll("details:not([open])"));
      closed.forEach((d) => { d.open = true; });
      root.setAttribute("data-printing", "");
      drawAll();
    });
    addEventListener("afterprint", () => {
      closed.forEach((d) => { d.open = false; });
      root.removeAttribute("data-printing");
      drawAll();
    });
  }

  return {
    content, find, LINES, DASHES, printing, colour, widthOf, short, label, spoken, minus, show, within, fixed, signed,
    percent, draw, caption, start,
  };
})();
