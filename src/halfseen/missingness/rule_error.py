"""The error of a rule told as text: the text, and a mark under the character that is wrong."""

from __future__ import annotations

import unicodedata

from halfseen.errors import InputError

# Characters of a long rule that a message shows on each side of the mark.
SHOWN_AROUND = 50


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
