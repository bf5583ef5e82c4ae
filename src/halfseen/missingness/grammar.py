"""Rules as people write them: one line of text says where a column is shown.

The grammar, with spaces allowed between any two parts::

    rule        = names ":" condition
    names       = name { "," name }
    condition   = "largest" | "smallest" | piece { "|" piece }
    piece       = "always" | "everything"
                | compare end
                | end ".." end
                | expression compare expression [ compare expression ]
    end         = [ sign ] ( number | "inf" )
    expression  = [ sign ] term { sign term }
    term        = factor { ( "*" | "/" ) factor }
    factor      = [ sign ] ( number | name )
    compare     = ">=" | ">" | "<=" | "<" | "≥" | "≤"
    sign        = "+" | "-" | "−"
    number      = digits, a decimal point and an exponent as in 0.5, .5, 2e-3
    name        = letters, digits, "_" and ".", beginning with a letter or "_"; anything else in
                  double quotes or backticks, in which the quote itself is doubled

A term has at most one column and never divides by it. A comparison without a left side, and a range,
speak of the column before the colon; a double comparison must do so too: ``lead: 0 <= lead <= 5``.
The words inf, nan, and, or, not are never names unless they are quoted.

The parser goes once from left to right and never calls itself, so that no text can exhaust the stack.
Numbers are fractions until the end: what cancels on paper cancels here.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from halfseen.missingness.rule_parts import (
    ADVICE,
    BOTH_OR_EITHER,
    PLAIN_RANGE,
    Inequality,
    Name,
    Piece,
    Rule,
    RuleError,
    Token,
    quoted,
    short,
    tokens,
)
from halfseen.missingness.sets import Interval, everything

# Long enough for a sum over hundreds of columns; short enough that every text is read at once.
LONGEST_RULE = 10_000
# A double has 17 digits, so nobody needs these; it bounds the work for one number.
LONGEST_NUMBER = 100
# So many characters of a rule are repeated to show how it is written.
LONGEST_SHOWN = 80
_EVERYTHING = frozenset({"always", "everything"})
_CHOICES = {"largest": True, "smallest": False}
_SIGNS = {"+": 1, "-": -1, "−": -1}

_ANY_CONDITION = "a condition such as >= 0.5, 0..5 or always"
_ANY_FACTOR = "a number or a column"
_NUMBER_SIZE = "numbers between 1e-307 and 1e308 in size"
_NO_INFINITY = (
    "a finite number; nothing lies beyond inf, so leave it out, or write always if every value is "
    "shown"
)
_NOT_LINEAR = (
    "a number; columns are multiplied and divided by numbers alone, or the rule is not linear"
)
_DOUBLE = "a double comparison is written as 0 <= a <= 5"


@dataclass
class _Expression:
    """``Σ weights · columns + constant``; ``end`` is its value if it may end a range, else None."""

    weights: dict[str, Fraction]
    constant: Fraction
    end: float | None
    position: int


def read_rule(text: str) -> Rule:
    """Read one rule.

    Examples
    --------
    >>> from halfseen.missingness.grammar import read_rule
    >>> read_rule("lead: 0..1 | >=3").pieces[1].interval
    at_least(3)
    """
    if len(text) > LONGEST_RULE:
        raise RuleError(
            text, LONGEST_RULE, f"at most {LONGEST_RULE} characters; this rule has {len(text)}"
        )
    return _Parser(text).rule()


class _Parser:
    """Goes through the tokens of one rule, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*tokens(text), Token("end", "", len(text.rstrip()))]
        self.at = 0
        self.others: list[Name] = []

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def following(self) -> Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def next(self) -> Token:
        found = self.token
        self.at += 1
        return found

    def refuse(self, position: int, expected: str) -> NoReturn:
        """Raise a ``RuleError`` at a position."""
        raise RuleError(self.text, position, expected)

    def fail(self, expected: str, advice: str = "") -> NoReturn:
        """Raise a ``RuleError`` at the token, for what it is if there is no other advice."""
        after = f" after {short(self.tokens[self.at - 1].text)}" if self.at else ""
        advice = advice or self.advice()
        self.refuse(self.token.position, expected + after + (f"; {advice}" if advice else ""))

    def advice(self) -> str:
        """Say what to do about a token that does not belong where it is."""
        token = self.token
        before = self.tokens[self.at - 1] if self.at else Token("end", "", 0)
        if before.kind == "number":
            after = self.following
            if token.is_mark(",") and after.kind == "number" and after.position == token.stop:
                if "." in before.text + after.text:
                    return f"numbers are written without commas: {before.text}{after.text}"
                return f"decimals are written with a point: {before.text}.{after.text}"
            if token.kind in ("word", "quoted") and token.text not in ADVICE:
                if "\n" in self.text[before.stop : token.position]:
                    return ADVICE[";"]
                return "numbers have no units, and a product is written with *, as in 2*a"
        if token.text == "=" and before.kind == "compare":
            return f"write {before.text[0]}= without a space"
        if token.is_mark("..") and before.is_mark(":", "|"):
            return "a range has two ends; write <= 5 or -inf..5"
        if token.is_mark(":") and any(other.is_mark(":") for other in self.tokens[: self.at]):
            return "a rule has one colon, and in a dict the column is the key alone"
        # A mark that belongs to the grammar needs no advice: it only stands in the wrong place.
        known = token.kind in ("word", "wrong", "stray")
        return ADVICE.get(token.text.lower(), "") if known else ""

    def rule(self) -> Rule:
        targets = self.targets()
        choice = self.choice(len(targets))
        pieces = [] if choice is not None else [self.piece()]
        while self.token.is_mark("|"):
            self.next()
            pieces.append(self.piece())
        if self.token.kind != "end":
            self.fail("the end of the rule", self.advice() or self.advice_after_piece())
        return Rule(self.text, targets, tuple(self.others), choice, tuple(pieces))

    def advice_after_piece(self) -> str:
        token = self.token
        if token.kind == "compare":
            return BOTH_OR_EITHER
        if token.is_mark(".."):
            return PLAIN_RANGE
        if token.is_mark(*_SIGNS, "*", "/"):
            return "to compare sums write the column on the left, as in a >= 2*b + 1"
        return "join pieces with |, and give several rules as a list"

    def targets(self) -> tuple[Name, ...]:
        if self.token.kind == "end":
            self.fail('a rule such as "lead: >= 0.5"; this one is empty')
        found: list[Name] = []
        while True:
            if self.token.kind != "word" and not self.token.is_name:
                self.fail("the name of a column", self.advice_for_target(self.token.position))
            name = self.name("the name of a column")
            if any(name.text == other.text for other in found):
                self.refuse(name.position, f"another column; {name.text!r} stands here twice")
            found.append(name)
            if self.token.is_mark(":"):
                self.next()
                return tuple(found)
            if not self.token.is_mark(","):
                self.fail('"," or ":"', self.advice_after_name(name))
            self.next()

    def advice_after_name(self, name: Name) -> str:
        token = self.token
        if token.kind in ("word", "number"):
            both = self.with_quotes(name.position) or f'"{short(f"{name.text} {token.text}")}"'
            return f"names are separated by commas, and one with a space is quoted: {both}"
        if token.kind == "compare":
            whole = short(self.text.strip())
            return f"say first which column is shown: {quoted(short(name.text))}: {whole}"
        if token.kind == "end":
            return "say after a colon where the column is shown"
        return self.advice_for_target(name.position)

    def advice_for_target(self, start: int) -> str:
        """Say how to write what stands where a target must be, from ``start`` onwards."""
        token = self.token
        if token.text in ('"', "`", "'"):
            return self.advice()
        if token.is_mark(":", ","):
            return ""
        if whole := self.with_quotes(start):
            what = "that begins with a digit" if token.kind == "number" else "with odd characters"
            return f"a name {what} is quoted: write {whole}"
        compares = any(other.kind == "compare" for other in self.tokens)
        if compares and not any(other.is_mark(":") for other in self.tokens):
            names = {other.name for other in self.tokens if other.is_name}
            shown = quoted(short(names.pop())) if len(names) == 1 else "wage"
            whole = short(self.text.strip(), LONGEST_SHOWN)
            return f"say first which column is shown, as in {shown}: {whole}"
        return 'a name with odd characters is quoted, as in "PM-10": >= 0.5'

    def with_quotes(self, start: int) -> str:
        """Return the rule with quotes around the name at ``start``; empty if its end is not clear."""
        colons = [token for token in self.tokens if token.is_mark(":")]
        if len(colons) != 1 or colons[0].position <= start:
            return ""
        stop = colons[0].position
        for token in self.tokens:
            name = self.text[start : token.position]
            # A comma between brackets belongs to the name.
            if token.is_mark(",") and start < token.position < stop:
                stop = token.position if name.count("(") == name.count(")") else stop
        name = self.text[start:stop].strip()
        return short(f"{self.text[:start]}{quoted(name)}{self.text[stop:]}".strip(), LONGEST_SHOWN)

    def name(self, expected: str) -> Name:
        token = self.token
        if token.kind == "word" and not token.is_name:
            self.fail(expected, self.advice() or f'such a name is quoted: "{token.text}"')
        if token.kind == "number":
            self.fail(expected, "a name that begins with a digit is quoted")
        if not token.is_name:
            self.fail(expected)
        if not token.name:
            self.fail(expected, "a name may not be empty")
        self.next()
        return Name(token.name, token.position)

    def choice(self, columns: int) -> bool | None:
        """Read ``largest`` or ``smallest``, which must be all of the condition."""
        token = self.token
        if token.kind != "word" or token.text not in _CHOICES or self.following.kind != "end":
            return None
        if columns < 2:
            self.refuse(
                token.position,
                f"two or more columns before the colon; {token.text} picks one of several, as in "
                f"bid1, bid2: {token.text}",
            )
        self.next()
        return _CHOICES[token.text]

    def piece(self) -> Piece:
        if self.token.kind == "compare":
            return self.own_comparison()
        alone = self.following.kind == "end" or self.following.is_mark("|")
        if self.token.is_name and self.token.kind == "word" and alone:
            return self.word()
        left = self.expression(_ANY_CONDITION)
        if self.token.is_mark(".."):
            return self.range(left)
        if self.token.kind == "compare":
            return self.comparison(left)
        if left.weights:
            self.fail("a comparison such as >= or <=")
        # A sum of numbers was perhaps a range with a dash.
        alone_says = "a number alone says nothing" if left.end is not None else PLAIN_RANGE
        self.fail("a comparison or ..", self.advice() or alone_says)

    def word(self) -> Piece:
        """Read a word that is a whole piece."""
        token = self.token
        if token.text in _CHOICES:
            self.refuse(token.position, f"a condition on one column; {token.text} stands alone")
        if token.text not in _EVERYTHING:
            self.refuse(
                token.position,
                f"always, everything, largest, smallest or a comparison; {short(token.text)} alone "
                "says nothing",
            )
        self.next()
        return Piece(token.position, token.position, everything)

    def own_comparison(self) -> Piece:
        """Read ``>= 0.5``: the column itself is meant."""
        compare = self.next()
        position = self.token.position
        if self.token.is_name:
            self.fail("a number", "to compare with a column write both sides, as in a - b >= 0")
        limit = self.range_end()
        if math.isinf(limit):
            self.refuse(position, _NO_INFINITY)
        greater, strict = _meaning(compare)
        # At infinity an end counts as closed, as in every interval that the library makes.
        interval = (
            Interval(limit, math.inf, closed_lower=not strict)
            if greater
            else Interval(-math.inf, limit, closed_upper=not strict)
        )
        return Piece(compare.position, position, interval)

    def range(self, left: _Expression) -> Piece:
        """Read the rest of ``0..5``."""
        if left.end is None:
            self.refuse(
                left.position, "a plain number or inf before ..; write >= or <= to compare sums"
            )
        self.next()
        position = self.token.position
        if self.token.kind == "end":
            self.fail("a number", "a range has two ends; write >= 5 or 5..inf")
        upper = self.range_end()
        low, high = f"{left.end:.12g}", f"{upper:.12g}"
        if upper < left.end:
            self.refuse(
                position,
                f"a number above {low}; for the range from {high} to {low} write {high}..{low}",
            )
        if upper == left.end:
            self.refuse(
                position,
                f"a number above {low}; a single value would be seen with probability zero",
            )
        return Piece(left.position, position, Interval(left.end, upper))

    def range_end(self) -> float:
        """Read a number or inf, with a sign or without."""
        sign = self.sign()
        if self.token.is_infinite:
            self.next()
            return sign * math.inf
        if self.token.kind != "number":
            self.fail("a number")
        return float(sign * self.number())

    def sign(self) -> int:
        return _SIGNS[self.next().text] if self.token.is_mark(*_SIGNS) else 1

    def number(self) -> Fraction:
        """Read a number exactly as it is written; one that a double cannot hold is refused."""
        token = self.token
        text = token.text.replace("−", "-")
        if len(text) > LONGEST_NUMBER:
            self.refuse(token.position, f"a number of at most {LONGEST_NUMBER} characters")
        value = float(text)
        written_zero = not re.search("[1-9]", re.split("[eE]", text)[0])
        if math.isinf(value) or (value == 0.0 and not written_zero):
            size = "large" if value else "small"
            self.refuse(token.position, f"{_NUMBER_SIZE}; {short(text)} is too {size}")
        self.next()
        # Not Fraction("0e999999999"), which would write all those zeros.
        return Fraction(text) if value else Fraction(0)

    def expression(self, expected: str) -> _Expression:
        """Read a sum of terms."""
        start, position = self.at, self.token.position
        weights: dict[str, Fraction] = {}
        constant = Fraction(0)
        sign = self.sign()
        if self.token.is_infinite:
            self.next()
            return _Expression({}, constant, sign * math.inf, position)
        while True:
            name, factor = self.term(expected)
            if name is None:
                constant += sign * factor
            else:
                weights[name] = weights.get(name, Fraction(0)) + sign * factor
            if not self.token.is_mark(*_SIGNS):
                break
            sign = self.sign()
            expected = _ANY_FACTOR
        # One number, perhaps with a sign before it.
        plain = self.at - start <= 2 and not weights
        return _Expression(weights, constant, float(constant) if plain else None, position)

    def term(self, expected: str) -> tuple[str | None, Fraction]:
        """Read a product of numbers and at most one column."""
        name: str | None = None
        factor = Fraction(1)
        divide = False
        while True:
            factor *= self.sign()
            token = self.token
            if token.kind == "number":
                value = self.number()
                if divide and value == 0:
                    self.refuse(token.position, "a number other than 0 after /")
                factor = factor / value if divide else factor * value
                # At once, since a product of thousands of large numbers is slow to work out.
                if factor and not _fits(factor):
                    self.refuse(token.position, f"{_NUMBER_SIZE}, products included")
            else:
                found = self.column(expected)
                if name is not None or divide:
                    self.refuse(token.position, _NOT_LINEAR)
                name = found
            if not self.token.is_mark("*", "/"):
                return name, factor
            divide = self.next().text == "/"
            expected = _ANY_FACTOR

    def column(self, expected: str) -> str:
        """Read a column in an expression."""
        token = self.token
        if token.is_infinite:
            self.fail(expected, 'inf may only end a range; a column of that name is quoted: "inf"')
        name = self.name(expected)
        if self.token.text == "(":
            self.refuse(
                token.position,
                f"a column or a number; functions such as {short(token.text)}(...) are not read, so "
                "put the value into a column of its own",
            )
        self.others.append(name)
        return name.text

    def comparison(self, left: _Expression) -> Piece:
        """Read the rest of ``a - 2*b >= 1`` or of ``0 <= a <= 5``."""
        sides, compares = [left], []
        while self.token.kind == "compare":
            compares.append(self.token)
            if len(compares) > 2:
                self.fail("the end of the rule", _DOUBLE)
            if _meaning(compares[0])[0] != _meaning(compares[-1])[0]:
                self.refuse(
                    self.token.position, f"a comparison in the direction of the first; {_DOUBLE}"
                )
            self.next()
            sides.append(self.expression(_ANY_FACTOR))
        for side in sides:
            if side.end is not None and math.isinf(side.end):
                self.refuse(side.position, _NO_INFINITY)
        steps = zip(sides[:-1], compares, sides[1:], strict=True)
        inequalities = tuple(self.inequality(*step) for step in steps)
        return Piece(left.position, sides[-1].position, None, inequalities)

    def inequality(self, left: _Expression, compare: Token, right: _Expression) -> Inequality:
        """Bring all to one side."""
        position = left.position
        greater, strict = _meaning(compare)
        if not greater:
            left, right = right, left
        weights = dict(left.weights)
        for name, weight in right.weights.items():
            weights[name] = weights.get(name, Fraction(0)) - weight
        constant = left.constant - right.constant
        kept = {name: weight for name, weight in weights.items() if weight}
        if not kept:
            holds = constant > 0 or (constant == 0 and not strict)
            self.refuse(
                position,
                "a condition that depends on a column; "
                + ("its columns cancel, so " if weights else "")
                + f"this is {'always' if holds else 'never'} true",
            )
        if not all(_fits(value) for value in (*kept.values(), constant or Fraction(1))):
            self.refuse(position, f"{_NUMBER_SIZE} when all is brought to one side")
        return Inequality(kept, constant, strict)


def _meaning(compare: Token) -> tuple[bool, bool]:
    """Whether a comparison says greater, and whether it is strict."""
    return compare.text[0] in ">≥", compare.text in "><"


def _fits(value: Fraction) -> bool:
    try:
        return abs(float(value)) > 0.0
    except OverflowError:
        return False
