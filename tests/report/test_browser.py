"""The page in a browser: what a person sees, and what the page does not do."""

import re
import shutil

import numpy as np
import pytest

from halfseen.report import write_report
from tests.report.conftest import HOSTILE
from tests.report.test_page import contrast

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the browser tests need Playwright: pip install playwright"
)
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="the browser tests need Chromium: apt install chromium"
)
PAGES = ("lab", "logs", "hostile", "intervals", "incomes", "neither", "one column")
WIDTHS = """() => {
  const page = document.scrollingElement, figures = [...document.querySelectorAll('.plot > svg')];
  return [page.scrollWidth, page.clientWidth, figures.map(f => f.getBoundingClientRect().right)];
}"""
# Points of the curve of a column that lie under a text of a hidden share, and how many texts there are.
ON_CURVE = """() => {
  const plot = document.getElementById("column-plot"), outer = plot.getBoundingClientRect();
  const { to, traces } = plot.figure, curve = traces[traces.length - 1];
  const boxes = [...plot.querySelectorAll(".note")].map(g => g.getBoundingClientRect());
  let many = 0;
  curve.x.forEach((x, k) => {
    const left = outer.left + to.x(x), top = outer.top + to.y(curve.y[k]);
    many += boxes.some(b => left > b.left && left < b.right && top > b.top && top < b.bottom);
  });
  return [many, boxes.length];
}"""
# Texts of figures of which one covers another, or that reach out of their figure. Slanted names lie in
# boxes that are larger than they are, so these are not held against each other.
COVERED = """() => {
  const out = [], share = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]);
  document.querySelectorAll(".plot").forEach(plot => {
    const frame = plot.getBoundingClientRect(), texts = [...plot.querySelectorAll("svg text")];
    const all = texts.map(t => ({
      text: t.textContent, box: t.getBoundingClientRect(),
      slanted: t.classList.contains("xtick") && t.hasAttribute("transform"),
    }));
    all.forEach(({ text, box, slanted }, k) => {
      const inside = share(box, frame, "left", "right") >= box.width - 1
        && share(box, frame, "top", "bottom") >= box.height - 1;
      if (!inside) out.push([plot.id, "cut", text]);
      all.slice(k + 1).forEach(other => {
        const apart = share(box, other.box, "left", "right") < 1
          || share(box, other.box, "top", "bottom") < 3;
        if (!apart && !(slanted && other.slanted)) out.push([plot.id, text, other.text]);
      });
    });
  });
  return out;
}"""
# Tables that are wider than their box, by whether they say so.
CUT = """() => {
  const out = { said: [], silent: [], wrong: [] };
  document.querySelectorAll(".table").forEach(box => {
    if (!box.checkVisibility()) return;
    const words = getComputedStyle(box.querySelector("caption span"), "::after").content;
    const cut = box.scrollWidth > box.clientWidth + 1, said = words.includes("sideways");
    const long = box.scrollHeight > box.clientHeight + 1, told = /rows|down/.test(words);
    if (long !== told) out.wrong.push(box.ariaLabel);
    if (cut && getComputedStyle(box).overflowX !== "auto") out.wrong.push(box.ariaLabel);
    if (cut || said) out[cut && said ? "said" : cut ? "silent" : "wrong"].push(box.ariaLabel);
  });
  return out;
}"""
INK = {"light": "rgb(28, 33, 38)", "dark": "rgb(230, 232, 235)"}
# Where a point of the data lies in the window.
PIXEL = """([id, x, y]) => {
  const plot = document.getElementById(id), box = plot.getBoundingClientRect();
  return [box.left + plot.figure.to.x(x), box.top + plot.figure.to.y(y)];
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory, lab, logs, hostile, intervals, incomes, same_scale, thirty, odd):
    """Write the page of a fit, once, and say where it is."""
    folder = tmp_path_factory.mktemp("pages")
    fits = {"lab": lab, "logs": logs, "hostile": hostile, "intervals": intervals}
    fits |= {"incomes": incomes, "same scale": same_scale, "thirty": thirty}

    def written(name):
        path = folder / f"{name.replace(' ', '-')}.html"
        if not path.exists():
            write_report(fits.get(name) or odd[name], path)
        return path.as_uri()

    return written


class Visit:
    """A page that is open, and all that it said and asked for."""

    def __init__(self, browser, address, **options):
        self.context = browser.new_context(
            viewport={"width": 1280, "height": 900}, reduced_motion="reduce", **options
        )
        self.page = self.context.new_page()
        self.address, self.said, self.asked = address, [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)

    def widen(self, width):
        """Change the width of the window, and wait until the figures have followed."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.plot')].every("
            "plot => Math.abs(plot.querySelector('svg').clientWidth - plot.clientWidth) <= 1)"
        )

    def light(self, scheme):
        """Make it light or dark, and wait until the figures have followed."""
        self.page.emulate_media(media="screen", color_scheme=scheme)
        self.page.wait_for_function(
            "ink => getComputedStyle(document.querySelector('#column-plot .xtitle')).fill === ink",
            arg=INK[scheme],
        )

    def hover(self, plot, x, y):
        """Move the mouse over a point of the data; return what is written beside it."""
        label = self.page.locator(f"#{plot} .tip")
        self.page.mouse.move(1, 1)
        label.wait_for(state="hidden", timeout=5000)
        self.page.locator(f"#{plot}").evaluate("plot => plot.scrollIntoView({ block: 'center' })")
        at = self.page.evaluate(PIXEL, [plot, x, y])
        self.page.mouse.move(at[0] - 2, at[1])
        self.page.mouse.move(*at)
        label.wait_for(timeout=5000)
        return label.text_content()


