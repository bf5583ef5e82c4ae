"""Cells as people write them: ``3.2``, ``<0.05``, ``>100``, ``0.2..0.5``, ``ND``, ``NA``.

============================================  =======================================
``3.2``, ``-1e-5``                            a seen value
``<0.05``, ``<= 0.05``, ``≤0.05``             below a limit
``ND(0.05)``, ``ND<0.05``, ``0.05 U``         the same, in the language of laboratories
``>100``, ``>= 3``, ``≥ 3``                   above a limit
``0.2..0.5``, ``0.2-0.5``, ``-3 to -1``       between two values
``ND``, ``<LOD``, ``BDL``, ``not detected``   not detected, and the limit is not said
empty, ``NA``, ``NaN``, ``null``, ``-``       missing
============================================  =======================================

Words are read in any case. A cell that could mean two things is not read: a wrong number is worse
than a question.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from halfseen.errors import InputError, argument

# Words for a value that was looked for and not found, with no limit said. Lower case.
NOT_DETECTED = frozenset(
    (
        *("nd", "n.d.", "n.d", "n/d", "non-detect", "nondetect", "non detect", "non-detected"),
        *("not detected", "not detectable", "u", "uj", "bdl", "bld", "blod", "blq", "bql", "bloq"),
        *("below detection", "below detection limit", "below lod", "below loq", "below mdl"),
        *("below rl", "below dl", "<lod", "<loq", "<lloq", "<dl", "<mdl", "<rl", "<mrl", "<pql"),
        *("<lld", "<detection limit", "<reporting limit", "<limit of detection"),
    )
)
# Words for a value of which nothing is known. Lower case.
MISSING = frozenset(
    (
        *("", "na", "n/a", "n.a.", "#n/a", "nan", "<na>", "null", "none", "missing"),
        *(".", "-", "--", "–", "—"),
    )
)
# Words that may stand before a limit, as in ``ND(0.05)``.
BEFORE_LIMIT = r"nd|n\.d\.|n/d|not detected|non-?detect|bdl|bql|blq|uj?|< ?(?:lod|loq|mdl|dl|rl)"
# Qualifiers that laboratories write after a number: U and its like say that it is a limit, J that
# it is estimated.
AFTER_NUMBER = r"uj|u|j|nd|bdl"
# Characters that look alike, or that a keyboard does not have, as the plain ones.
ALIKE = str.maketrans(
    {"−": "-", "＜": "<", "＞": ">"} | dict.fromkeys("≤≦⩽", "<=") | dict.fromkeys("≥≧⩾", ">=")
)
# Marks without width, left over by copying: they are no spaces for Python, but for people.
INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
DASHES = "-‐‑‒–—"
THOUSANDS = (",", ".", " ", "'", "’", "_")
NO_NUMBER = "is no number, no limit such as <0.05, no interval and no word that is known"
A_DATE = "looks like a date"
TRUE_FALSE = "is true or false, which is no number"

# A number in any way of writing it, to tell what else is in the cell.
ANY_NUMBER = r"[+-]?(?:[0-9]+(?:[.,'’ _][0-9]+)*[.,]?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?"
DATE = (
    r"(?:[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2}))"
    r"(?:[ T].*)?|[0-9]{1,2}[/:][0-9]{1,4}(?::.*)?|"
    r"[0-9]{1,2}[- ]?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[- ]?[0-9]*"
)
UNIT = re.compile(rf"(?:[<>]=? ?)?{ANY_NUMBER} ?([^\W\d_][^<>]*|[µ°$€£].*)", re.IGNORECASE)
# What texts that are no cells look like, and what to say of them. The first that fits is said.
REASONS = {
    re.compile(pattern, re.IGNORECASE): reason
    for pattern, reason in {
        "true|false|yes|no": TRUE_FALSE,
        "[<>+-]?=? ?(inf|infinity|∞)": "is infinite; a value without a bound is written >c or <c, a "
        "missing one NA",
        ">=? ?[a-z]*(lo[dq]|dl|rl|pql)": "is above a limit that is not said; write the limit, such "
        "as >100",
        "'.*": "starts with an apostrophe, as a text in a spreadsheet does; save the column as numbers",
        DATE: A_DATE,
        rf"(?:[<>]=? ?)?{ANY_NUMBER} ?[%‰]": "has a percent sign; write the number alone in the whole "
        "column",
        "[+-]?0[xob][0-9a-f]+": "is not written in decimal digits",
        "[–—‒][0-9.,].*": "starts with a dash; write the minus sign as -",
        r"(?=.*[0-9]).*\.\.\..*": "has three points; write an interval with spaces, such as 1 .. 5",
        rf"={ANY_NUMBER}|=.*[(].*": "starts with =, as a formula in a spreadsheet does; save the values",
        r"(?=.*[^\x00-\x7f])[\d.,<>=+-]+": "has digits other than 0 to 9",
    }.items()
}
LONGEST = 40


class Cell(NamedTuple):
    """What one cell says: where the value lies, or why the cell cannot be read.

    ``estimated`` marks the qualifier J. ``problem`` is empty where the cell could be read.
    """

    lower: float
    upper: float
    not_detected: bool = False
    estimated: bool = False
    problem: str = ""


BLANK = Cell(-math.inf, math.inf)
UNDETECTED = Cell(-math.inf, math.inf, not_detected=True)


class NotACell(Exception):
    """Why a cell cannot be read; it never leaves this module."""


@dataclass(frozen=True)
class CellFormat:
    """How numbers and words are written in a table.

    Parameters
    ----------
    decimal : "." or ","
    thousands : one character, optional
        What stands between groups of three digits.
    not_detected, missing : words or numbers, or several of them
        What else means "not detected" and "missing", such as ``"trace"`` or ``-999``. These go
        before everything that is known here.

    Examples
    --------
    >>> from halfseen.data.cells import CellFormat, read_cell
    >>> read_cell("1.234,5", CellFormat(decimal=",", thousands=".")).lower
    1234.5
    >>> read_cell("trace", CellFormat(not_detected=["trace"])).not_detected
    True
    """

    decimal: str = "."
    thousands: str | None = None
    not_detected: Any = ()
    missing: Any = ()
    words: dict[str, Cell] = field(init=False, repr=False)
    codes: dict[float, Cell] = field(init=False, repr=False)
    patterns: dict[str, re.Pattern[str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise InputError(f"decimal must be '.' or ','; got {self.decimal!r}.")
        if self.thousands is not None and self.thousands not in THOUSANDS:
            known = ", ".join(map(repr, THOUSANDS))
            raise InputError(f"thousands must be one of {known}, or None; got {self.thousands!r}.")
        if self.thousands == self.decimal:
            raise InputError(
                f"decimal and thousands are both {self.decimal!r}; a number could not be told "
                "apart from one a thousand times larger."
            )
        object.__setattr__(self, "patterns", _patterns(self.decimal, self.thousands))
        object.__setattr__(self, "words", {})
        object.__setattr__(self, "codes", {})
        self._learn("not_detected", self.not_detected, UNDETECTED)
        self._learn("missing", self.missing, BLANK)

    def _learn(self, argument: str, given: Any, meaning: Cell) -> None:
        """Keep the words and the numbers that have a meaning of their own in this table."""
        if given is None:
            return
        alone = isinstance(given, str | numbers.Real) or not isinstance(given, Iterable)
        for word in [given] if alone else given:
            if isinstance(word, str):
                key = _key(tidy(word))
                self._keep(self.words, key, meaning)
                if self.patterns["number"].fullmatch(key):
                    # So that -999 is found where a table has it as -999.0 or as a number.
                    self._keep(self.codes, float(self.plain(key)), meaning)
            elif isinstance(word, numbers.Real) and not isinstance(word, bool):
                self._keep(self.codes, float(word), meaning)
            else:
                raise InputError(f"{argument} must be words or numbers; got {word!r}.")

    def _keep(self, known: dict[Any, Cell], word: Any, meaning: Cell) -> None:
        if known.setdefault(word, meaning) is not meaning:
            raise InputError(
                f"{word!r} is in {argument('not_detected')} and in {argument('missing')}; a word "
                "can have one meaning only."
            )

    def plain(self, text: str) -> str:
        """Write a number in the way of Python."""
        if self.thousands is not None:
            for mark in "'’" if self.thousands in "'’" else self.thousands:
                text = text.replace(mark, "")
        return text if self.decimal == "." else text.replace(self.decimal, ".")

    def number(self, text: str) -> float:
        """Turn a text that looks like a number into one; refuse what a double cannot hold."""
        plain = self.plain(text)
        value = float(plain)
        if math.isinf(value):
            raise NotACell("is too large for a number, which may reach about 1.8e308")
        if value == 0.0 and is_lost(plain):
            raise NotACell("is too small for a number: it would become 0")
        return value


def shorten(text: str, longest: int = LONGEST) -> str:
    """Quote a text for a message; a long one is cut."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return repr(cut)


