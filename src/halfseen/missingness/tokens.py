"""The words and marks that rules are made of, and what to say about others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

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