@pytest.fixture(scope="module")
def opened():
    """Pages that are open: to load one takes longer than to look at it."""
    return {}


@pytest.fixture
def visit(browser, address, opened):
    """Open pages, and see at the end that none complained or asked for more than itself."""
    used = []

    def open_page(name):
        if name not in opened:
            opened[name] = Visit(browser, address(name))
        one = opened[name]
        one.widen(1280)
        one.light("light")
        used.append(one)
        return one

    yield open_page
    for one in used:
        assert one.said == [], one.address
        assert one.asked == [one.address]


@pytest.mark.parametrize("name", PAGES)
def test_quiet_and_no_wider_than_the_window(visit, name):
    one = visit(name)
    for width in (1280, 360):
        one.widen(width)
        wide, room, figures = one.page.evaluate(WIDTHS)
        assert wide <= room
        assert max(figures) <= width


def curves(page):
    return page.locator("#pair-plot path.line").evaluate_all(
        "all => all.map(x => x.getAttribute('d'))"
    )


def test_another_column_makes_another_picture(visit, lab):
    page = visit("lab").page
    page.select_option("#pair-x", "0")
    page.select_option("#pair-y", "1")
    before, reading = curves(page), page.text_content("#pair-reading")
    picture = page.locator("#pair-plot").screenshot()
    assert len(before) == 2
    assert f"{lab.gaussian.correlation[0, 1]:+.2f}" in reading
    page.select_option("#pair-y", "2")
    assert curves(page) != before
    assert page.locator("#pair-plot").screenshot() != picture
    assert f"{lab.gaussian.correlation[0, 2]:+.2f}" in page.text_content("#pair-reading")
    assert page.get_attribute("#pair-reading", "aria-live") == "polite"
    page.select_option("#pair-y", "1")
    assert curves(page) == before


def test_numbers_of_a_column_are_read_as_its_table_shows_them(visit):
    page = visit("logs").page
    row = page.locator(".table[aria-label^='Means, on'] tbody tr").first.locator("th, td")
    _, mean, ends, seen, *_ = (cell.strip() for cell in row.all_text_contents())
    page.select_option("#column", "0")
    reading = page.text_content("#column-reading")
    assert f"recovered mean {mean} (95 % interval {ends}); mean of what is seen {seen}." in reading


def test_the_same_column_twice_swaps_them(visit):
    page = visit("lab").page
    page.select_option("#pair-x", "0")
    page.select_option("#pair-y", "2")
    page.select_option("#pair-x", "2")
    assert (page.input_value("#pair-x"), page.input_value("#pair-y")) == ("2", "0")


def test_another_column_makes_another_histogram(visit):
    page = visit("lab").page
    page.select_option("#column", "0")
    before = page.locator("#column-plot").screenshot()
    assert "lead" in page.text_content("#column-reading")
    page.select_option("#column", "2")
    assert page.locator("#column-plot").screenshot() != before
    assert "copper" in page.text_content("#column-reading")