def called(name: str) -> str:
    """Write the name of a column for a message; an odd or a long one is quoted and cut."""
    return name if name.isprintable() and 0 < len(name) <= LONGEST else shorten(name)


def tidy(text: str) -> str:
    """Take odd spaces away, and write signs in one way."""
    return " ".join(text.translate(ALIKE).strip(INVISIBLE).split()).strip(INVISIBLE)


def is_lost(text: str) -> bool:
    """Tell whether a text that was read as 0 has a digit other than 0 before its exponent."""
    return any(digit in "123456789" for digit in re.split("[eE]", text)[0])


def read_cell(text: str, form: CellFormat) -> Cell:
    """Read one cell.

    Examples
    --------
    >>> from halfseen.data.cells import CellFormat, read_cell
    >>> read_cell("< 0.05", CellFormat())
    Cell(lower=-inf, upper=0.05, not_detected=False, estimated=False, problem='')
    >>> read_cell("1e-5-2e-5", CellFormat())[:2]
    (1e-05, 2e-05)
    >>> read_cell("5-3", CellFormat()).problem
    'is reversed: 5 is above 3; an interval is written 3..5'
    """
    try:
        return _read(tidy(text), form)
    except NotACell as reason:
        return BLANK._replace(problem=str(reason))


def _read(text: str, form: CellFormat) -> Cell:
    key = _key(text)
    if key in form.words:
        return form.words[key]
    patterns = form.patterns
    if patterns["number"].fullmatch(text):
        value = form.number(text)
        return form.codes.get(value, Cell(value, value))
    if key in MISSING:
        return BLANK
    if key in NOT_DETECTED:
        return UNDETECTED
    if match := patterns["sided"].fullmatch(text):
        return _one_sided(match, form)
    if match := patterns["qualified"].fullmatch(text):
        value = form.number(match[1])
        mark = (match[2] or match[3]).lower()
        if mark == "j":
            return Cell(value, value, estimated=True)
        return Cell(-math.inf, value, estimated="j" in mark)
    if match := patterns["limit"].fullmatch(text):
        return Cell(-math.inf, form.number(match[1] or match[2]))
    if "..." not in text:
        for name in ("dots", "to", "dash"):
            if match := patterns[name].fullmatch(text):
                return _between(match, form, name)
    raise NotACell(_reason_for(text, form))


