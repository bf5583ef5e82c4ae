"""Why a cell cannot be read, in words that follow the cell: "'5%' has a percent sign; ..."."""

from __future__ import annotations

import re

from halfseen.errors import argument

NO_NUMBER = "is no number, no limit such as <0.05, no interval and no word that is known"
A_DATE = "looks like a date"
TRUE_FALSE = "is true or false, which is no number"

# A number in any way of writing it, to tell what else is in the cell.
ANY_NUMBER = r"[+-]?(?:[0-9]+(?:[.,'’ _][0-9]+)*[.,]?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?"
DATE = re.compile(
    r"(?:[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\2(?:[0-9]{4}|[0-9]{2}))"
    r"(?:[ T].*)?|[0-9]{1,2}[/:][0-9]{1,4}(?::.*)?|"
    r"[0-9]{1,2}[- ]?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[- ]?[0-9]*",
    re.IGNORECASE,
)
UNIT = re.compile(rf"(?:[<>]=? ?)?{ANY_NUMBER} ?([^\W\d_][^<>]*|[µ°$€£].*)", re.IGNORECASE)
LONGEST = 40


def shorten(text: str, longest: int = LONGEST) -> str:
    """Quote a text for a message; a long one is cut."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return repr(cut)


def called(name: str) -> str:
    """Write the name of a column for a message; an odd or a long one is quoted and cut."""
    return name if name.isprintable() and 0 < len(name) <= LONGEST else shorten(name)


def reason_for(text: str, decimal: str, thousands: str | None) -> str:
    """Say why a tidy text is no cell."""
    return (
        _reason_for_words(text)
        or _reason_for_signs(text)
        or _reason_for_separators(text, decimal, thousands)
        or _reason_for_rest(text)
        or NO_NUMBER
    )


def _reason_for_words(text: str) -> str:
    word = text.lower()
    if word in ("true", "false", "yes", "no"):
        return TRUE_FALSE
    if re.fullmatch(r"[<>+-]?=? ?(inf|infinity|∞)", word):
        return "is infinite; a value without a bound is written >c or <c, a missing one NA"
    if re.fullmatch(r">=? ?[a-z]*(lo[dq]|dl|rl|pql)", word):
        return "is above a limit that is not said; write the limit, such as >100"
    if text.startswith("'"):
        return (
            "starts with an apostrophe, as a text in a spreadsheet does; save the column as numbers"
        )
    return ""


def _reason_for_signs(text: str) -> str:
    if DATE.fullmatch(text):
        return A_DATE
    if re.fullmatch(rf"(?:[<>]=? ?)?{ANY_NUMBER} ?[%‰]", text):
        return "has a percent sign; write the number alone in the whole column"
    if re.fullmatch(r"[+-]?0[xob][0-9a-f]+", text, re.IGNORECASE):
        return "is not written in decimal digits"
    if re.match(r"[–—‒][0-9.,]", text):
        return "starts with a dash; write the minus sign as -"
    if "..." in text and re.search("[0-9]", text):
        return "has three points; write an interval with spaces, such as 1 .. 5"
    if re.fullmatch(rf"={ANY_NUMBER}|=.*[(].*", text):
        return "starts with =, as a formula in a spreadsheet does; save the values"
    if re.fullmatch(r"[\d.,<>=+-]+", text) and not text.isascii():
        return "has digits other than 0 to 9"
    return ""


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


def _reason_for_rest(text: str) -> str:
    if match := UNIT.fullmatch(text):
        unit = match[1].strip()
        return (
            f"has {shorten(unit, 15)} after the number; write the number alone, and a unit in the "
            "name of the column"
        )
    return ""