def test_a_point_tells_its_numbers(visit, lab):
    one = visit("lab")
    one.page.select_option("#pair-x", "0")
    one.page.select_option("#pair-y", "1")
    X = lab.source.X.values[:, :2]
    # The point that is furthest to the right stands alone.
    row = int(np.nanargmax(np.where(np.isnan(X[:, 1]), np.nan, X[:, 0])))
    text = one.hover("pair-plot", *X[row])
    assert f"row {row}" in text
    assert f"lead: {X[row, 0]:.3f}"[:-1] in text
    assert f"zinc: {X[row, 1]:.3f}"[:-1] in text


def test_a_hidden_cell_tells_its_limit(visit, lab):
    one = visit("lab")
    one.page.select_option("#pair-x", "0")
    one.page.select_option("#pair-y", "1")
    X, limits = lab.source.X.values, lab.source.missingness.lower
    only = np.isnan(X[:, 1]) & (limits[:, 1] == 0.8) & ~np.isnan(X[:, 0])
    row = int(np.nanargmax(np.where(only, X[:, 0], np.nan)))
    assert "zinc: hidden, below 0.8" in one.hover("pair-plot", X[row, 0], 0.8)


def test_a_cell_of_the_heat_map_tells_its_interval(visit, lab):
    interval = lab.confidence_interval().correlation
    text = visit("lab").hover("recovered-plot", 1, 0).replace("−", "-")
    assert "lead ~ zinc" in text
    assert f"{lab.gaussian.correlation[0, 1]:+.2f}" in text
    assert f"{interval.lower[0, 1]:+.2f} to {interval.upper[0, 1]:+.2f}" in text
    text = visit("lab").hover("naive-plot", 1, 0)
    assert "rows" in text


def test_bars_traces_and_errors_tell_their_numbers(visit, plain):
    one = visit("logs")
    h = one.page.evaluate("document.getElementById('column-plot').figure.traces[0]")
    k = int(np.argmax(h["y"]))
    assert re.match(r"\d+ seen, ", h["text"][k])
    assert one.hover("column-plot", h["x"][k], 0.5 * h["y"][k]) == h["text"][k]
    trace = one.page.evaluate("document.getElementById('trace-plot').figure.traces[0]")
    assert "step 1:" in one.hover("trace-plot", trace["x"][0], trace["y"][0])
    shares = one.page.evaluate("document.getElementById('sampling-plot').figure.traces[0]")
    assert "%" in one.hover("sampling-plot", shares["x"][0], shares["y"][0])


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("name", ["both sides", "lab"])
def test_the_hidden_share_is_not_on_the_curve(visit, name, width):
    one = visit(name)
    one.widen(width)
    for k in range(3):
        one.page.select_option("#column", str(k))
        on_curve, texts = one.page.evaluate(ON_CURVE)
        assert texts > 0
        assert on_curve == 0
        ends = one.page.locator("#column-plot .note").evaluate_all(
            "all => all.map(g => g.getBoundingClientRect().right)"
        )
        assert max(ends) <= width


def test_captions_follow_the_column(visit):
    page = visit("incomes").page

    def shown(key):
        return page.locator(f"#{key}-caption").inner_text()

    page.select_option("#column", "0")
    assert "Hatched" in shown("column")
    page.select_option("#column", "1")
    assert "Hatched" not in shown("column")
    assert "limits" not in shown("column")
    page.select_option("#pair-x", "0")
    page.select_option("#pair-y", "1")
    assert "Triangles" in shown("pair")
    assert "ties it to other columns" in shown("pair")
    page.select_option("#pair-x", "2")
    assert "Triangles" not in shown("pair")
    page.select_option("#pair-y", "0")
    assert "Marks at the edge" not in shown("pair")