def _one_sided(match: re.Match[str], form: CellFormat) -> Cell:
    sign, limit, mark = match[1], form.number(match[2]), (match[3] or "").lower()
    if sign[0] == "<" and mark != "j":
        return Cell(-math.inf, limit, estimated="j" in mark)
    if sign[0] == ">" and not mark:
        return Cell(limit, math.inf)
    raise NotACell(f"contradicts itself: {sign} and the qualifier {match[3]}")


def _between(match: re.Match[str], form: CellFormat, name: str) -> Cell:
    first, last = match["first"], match["last"]
    lower, upper = form.number(first), form.number(last)
    if name == "dash":
        if any(re.match(r"[+-]?0[0-9]", end) for end in (first, last)):
            raise NotACell(
                f"looks like a part of a date; if it is an interval, write {first}..{last}"
            )
        if match["before"] != match["after"]:
            raise NotACell(
                f"may be two numbers or an interval; if it is an interval, write {first}..{last}"
            )
    if lower > upper:
        raise NotACell(
            f"is reversed: {first} is above {last}; an interval is written {last}..{first}"
        )
    return Cell(lower, upper)


def _reason_for(text: str, form: CellFormat) -> str:
    """Say why a tidy text is no cell, in words that follow it: "'5%' has a percent sign; ..."."""
    for pattern, reason in REASONS.items():
        if pattern.fullmatch(text):
            return reason
    if reason := _reason_for_separators(text, form.decimal, form.thousands):
        return reason
    if match := UNIT.fullmatch(text):
        return (
            f"has {shorten(match[1].strip(), 15)} after the number; write the number alone, and a "
            "unit in the name of the column"
        )
    return NO_NUMBER


