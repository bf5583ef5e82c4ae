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

  // Plotly reads a few tags, entities and formulas in texts; a name is shown as it was typed.
  const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;" };
  const safe = (text) => String(text).replace(/[&<>$]/g, (letter) => ENTITIES[letter]);
  const short = (text, most) => {
    const letters = Array.from(String(text).replace(/\s+/g, " "));
    return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : letters.join("");
  };
  const label = (text, most = 40) => safe(short(text, most));
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
  const signed = (r) => (r === null ? "–" : (r > 0 && Number(r.toFixed(2)) > 0 ? "+" : "") + fixed(r, 2));
  const percent = (share) => {
    const p = 100 * share;
    if (p > 0 && p < 0.1) return "< 0.1 %";
    return (p > 0 && p < 9.95 ? p.toFixed(1) : p.toFixed(0)) + " %";
  };
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const printing = () => root.hasAttribute("data-printing");
  const widthOf = (id) => (printing() ? PRINT_WIDTH : find(id).clientWidth);
  const sans = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";

  const axis = (more) =>
    Object.assign(
      {
        showgrid: false, zeroline: false, showline: true, linecolor: colour("quiet"),
        ticks: "outside", ticklen: 4, tickcolor: colour("quiet"), automargin: true,
        fixedrange: true, tickfont: { color: colour("quiet"), size: 12 },
      },
      more
    );
  const title = (text) => ({ text, standoff: 10, font: { color: colour("ink"), size: 13 } });

  function draw(id, traces, layout) {
    const width = layout.width || widthOf(id + "-plot");
    const whole = Object.assign(
      {
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        font: { family: sans, size: 12, color: colour("ink") },
        margin: { l: 56, r: 12, t: 36, b: 48 }, hovermode: "closest", dragmode: false,
        showlegend: true,
        legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", traceorder: "normal" },
        hoverlabel: {
          bgcolor: colour("paper"), bordercolor: colour("quiet"), align: "left", namelength: 0,
          font: { family: sans, size: 12, color: colour("ink") },
        },
      },
      layout,
      { width }
    );
    Plotly.react(id + "-plot", traces, whole, { displayModeBar: false, staticPlot: printing() });
  }

  // Shows the parts of a caption that hold for what is drawn.
  function caption(id, holds) {
    find(id + "-caption").querySelectorAll("[data-when]").forEach((part) => {
      part.hidden = !holds[part.dataset.when];
    });
  }

  // Draws everything, and again where the window, the light or the paper is another.
  function start(drawers) {
    const drawAll = () => drawers.forEach(([id, make]) => { if (find(id)) make(); });
    document.querySelectorAll(".needs-script").forEach((figure) => { figure.hidden = false; });
    drawAll();
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
    content, find, LINES, DASHES, printing, colour, widthOf, short, label, spoken, minus, show, fixed, signed,
    percent, axis, title, draw, caption, start,
  };
})();