@pytest.mark.parametrize(("i", "j"), [(0, 1), (1, 0)])
def test_the_naive_ellipse_fits_the_dots(visit, incomes, i, j):
    page = visit("incomes").page
    page.select_option("#pair-x", str(i))
    page.select_option("#pair-y", str(j))
    traces = page.evaluate("document.getElementById('pair-plot').figure.traces")
    (line,) = [t for t in traces if t.get("name") == "seen only, 95 %"]
    X = np.log(incomes.source.original.values[:, :2])
    both = X[~np.isnan(X).any(axis=1)][:, [i, j]]
    points = np.stack([line["x"], line["y"]], axis=1) - both.mean(axis=0)
    distance = np.einsum("ni,ij,nj->n", points, np.linalg.inv(np.cov(both.T, ddof=0)), points)
    # Means are kept to a hundredth of a deviation, of 2.4 from the middle; 5.99 is chi-square's.
    assert distance == pytest.approx(5.99, rel=0.03)


def test_numbers_read_plainly(visit):
    page = visit("incomes").page
    page.select_option("#column", "0")
    assert "limit 150000" in page.text_content("#column-plot svg")
    names = page.locator("#trace-plot text.legend").all_text_contents()
    assert names == ["log(income)", "log(wage)", "hours"]
    looks = page.evaluate(
        "document.getElementById('trace-plot').figure.traces.map(t => t.color + t.dash)"
    )
    assert len(set(looks)) == 3


def test_a_common_scale_leaves_bare_names_on_the_axes(visit):
    page = visit("same scale").page
    for plot, tick in (("recovered", "ytick"), ("naive", "xtick"), ("sampling", "xtick")):
        texts = page.locator(f"#{plot}-plot .{tick}").all_text_contents()
        assert texts == ["lead", "zinc", "copper"], plot


def test_transformed_columns_have_ticks_in_original_units(visit):
    page = visit("logs").page
    page.select_option("#column", "0")
    ticks = page.locator("#column-plot .xtick").all_text_contents()
    where = page.evaluate("document.getElementById('column-plot').figure.layout.x.at")
    assert np.exp(where) == pytest.approx([float(t.replace("−", "-")) for t in ticks], rel=1e-5)
    assert "geometric mean" in page.text_content("#column-reading")


def hexadecimal(text):
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", text)[:3])


def test_dark_is_dark_and_can_be_read(visit):
    one = visit("lab")
    one.light("dark")
    page = one.page

    def style(selector, key):
        return hexadecimal(
            page.evaluate(
                "([s, k]) => getComputedStyle(document.querySelector(s)).getPropertyValue(k)",
                [selector, key],
            )
        )

    paper = style("body", "background-color")
    assert contrast(paper, "#000000") < 1.5
    cells = "td.main", "td.naive", "td.interval"
    for selector in ("h1", "p", "figcaption", *cells, "label", "a[href='#pairs']"):
        assert contrast(style(selector, "color"), paper) >= 4.5, selector
    for selector in ("#pair-plot .xtick", "#pair-plot text.legend", "#pair-plot .xtitle"):
        assert contrast(style(selector, "fill"), paper) >= 4.5, selector


def test_figures_follow_when_the_light_changes(visit):
    page = visit("lab").page
    ink = "() => getComputedStyle(document.querySelector('#pair-plot .xtitle')).fill"
    assert page.evaluate(ink) == INK["light"]
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"ink => ({ink})() === ink", arg=INK["dark"])


def test_numbers_on_the_heat_map_can_be_read(visit):
    one = visit("lab")
    page = one.page
    for scheme in ("light", "dark"):
        one.light(scheme)
        cells = page.evaluate(
            "[...document.querySelectorAll('#recovered-plot .cell')].map(c => c.getAttribute('fill'))"
        )
        inks = page.evaluate(
            "[...document.querySelectorAll('.cell-number')].map(c => c.getAttribute('fill'))"
        )[len(cells) :]
        assert len(cells) == len(inks) == 6
        for cell, ink in zip(cells, inks, strict=True):
            # One of black and white always reaches 4.58 : 1; channels are rounded here.
            assert contrast(ink, hexadecimal(cell)) > 4.4


def test_the_keyboard_is_enough(visit):
    page = visit("lab").page
    first = page.evaluate(
        "document.querySelector('a[href], select, summary, [tabindex=\"0\"]').className"
    )
    assert first == "skip"
    page.focus(".skip")
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
        if reached[-1] == "pair-y":
            break
    assert [name for name in reached if name] == ["column", "pair-x", "pair-y"]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    before, value = curves(page), page.input_value("#pair-y")
    page.keyboard.press("ArrowDown" if value != "2" else "ArrowUp")
    assert page.input_value("#pair-y") != value
    assert curves(page) != before


