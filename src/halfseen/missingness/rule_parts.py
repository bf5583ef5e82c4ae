"""What rules told as text are made of, and the error that marks a character of one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NoReturn, cast

from halfseen.errors import InputError
from halfseen.missingness.sets import Interval

# Characters of a long rule that a message shows on each side of the mark.
SHOWN_AROUND = 50
WORD = r"[^\W\d](?:\w|\.(?!\.))*"
_TOKENS = re.compile(
    rf"""(?P<space>\s+)
    |(?P<number>(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+\-−]?[0-9]+)?)
    |(?P<word>{WORD}|∞)
    |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    |(?P<wrong>=>|=<|==|!=|<>|\*\*|&&|\|\||\.\.\.)
    |(?P<compare>>=|<=|≥|≤|>|<)
    |(?P<mark>\.\.|[:,|*/+\-−])
    |(?P<stray>.)""",
    re.VERBOSE | re.DOTALL,
)
INFINITE = frozenset({"inf", "infinity", "∞"})
RESERVED = INFINITE | {"nan", "and", "or", "not"}

BOTH_OR_EITHER = "for two limits at once write a range such as 0..5; for one or the other write |"
NO_EQUALITY = "a value equals a number with probability zero; write >=, <= or a range such as 0..5"
NO_BRACKETS = "parentheses are not read; write the products out, as in 2*a - 2*b"
NO_POWERS = "only sums of columns times numbers are read; put the power into a column of its own"
PLAIN_RANGE = "a range is written with two points: 0..5"
# What to do about marks that are read nowhere.
ADVICE = {
    "=>": "write >=",
    "=<": "write <=",
    **dict.fromkeys(("==", "="), NO_EQUALITY),
    **dict.fromkeys(("!=", "<>", "≠"), "every value but one is always seen; write > and < with |"),
    **dict.fromkeys(("&", "&&", "and", "∧"), BOTH_OR_EITHER),
    **dict.fromkeys(("||", "or", "∨"), "write | between the pieces of a set"),
    **dict.fromkeys(("not", "!", "~"), "say where the column is shown, not where it is hidden"),
    **dict.fromkeys(("^", "**"), NO_POWERS),
    **dict.fromkeys(("(", ")"), NO_BRACKETS),
    **dict.fromkeys(("[", "]", "{", "}", "…", "...", "–", "—", "to"), PLAIN_RANGE),
    "nan": "nan is no limit; write always if every value is shown",
    "%": "percent signs are not read; write the number in the units of the column",
    ";": "give several rules as a list",
    "×": "write * for a product",
    "·": "write * for a product",
    "÷": "write / for a quotient",
    "'": 'quote a name with "..." or `...`',
    '"': 'the quote is not closed; a name ends with another " (and "" stands for one inside)',
    "`": "the quote is not closed; a name ends with another ` (and `` stands for one inside)",
}

Kind = Literal["number", "word", "quoted", "wrong", "compare", "mark", "stray", "end"]


@dataclass(frozen=True)
class Token:
    """A piece of a rule, and where it stands."""

    kind: Kind
    text: str
    position: int

    @property
    def stop(self) -> int:
        """Where it ends."""
        return self.position + len(self.text)

    def is_mark(self, *marks: str) -> bool:
        """Whether it is one of these marks."""
        return self.kind == "mark" and self.text in marks

    @property
    def is_name(self) -> bool:
        """Whether it can name a column."""
        return self.kind == "quoted" or (self.kind == "word" and self.text.lower() not in RESERVED)

    @property
    def is_infinite(self) -> bool:
        """Whether it stands for infinity."""
        return self.kind == "word" and self.text.lower() in INFINITE

    @property
    def name(self) -> str:
        """The column that is meant: quotes are taken off."""
        if self.kind == "word":
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(2 * quote, quote)


def tokens(text: str) -> Iterator[Token]:
    """Cut a rule into its tokens; spaces are left out."""
    for match in _TOKENS.finditer(text):
        kind = match.lastgroup
        if kind != "space":
            yield Token(cast(Kind, kind), match.group(), match.start())


def quoted(name: str) -> str:
    """Write a name as rules have it: bare if it can be, in quotes if not.

    Examples
    --------
    >>> from halfseen.missingness.rule_parts import quoted
    >>> print(quoted("lead"), quoted("blood lead"))
    lead "blood lead"
    """
    if re.fullmatch(WORD, name) and name.lower() not in RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def short(text: str, longest: int = 30) -> str:
    """Cut a long text, for a message."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


@dataclass(frozen=True)
class Name:
    """A column that a rule speaks of, and where."""

    text: str
    position: int


@dataclass(frozen=True)
class Inequality:
    """``Σ weights[name] · name + constant >= 0``, or ``> 0`` if it is strict."""

    weights: dict[str, Fraction]
    constant: Fraction
    strict: bool


@dataclass(frozen=True)
class Piece:
    """One of the conditions between ``|``: an interval, or inequalities that hold together.

    ``end`` is where its last part begins, for errors that concern its upper end.
    """

    position: int
    end: int
    interval: Interval | None
    inequalities: tuple[Inequality, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A rule that was read.

    Attributes
    ----------
    text : str
    targets : tuple of Name
        The columns whose being shown it tells.
    others : tuple of Name
        The columns in its condition.
    choice : bool or None
        Whether the largest (True) or the smallest (False) of the targets is shown.
    pieces : tuple of Piece
        The condition; empty where there is a choice.
    """

    text: str
    targets: tuple[Name, ...]
    others: tuple[Name, ...]
    choice: bool | None
    pieces: tuple[Piece, ...]

    def fail(self, position: int, expected: str) -> NoReturn:
        """Raise a ``RuleError`` that marks a character of this rule."""
        raise RuleError(self.text, position, expected)


class RuleError(InputError):
    """A rule told as a string cannot be used; the message marks the character.

    Attributes
    ----------
    text : str
        The whole rule.
    position : int
        Where it goes wrong, counted in characters from 0.
    expected : str
        What would be right there.
    """

    def __init__(self, text: str, position: int, expected: str) -> None:
        self.text, self.position, self.expected = text, position, expected
        line, mark = _marked(text, position)
        super().__init__(
            f"this rule cannot be used:\n{line}\n{mark}\nposition {position}: expected {expected}"
        )

    def __reduce__(self) -> tuple[type[RuleError], tuple[str, int, str]]:
        # As BaseException does it, the message would be taken for the text.
        return type(self), (self.text, self.position, self.expected)


def _marked(text: str, position: int) -> tuple[str, str]:
    """Return the rule on one line, and a line with a mark under the character."""
    start, stop = max(0, position - SHOWN_AROUND), position + SHOWN_AROUND
    # One character each, or the mark would stand elsewhere.
    shown = "".join(c if c.isprintable() else " " for c in text[start:stop])
    before = "…" * (start > 0) + shown[: position - start]
    width = sum(_columns_of(character) for character in before)
    return "…" * (start > 0) + shown + "…" * (stop < len(text)), " " * width + "^"


def _columns_of(character: str) -> int:
    """Columns of a terminal that a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
