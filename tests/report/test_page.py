"""The page as text: whole, escaped, labelled, and readable without scripts."""

import dataclasses
import json
import re
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pytest

import halfseen as hs
from halfseen.report import html_page, report_content, write_report
from halfseen.report.numbers import places_for, readable, show, signed
from tests.report.conftest import HOSTILE
from tests.report.test_content import ODD

EMPTY = {"meta", "link", "img", "br", "hr", "input"}


class Reader(HTMLParser):
    """Elements of a page, its texts, and what is inside its scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts, self.scripts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.scripts.append(data)
        else:
            self.texts.append(data)

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]


def read(fit, **options):
    """Read the page of a fit."""
    return Reader(html_page.page_of(report_content(fit, **options)))


def test_one_small_file_with_nothing_from_elsewhere(plain, tmp_path):
    path = write_report(plain, tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    # Three columns of 300 rows: what is drawn with takes a third of it.
    assert path.stat().st_size < 200_000
    found = Reader(text)
    for attributes in found.all("script", "link", "img", "iframe", "a"):
        for key in ("src", "href"):
            assert attributes.get(key, "#").startswith(("#", "data:")), attributes
    (policy,) = [a["content"] for a in found.all("meta") if "http-equiv" in a]
    assert "default-src 'none'" in policy
    style = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style


def test_the_same_fit_gives_the_same_bytes(plain, tmp_path):
    first = write_report(plain, tmp_path / "a.html").read_bytes()
    assert write_report(plain, tmp_path / "b.html").read_bytes() == first


def test_headings_are_in_order_and_everything_is_labelled(lab):
    found = read(lab)
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1
    names = [a["id"] for _, a in found.elements if "id" in a]
    assert len(names) == len(set(names))
    for attributes in (a for _, a in found.elements):
        for key in ("aria-labelledby", "for"):
            assert attributes.get(key, names[0]) in names
        target = attributes.get("href", "#main")
        assert not target.startswith("#") or target[1:] in names
    labels = {a["for"] for a in found.all("label")}
    assert {a["id"] for a in found.all("select")} == labels == {"column", "pair-x", "pair-y"}
    for landmark in ("header", "nav", "main", "footer"):
        assert len(found.all(landmark)) == 1
    plots = [a for a in found.all("div") if a.get("role") == "img"]
    assert len(plots) == 7
    assert all("aria-label" in a or "aria-labelledby" in a for a in plots)
    assert len(found.all("figcaption")) == len(found.all("figure")) == 6
    assert found.elements[[t for t, _ in found.elements].index("a")][1] == {
        "class": "skip",
        "href": "#main",
    }


def test_every_number_is_in_a_table_without_scripts(plain):
    text = " ".join(read(plain).texts)
    interval = plain.confidence_interval(0.95)
    assert f"{plain.gaussian.mean[0]:.3f}" in text
    assert f"{interval.mean.lower[0]:.3f} to {interval.mean.upper[0]:.3f}" in text
    assert f"{plain.gaussian.correlation[0, 1]:+.2f}" in text
    assert "1.5" in text
    assert "The figures need JavaScript" in text


def test_names_stay_text(hostile):
    text = html_page.page_of(report_content(hostile))
    found = Reader(text)
    assert len(found.all("script")) == 2
    assert found.all("img", "b") == []
    assert all(not a.get("href", "").startswith("javascript") for a in found.all("a"))
    assert not any(key.startswith("on") for _, a in found.elements for key in a)
    assert text.count("--paper: #ffffff") == 1, "a name was taken for a place in the page"
    words = "".join(found.texts)
    for name in HOSTILE[:6]:
        assert name in words
    content = json.loads(found.scripts[1])
    assert [c["name"] for c in content["columns"]][:6] == list(HOSTILE[:6])
    block = re.search(r'id="content">(.*?)</script>', text, re.DOTALL)[1]
    assert not re.search(r"[<>&\u2028\u2029]", block)


@pytest.mark.parametrize(
    "texts",
    [
        {"title": "</title><script>alert(1)</script>"},
        {"call": "</pre><script>alert(1)</script>"},
        {"diagnosis": "</pre><script>alert(1)</script> & <b>"},
    ],
)
def test_titles_calls_and_diagnoses_stay_text(plain, texts):
    found = read(plain, **texts)
    assert len(found.all("script")) == 2
    assert next(iter(texts.values())) in "".join(found.texts)


def test_halves_of_characters_can_be_written(plain, tmp_path):
    fit = dataclasses.replace(plain, names=("a\ud800", "b\x00", "c"))
    assert write_report(fit, tmp_path / "page.html").stat().st_size > 0


@pytest.mark.parametrize("name", ODD)
def test_whatever_is_lacking_there_is_a_page(odd, name):
    found = read(odd[name])
    text = " ".join(found.texts)
    for word in ("nan", "None", "inf ", "undefined"):
        assert not re.search(rf"\b{word}\b", text), word
    assert odd[name].status.value in text


def test_what_is_lacking_is_said(odd, plain):
    def text(fit):
        return " ".join(read(fit).texts)

    assert "does not hold its table" in text(odd["no table"])
    assert "no standard errors" in text(odd["no errors"])
    assert "left no trace" in text(odd["no errors"])
    assert "There is one column only" in text(odd["one column"])
    assert "no Monte-Carlo error" in text(odd["all seen"])
    errors = plain.monte_carlo_errors
    unknown = type(errors)(
        np.full_like(errors.mean, np.inf), np.full_like(errors.covariance, np.inf)
    )
    assert "is not known" in text(dataclasses.replace(plain, monte_carlo_errors=unknown))
    assert odd["too few steps"].notes[-1].text in text(odd["too few steps"])


def test_a_serious_status_looks_serious(odd, plain):
    def badges(fit):
        return [a["class"] for a in read(fit).all("span") if "badge" in a.get("class", "")]

    assert badges(plain) == ["badge ok"]
    assert badges(odd["too few steps"]) == ["badge problem"]
    assert badges(odd["thresholds"]) == ["badge look"]


def test_findings_are_shown_with_their_levels(plain):
    diagnosis = hs.diagnose(plain.source.X.values, plain.source.missingness)
    found = read(plain, diagnosis=diagnosis)
    text = " ".join(found.texts)
    assert diagnosis.findings
    for finding in diagnosis.findings:
        assert finding.title in text
        assert finding.text in text


def test_original_units_stand_beside_the_modelled_scale(logs):
    text = " ".join(read(logs).texts)
    assert "In original units" in text
    assert "log: geometric mean" in text
    assert "log10(zinc)" in text
    assert "not transformed" in text
    found = logs.original_scale(0.95, (0.95,), labels=False)
    table = text[text.index("In original units") : text.index("Column by column", 2000)]
    assert "95th percentile" in table
    for j in range(3):
        for value in (found.mean[j], found.quantiles[j, 0]):
            # The error leaves two or three digits of each.
            assert any(f"{value:.{digits}g}" in table for digits in (2, 3)), (j, value)


def caption(fit, key):
    text = html_page.page_of(report_content(fit))
    return re.sub(r"<.*?>", "", re.search(rf'id="{key}-caption">(.*?)</figcaption>', text)[1])


def test_captions_say_what_is_drawn_and_no_more(plain, odd, incomes, intervals, lab):
    assert "Hatched" in caption(plain, "column")
    assert "Dashed lines: limits" in caption(plain, "column")
    assert "Shaded" not in caption(plain, "column")
    assert "Shaded" in caption(lab, "column")
    for word in ("Hatched", "limits"):
        assert word not in caption(odd["all seen"], "column")
    nothing, either = "nothing is known", "either side"
    tied = "ties it to other columns"
    for fit, told in (
        (plain, ()),
        (odd["both sides"], (either,)),
        (incomes, (tied,)),
        (intervals, (nothing,)),
    ):
        text = caption(fit, "pair")
        assert [w for w in (nothing, either, tied) if w in text] == list(told)
        assert ("Marks at the edge" in text) == bool(told)
        assert "ellipse of the rows in which both are seen, from their own means" in text


def test_sampling_adds_what_the_summary_says(plain, odd):
    for fit in (plain, odd["both sides"]):
        said = re.search(
            r"Sampling adds (at most|less than) (\S+) % of a standard error",
            " ".join(fit.summary().split()),
        )
        text = " ".join(read(fit).texts)
        assert f"{said[0]} to any estimate" in text
        assert f"Means over {len(fit.history['trace'])} steps." in text
        assert "The status is not judged by these lines, but by the log-likelihood" in text


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (0.0, "less than 0.001 of a unit of log-likelihood is left to be gained"),
        (0.0234, "about 0.023 of a unit of log-likelihood is left to be gained"),
        (12.34, "about 12.3 units of log-likelihood are left to be gained"),
        (np.inf, "an unknown amount of log-likelihood is left to be gained"),
    ],
)
def test_what_is_left_to_be_gained_is_said(plain, left, said):
    fit = dataclasses.replace(plain, history={**plain.history, "gain_left": left})
    steps = f"After {len(plain.history['trace'])} steps, {said}"
    assert steps in " ".join(fit.summary().split())
    assert steps in " ".join(read(fit).texts)


@pytest.mark.parametrize("left", [None, -1.0, np.nan, "much"])
def test_a_history_of_anything_says_nothing(plain, left):
    fit = dataclasses.replace(plain, history={**plain.history, "gain_left": left})
    assert "left to be gained" not in fit.summary()


def test_the_status_is_judged_by_what_the_figure_shows(plain, odd):
    text = " ".join(read(plain).texts)
    assert "converged when no more than 0.25 of a unit of log-likelihood is left" in text
    assert "Dotted line: what may be left in the end" in text
    pulled = {**plain.history, "covariance_structure": "shrinkage"}
    text = " ".join(read(dataclasses.replace(plain, history=pulled)).texts)
    assert f"The last of {plain.history['steps']} steps changed the log-likelihood" in text
    assert "converged when" not in text
    assert "climb-plot" not in [a.get("id") for a in read(odd["no errors"]).all("div")]


def test_a_limit_of_thousands_reads_as_a_number(incomes):
    text = " ".join(read(incomes).texts)
    assert "150000" in text
    assert "e+0" not in text


def test_the_rule_is_on_the_page_in_words(incomes):
    page_text = html_page.page_of(report_content(incomes))
    assert "<ul><li>wage: shown where hours ≥ 30.</li></ul>" in page_text


def test_a_problem_further_down_is_named_beside_the_status(plain):
    X = np.where(np.isnan(plain.source.X.values), 1.5, plain.source.X.values)
    diagnosis = hs.diagnose(X, hs.DetectionLimits(lower=[1.5, 0.5, 2.5]), names=plain.names)
    assert diagnosis.worst == "problem"
    text = html_page.page_of(report_content(plain, diagnosis))
    status = text[text.index('<div class="status">') : text.index("<nav")]
    assert "badge ok" in status
    assert "badge problem" in status
    for finding in diagnosis.findings:
        assert (finding.title in status) == (finding.level != "ok"), finding.title
    assert "what was checked" not in html_page.page_of(report_content(plain))


def test_the_pairs_that_changed_most_come_first(thirty):
    text = html_page.page_of(report_content(thirty))
    first, whole = re.findall(r"<caption><span>Correlations, .*?</table>", text, re.DOTALL)
    assert first.count("<tr>") == 11
    assert "300 of 435 pairs" in whole
    pairs = report_content(thirty)["pairs"]
    change = np.abs(np.array(pairs["recovered"]) - np.array(pairs["naive"]))
    i, j = (int(axis[np.argmax(change)]) for axis in np.triu_indices(30, 1))
    row = re.search(r'<th scope="row">(.*?)</th>', first)[1]
    assert re.sub("<.*?>", "", row) == f"{thirty.names[i]} ~ {thirty.names[j]}"


def test_half_a_limit_stands_only_where_there_is_one(incomes, plain):
    assert "half limit" in " ".join(read(plain).texts)
    assert "half limit" not in " ".join(read(incomes).texts).lower()


def test_the_common_scale_is_in_the_captions(same_scale):
    for key in ("correlation", "sampling", "trace"):
        assert caption(same_scale, key).count("All columns are on the log scale.") == 1
    assert "lead ~ zinc" in "".join(read(same_scale).texts)


def test_a_path_that_cannot_be_written_is_a_sentence(plain, tmp_path):
    with pytest.raises(hs.InputError, match=r"is a folder; the report needs a file name"):
        write_report(plain, tmp_path)
    with pytest.raises(hs.InputError, match="lies in a folder that does not exist"):
        write_report(plain, tmp_path / "no" / "report.html")
    with pytest.raises(hs.InputError, match=r"cannot be written to .*: File name too long"):
        write_report(plain, tmp_path / f"{300 * 'x'}.html")


def luminance(colour):
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    """Contrast ratio of the web's accessibility guidelines."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_on_its_background(dark):
    style = resources.files("halfseen.report").joinpath("page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root[^{]*\{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[dark]))
    # 4.5 : 1 is what the guidelines ask of text at level AA.
    for name in ("ink", "quiet", "link", "recovered", "naive"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
        assert contrast(colours[name], colours["wash"]) >= 4.5, name
    for name in ("ok", "look", "problem"):
        assert contrast(colours[name], colours[f"{name}-wash"]) >= 4.5, name
    # 3 : 1 is what they ask of graphics.
    for name in ("point", "hidden"):
        assert contrast(colours[name], colours["paper"]) >= 3.0, name


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(None, 2, "–"), (-1.234, 2, "−1.23"), (-0.001, 2, "0.00"), (1e12, 2, "1e+12"), (3.0, 0, "3")],
)
def test_numbers_as_people_read_them(value, places, text):
    assert show(value, places) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (150000.0, "150000"), (1234567.0, "1234567"), (149999.99999999997, "150000"), (0.05, "0.05"),
        (123456.7891, "123457"), (-2.5, "−2.5"), (-0.0, "0"), (0.00001234, "0.00001234"),
        (2.5e6, "2500000"), (1e9, "1e+09"), (1e-9, "1e−09"),
    ],
)  # fmt: skip
def test_numbers_have_no_exponent_where_none_is_needed(value, text):
    assert readable(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(-0.001, "0.00"), (0.001, "0.00"), (-0.006, "−0.01"), (0.5, "+0.50")]
)
def test_zero_has_no_sign(value, text):
    assert signed(value) == text


@pytest.mark.parametrize(
    ("error", "value", "places"),
    [(0.0123, 5.0, 3), (123.0, 5.0, 0), (None, 0.0123, 5), (0.0, 0.0, 3)],
)
def test_errors_choose_the_decimals(error, value, places):
    assert places_for(error, value) == places


def test_a_page_that_would_be_too_large_shows_fewer_columns(tmp_path, monkeypatch):
    fit = hs.fit(np.random.default_rng(0).normal(size=(400, 100)), None, "truncation")
    whole = fit.report(tmp_path / "whole.html").stat().st_size
    monkeypatch.setattr(html_page, "LARGEST_PAGE", whole - 1)
    smaller = fit.report(tmp_path / "smaller.html")
    assert smaller.stat().st_size < whole - 1
    assert "the first 50 of 100 columns" in smaller.read_text()


def test_a_path_and_a_title_of_the_wrong_kind(plain, tmp_path):
    with pytest.raises(hs.InputError, match=r"a file name, such as report\.html; got 5"):
        plain.report(5)
    plain.report(tmp_path / "five.html", title=5)
    assert "<title>5" in (tmp_path / "five.html").read_text()
