"""Formulas such as ``"lead + zinc ~ age + C(site)"`` as terms, as formulaic's users know them.

They are read here and not by formulaic, which would run what stands in them as Python, and multiply
out ``(a + b + …) ** 9`` whatever comes of it. The terms are the same (a test compares them); where
formulaic takes something in silence that people do not mean (``x ** 2`` outside of I(...), a ``0`` in
brackets), there is a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from halfseen.data.factors import ALLOWED, Factor, column_factor, expression, shown
from halfseen.errors import InputError

# A product of factors; the empty one is the intercept.
Term = tuple[Factor, ...]
# By the sources of their factors in order, so that a:b and b:a are one.
Terms = dict[tuple[str, ...], Term]

LONGEST = 200_000
DEEPEST = 50
MOST_TERMS = 10_000
HIGHEST_POWER = 20
EXAMPLE = "'lead + zinc ~ age + C(site)'"

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<odd>`[^`]*`)
    |(?P<text>"[^"]*"|'[^']*')
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<name>\.*[^\W\d][\w.]*)
    |(?P<sign>\*\*|%in%|[-+*/:^()~.{])""",
    re.VERBOSE,
)
_CALLED = re.compile(r"\s*\(")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Formula:
    """Outcomes in order, and for each the terms that its mean is made of."""

    outcomes: tuple[str, ...]
    equations: tuple[tuple[Term, ...], ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the columns that stand on the right, each once."""
        factors = (factor for terms in self.equations for term in terms for factor in term)
        return tuple(dict.fromkeys(name for factor in factors for name in factor.variables))


class _Token(NamedTuple):
    kind: str
    text: str


def outcome_names(formula: str | Mapping[str, str]) -> tuple[str, ...]:
    """Return the names on the left of a formula, in order.

    Parameters
    ----------
    formula : str or mapping of str to str
        Such as ``"lead + zinc ~ age"``, or ``{"wage": "age + school", "works": "age + kids"}``.

    Returns
    -------
    tuple of str

    Raises
    ------
    InputError
        Where the left side has anything but names of columns.

    Examples
    --------
    >>> from halfseen.data.formulas import outcome_names
    >>> outcome_names("lead + `total zinc` ~ age + C(site)")
    ('lead', 'total zinc')
    >>> outcome_names({"wage": "age + school", "works": "age + kids"})
    ('wage', 'works')
    """
    if isinstance(formula, str):
        return _left_side(_two_sides(formula)[0])
    return tuple(_by_outcome(formula))


def read_formula(formula: str | Mapping[str, str], columns: Sequence[str]) -> Formula:
    """Read a formula; ``columns`` are those of the data, which ``.`` stands for but for the outcomes."""
    outcomes = outcome_names(formula)
    rest = [column_factor(name) for name in columns if name not in outcomes]
    if isinstance(formula, str):
        terms = _Reader(_two_sides(formula)[1], rest).right_side()
        return Formula(outcomes, (terms,) * len(outcomes))
    equations = []
    for outcome, text in _by_outcome(formula).items():
        try:
            equations.append(_Reader(_tokens(text), rest).right_side())
        except InputError as error:
            raise InputError(f"regressors of {outcome!r}: {error.sentence}") from None
    return Formula(outcomes, tuple(equations))


def _two_sides(formula: str) -> tuple[list[_Token], list[_Token]]:
    tokens = _tokens(formula)
    waves = [place for place, token in enumerate(tokens) if token == ("sign", "~")]
    if not tokens:
        raise InputError(f"the formula is empty; one such as {EXAMPLE} is needed.")
    if len(waves) != 1:
        what = "has no ~" if not waves else f"has ~ {len(waves)} times"
        raise InputError(
            f"the formula {shown(formula)} {what}; outcomes stand on its left and regressors on its "
            f"right, as in {EXAMPLE}."
        )
    return tokens[: waves[0]], tokens[waves[0] + 1 :]


def _by_outcome(formula: Mapping[str, str]) -> dict[str, str]:
    """Check a formula by outcome."""
    if not isinstance(formula, Mapping):
        raise InputError(
            f"a formula is a text such as {EXAMPLE}, or a dict from outcomes to their regressors, such "
            f"as {{'wage': 'age + school', 'works': 'age + kids'}}; got {type(formula).__name__}."
        )
    if not formula:
        raise InputError("the formula has no outcome; its dict is empty.")
    for outcome, text in formula.items():
        if not (isinstance(outcome, str) and isinstance(text, str)):
            raise InputError(
                "a dict of regressors goes from names of outcomes to texts such as 'age + school'; got "
                f"{shown(repr(text))} for {shown(str(outcome))}."
            )
        if ("sign", "~") in _tokens(text):
            raise InputError(
                f"regressors of {outcome!r}: {shown(text)} has a ~; in a dict the outcome stands "
                "before the colon, and only the regressors behind it."
            )
    return dict(formula)


def _left_side(tokens: list[_Token]) -> tuple[str, ...]:
    """Read names of outcomes that are joined by +."""
    if not tokens:
        raise InputError(f"the formula has no outcome on its left; try one such as {EXAMPLE}.")
    for place, token in enumerate(tokens):
        if place % 2 == 0 and token.kind not in ("name", "odd"):
            _refuse_outcome(token)
        if place % 2 == 1 and token != ("sign", "+"):
            _refuse_outcome(token)
    if len(tokens) % 2 == 0:
        raise InputError("the left side of the formula ends in +; an outcome is missing there.")
    names = tuple(token.text for token in tokens[::2])
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the outcome {name!r} stands twice on the left of the formula.")
    return names


def _refuse_outcome(token: _Token) -> NoReturn:
    call = re.fullmatch(r"\s*(?:np\.)?(log10|log|sqrt)\s*\(\s*`?([^`()]+?)`?\s*\)", token.text)
    if token.kind == "call" and call is not None:
        scale, name = call[1], call[2]
        raise InputError(
            f"{shown(token.text)} stands on the left of the formula, where only names of columns can "
            f"stand. Make a column of the {scale} of {name}, and take the {scale} of its limits too."
        )
    raise InputError(
        f"{shown(token.text)} stands on the left of the formula, where only names of columns can "
        "stand, joined by +. Names that are odd go in backticks."
    )


def _tokens(text: str) -> list[_Token]:
    """Cut a formula into names, numbers, signs, and calls with all that is in their brackets."""
    _check_characters(text)
    tokens: list[_Token] = []
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise InputError(f"{shown(text[place:])} in the formula cannot be read. {ALLOWED}")
        kind, piece, place = str(found.lastgroup), found[0], found.end()
        if kind == "name":
            bracket = _CALLED.match(text, place)
            if bracket is not None:
                place = _end_of_brackets(text, bracket.end() - 1)
                kind, piece = "call", text[found.start() : place]
        elif piece == "{":
            place = _end_of_brackets(text, found.start())
            kind, piece = "braces", text[found.end() : place - 1].strip()
        elif kind == "odd":
            piece = piece[1:-1]
            if not piece.strip():
                raise InputError("backticks in the formula hold no name.")
        if kind != "space":
            tokens.append(_Token(kind, piece))
    return tokens


def _check_characters(text: str) -> None:
    if len(text) > LONGEST:
        raise InputError(
            f"the formula has {len(text)} characters; at most {LONGEST} can be read. "
            "Pass the regressors as a table instead."
        )
    for character in text:
        if not (character.isprintable() or character.isspace()):
            raise InputError(
                f"the formula has the character {character!a}, which cannot be printed. "
                "Take it out, and rename the column if it is part of its name."
            )
    if "\\" in re.sub("`[^`]*`", "", text):
        raise InputError(
            "the formula has a backslash, which can only be part of a name in backticks."
        )


def _end_of_brackets(text: str, start: int) -> int:
    """Return the place behind the bracket that closes the one at ``start``."""
    expected: list[str] = []
    quote = ""
    for place in range(start, len(text)):
        character = text[place]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'`":
            quote = character
        elif character in _BRACKETS:
            expected.append(_BRACKETS[character])
            if len(expected) > DEEPEST:
                _refuse_depth(text[start:])
        elif character in ")]}":
            if character != expected.pop():
                break
            if not expected:
                return place + 1
    raise InputError(f"a bracket or quotation mark in {shown(text[start:])} is not closed.")


def _refuse_depth(text: str) -> NoReturn:
    raise InputError(
        f"{shown(text)} in the formula has brackets in more than {DEEPEST} brackets; "
        "fewer are needed."
    )


class _Reader:
    """Reads the right side of a formula, by the precedence of its signs.

    From the weakest: + and -; * and / and %in%; : ; ** (or ^).
    """

    def __init__(self, tokens: list[_Token], rest: Sequence[Factor]) -> None:
        self.tokens, self.rest = tokens, rest
        self.place = self.depth = 0

    def right_side(self) -> tuple[Term, ...]:
        """Return the terms, the intercept among them unless it is taken out; lower degrees first."""
        if not self.tokens:
            raise InputError(
                "the formula has no regressors; write 1 for an intercept alone, as in 'lead ~ 1'."
            )
        terms = self._sum({(): ()})
        if self.place < len(self.tokens):
            self._refuse_here()
        if not terms:
            raise InputError(
                "the formula leaves no regressors; write 1 for an intercept alone, as in 'lead ~ 1'."
            )
        return tuple(sorted(terms.values(), key=len))

    def _sum(self, terms: Terms) -> Terms:
        """Add terms to those given, or take them out; numbers only where there are no brackets."""
        first = True
        chosen: Terms
        while first or self._at("+", "-"):
            plus = True
            while self._at("+", "-"):
                plus ^= self._next().text == "-"
            first = False
            number = self._number()
            if number is not None:
                # + 0 and - 1 take the intercept out.
                chosen, plus = {(): ()}, plus == (number == "1")
            else:
                chosen = self._product()
            if plus:
                for key, term in chosen.items():
                    terms.setdefault(key, term)
            else:
                for key in chosen:
                    terms.pop(key, None)
            _check_count(len(terms))
        return terms

    def _number(self) -> str | None:
        """Take a number that stands for the intercept; None where there is none."""
        if self._peek().kind != "number":
            return None
        number = self._next().text
        if number not in ("0", "1"):
            raise InputError(
                f"{number} stands in the formula as a term; only 1 (an intercept) and 0 (none) can. "
                f"Other numbers are computed with in I(...), as in I({number} * x)."
            )
        if self.depth:
            raise InputError(
                f"{number} stands in brackets of the formula; the intercept is put in or left out "
                "outside of them, as in '0 + x'."
            )
        return number

    def _product(self) -> Terms:
        terms = self._interaction()
        while self._at("*", "/", "%in%"):
            sign = self._next().text
            other = self._interaction()
            if sign == "*":
                terms = _joined(terms, other, _crossed(terms, other))
            elif sign == "/":
                terms = _joined(terms, _crossed(_all_of(terms), other))
            else:
                terms = _joined(other, _crossed(_all_of(other), terms))
            _check_count(len(terms))
        return terms

    def _interaction(self) -> Terms:
        terms = self._power()
        while self._at(":"):
            self._next()
            terms = _crossed(terms, self._power())
        return terms

    def _power(self) -> Terms:
        terms = self._atom()
        while self._at("**", "^"):
            sign, power = self._next().text, self._next()
            known = power.kind == "number" and power.text.isdecimal()
            if not known or not 1 <= int(power.text[:4]) <= HIGHEST_POWER or len(power.text) > 4:
                raise InputError(
                    f"{sign} in the formula means interactions, up to an order between 1 and "
                    f"{HIGHEST_POWER}, as in (a + b) ** 2; got {shown(power.text)}."
                )
            if len(terms) == 1:
                (term,) = terms.values()
                name = term[0].source if len(term) == 1 else "x"
                raise InputError(
                    f"{sign} in the formula means interactions, of which a single column has none. "
                    f"Write I({name} ** {power.text}) for a power."
                )
            base = terms
            for _ in range(int(power.text) - 1):
                terms = _crossed(terms, base)
        return terms

    def _atom(self) -> Terms:
        if self._at("("):
            return self._brackets()
        token = self._peek()
        if token == ("sign", "."):
            if not self.rest:
                raise InputError(
                    "the data have no columns but the outcomes that . could stand for."
                )
            self._next()
            return {(factor.source,): (factor,) for factor in self.rest}
        if token.kind in ("name", "odd"):
            factor = column_factor(token.text)
        elif token.kind in ("call", "braces"):
            factor = expression(token.text, braces=token.kind == "braces")
        else:
            self._refuse_here()
        self._next()
        return {(factor.source,): (factor,)}

    def _brackets(self) -> Terms:
        self._next()
        self.depth += 1
        if self.depth > DEEPEST:
            _refuse_depth("(" * 9)
        terms = self._sum({})
        if not self._at(")"):
            self._refuse_here()
        self._next()
        self.depth -= 1
        return terms

    def _at(self, *signs: str) -> bool:
        token = self._peek()
        return token.kind == "sign" and token.text in signs

    def _peek(self) -> _Token:
        return self.tokens[self.place] if self.place < len(self.tokens) else _Token("end", "")

    def _next(self) -> _Token:
        token = self._peek()
        self.place += 1
        return token

    def _refuse_here(self) -> NoReturn:
        token = self._peek()
        if token.kind == "end":
            before = self.tokens[-1].text
            missing = "a bracket is not closed" if self.depth else "a term is missing"
            raise InputError(f"the formula ends behind {shown(before)}, where {missing}.")
        if token.kind == "text":
            raise InputError(
                f"{token.text} in the formula is a text, not a column; names that are odd go in "
                "backticks."
            )
        raise InputError(
            f"{shown(token.text)} in the formula stands where a sign such as + or a term is expected. "
            f"{ALLOWED}"
        )


def _joined(first: Terms, *more: Terms) -> Terms:
    """Put terms together; of two that are equal the first stays, as it was written."""
    out = dict(first)
    for terms in more:
        for key, term in terms.items():
            out.setdefault(key, term)
    return out


def _crossed(one: Terms, other: Terms) -> Terms:
    """Multiply each of some terms with each of others."""
    _check_count(len(one) * len(other))
    out: Terms = {}
    for left in one.values():
        for right in other.values():
            term = tuple(dict.fromkeys((*left, *right)))
            out.setdefault(tuple(sorted(factor.source for factor in term)), term)
    return out


def _all_of(terms: Terms) -> Terms:
    """Multiply terms with one another."""
    if not terms:
        raise InputError("brackets in the formula hold no terms; a term is missing there.")
    term = tuple(dict.fromkeys(factor for one in terms.values() for factor in one))
    return {tuple(sorted(factor.source for factor in term)): term}


def _check_count(count: int) -> None:
    if count > MOST_TERMS:
        raise InputError(
            f"the formula multiplies out to more than {MOST_TERMS} terms. Write out the interactions "
            "that are meant."
        )