def _reason_for_separators(text: str, decimal: str, thousands: str | None) -> str:
    if not re.fullmatch(rf"(?:[<>]=? ?)?{ANY_NUMBER}(?:(?:\.\.| ?[-–] ?| to ){ANY_NUMBER})?", text):
        return ""
    if "_" in text and thousands != "_":
        return "has an underscore; write the digits alone"
    if thousands is not None and thousands in text:
        return (
            f"has {thousands!r} where no group of three digits ends, though "
            f"{argument('thousands', thousands)}"
        )
    if decimal == "." and "," in text:
        grouped = re.search(r"[1-9][0-9]{0,2}(,[0-9]{3})+(?![0-9])", text)
        also = f", or {argument('thousands', ',')} if it groups digits" if grouped else ""
        return f"has a comma; pass {argument('decimal', ',')} if that is the decimal sign{also}"
    if decimal == "," and "." in text:
        return (
            f"has a point, though {argument('decimal', ',')}; pass {argument('decimal', '.')} if "
            f"it is the decimal sign, or {argument('thousands', '.')} if it groups digits"
        )
    if text.count(decimal) > 1:
        return f"has more than one {decimal!r}"
    if re.search("[0-9][ '’][0-9]", text):
        return (
            f"holds more than one number; pass {argument('thousands')} if the mark between them "
            "groups digits"
        )
    return ""


def print_number(value: float, decimal: str = ".") -> str:
    """Print the shortest text that reads back as the same number.

    Examples
    --------
    >>> from halfseen.data.cells import print_number
    >>> print_number(100.0), print_number(0.1, decimal=",")
    ('100', '0,1')
    """
    text = repr(float(value))
    return text.removesuffix(".0") if decimal == "." else text.removesuffix(".0").replace(".", ",")


def print_cell(lower: float, upper: float, not_detected: bool = False, decimal: str = ".") -> str:
    """Print a cell so that ``read_cell`` reads the same from it, bit for bit.

    Examples
    --------
    >>> from halfseen.data.cells import print_cell
    >>> [print_cell(a, b) for a, b in [(-3.0, -1.0), (2.5, 2.5), (-float("inf"), 0.05)]]
    ['-3..-1', '2.5', '<0.05']
    """
    if lower == upper != 0.0:
        return print_number(lower, decimal)
    if not_detected:
        return "ND"
    if math.isinf(lower):
        return "" if math.isinf(upper) else f"<{print_number(upper, decimal)}"
    if math.isinf(upper):
        return f">{print_number(lower, decimal)}"
    first, last = print_number(lower, decimal), print_number(upper, decimal)
    # Compared as texts, because -0 and 0 are equal as numbers.
    return first if first == last else f"{first}..{last}"


def _key(text: str) -> str:
    """Write a word in the one way in which it is looked up."""
    return re.sub(r"^([<>]=?) ", r"\1", text.casefold())


def _patterns(decimal: str, thousands: str | None) -> dict[str, re.Pattern[str]]:
    """Compile what cells look like, for one way to write numbers."""
    point = re.escape(decimal)
    whole = "[0-9]+"
    if thousands is not None:
        mark = "['’]" if thousands in "'’" else re.escape(thousands)
        # Groups of three, and no zero in front: 0,123 is more likely a decimal comma.
        whole = rf"(?:[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|[0-9]+)"
    number = rf"[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    first, last = rf"(?P<first>{number})", rf"(?P<last>{number})"
    texts = {
        "number": number,
        "common": rf"<?{number}",
        "sided": rf"(<=?|>=?) ?({number})(?: ?({AFTER_NUMBER}))?",
        "qualified": rf"({number}) ?(?:({AFTER_NUMBER})|\(({AFTER_NUMBER})\))",
        "limit": rf"(?:{BEFORE_LIMIT})"
        rf"(?:(?: ?<=? ?| ?[=@:] ?| at | )({number})| ?\( ?<?=? ?({number}) ?\))",
        "dots": rf"{first} ?\.\. ?{last}",
        "to": rf"{first} to {last}",
        "dash": rf"{first}(?P<before> ?)[{DASHES}](?P<after> ?){last}",
    }
    return {name: re.compile(text, re.IGNORECASE) for name, text in texts.items()}