def test_hostile_names_are_inert_and_shown_as_typed(visit):
    page = visit("hostile").page
    last = len(HOSTILE) - 1
    for k in range(last):
        page.select_option("#column", str(k))
        page.select_option("#pair-x", str(k))
        page.select_option("#pair-y", str(last))
    assert page.locator("a[href^='javascript'], svg a, img, b").count() == 0
    assert page.evaluate("document.scripts.length") == 2
    ticks = page.locator("#recovered-plot .ytick").all_text_contents()
    for shown in ("</script>", "\"&'", "<b>bold</b>"):
        assert shown in ticks
    assert any(t.startswith('<a href="java') and t.endswith("a>") for t in ticks)
    page.select_option("#column", "5")
    assert page.text_content("#column-plot .xtitle") == "<b>bold</b>"
    page.select_option("#column", "6")
    assert page.text_content("#column-plot .xtitle") == "two lines %{x} $x^2$"
    assert page.locator("#column option").nth(0).text_content() == HOSTILE[0]


def test_hostile_names_are_inert_under_the_mouse(visit):
    one = visit("hostile")
    text = one.hover("recovered-plot", 5, 6)
    assert "<b>bold</b>" in text
    assert "%{x} $x^2$" in text


def test_without_scripts_there_are_words_and_tables(browser, address):
    one = Visit(browser, address("lab"), java_script_enabled=False)
    page = one.page
    assert page.locator("noscript").first.is_visible()
    assert not page.locator("figure").first.is_visible()
    assert page.locator("table").first.is_visible()
    page.locator("summary").first.click()
    assert page.locator("details table").first.is_visible()
    assert one.said == []
    one.context.close()


def test_print_is_light_and_opens_the_tables(visit):
    one = visit("lab")
    one.light("dark")
    page = one.page
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    ink = hexadecimal(
        page.evaluate("getComputedStyle(document.querySelector('#pair-plot .xtitle')).fill")
    )
    assert contrast(ink, "#ffffff") >= 4.5
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert hexadecimal(paper) == "#ffffff"
    # A4 less its margins is 182 mm, 688 px.
    widths = page.evaluate("[...document.querySelectorAll('.plot > svg')].map(x => x.clientWidth)")
    assert max(widths) <= 688
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 0


def test_a_link_to_a_closed_table_opens_it(visit):
    page = visit("hostile").page
    page.evaluate("document.getElementById('correlation-table').open = false")
    assert not page.locator("#correlation-table table").is_visible()
    page.click("a[href='#correlation-table']")
    page.locator("#correlation-table table").wait_for(state="visible")


@pytest.mark.parametrize("name", [*PAGES, "thirty", "both sides", "probability"])
def test_nothing_is_cut_or_covered(visit, name):
    one = visit(name)
    one.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    for width in (1280, 400):
        one.widen(width)
        assert one.page.evaluate(COVERED) == []
        one.page.wait_for_function(f"() => {{ const c = ({CUT})(); return !c.silent.length; }}")
        cut = one.page.evaluate(CUT)
        assert cut["wrong"] == []
        if width == 1280 and name != "hostile":
            assert cut["said"] == []
    one.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false; })")


def test_limits_that_lie_close_have_numbers_of_their_own_on_a_phone(visit):
    one = visit("lab")
    one.widen(400)
    for k, numbers in enumerate((["0.8", "1.2", "1.7"], ["0.8", "1.2", "1.7"])):
        one.page.select_option("#column", str(k))
        texts = one.page.locator("#column-plot .head").all_text_contents()
        assert texts == [f"limit {number}" for number in numbers]
        assert one.page.evaluate(COVERED) == []


def test_what_was_recovered_is_visible_on_a_phone(visit):
    for name in ("lab", "logs", "incomes"):
        one = visit(name)
        one.widen(400)
        cells = one.page.locator(".table:visible td.main").evaluate_all(
            "all => all.filter(c => c.cellIndex === 1).map(c => c.getBoundingClientRect().right)"
        )
        assert len(cells) >= 6
        assert max(cells) <= 400
