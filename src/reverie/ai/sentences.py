"""Cuts an English text into its writer's own sentences: code, quoted lines and other people's words left out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 500
"""Characters of a sentence that is looked at; what is longer isn't prose."""

_FENCE = re.compile(r"[ \t]*(```|~~~)")
_QUOTED_LINE = re.compile(r"[ \t]*(?:>|\|)")
_BULLET = re.compile(r"[ \t]*(?:[-*•\u2013]|\d{1,3}[.)])[ \t]+")
_END = re.compile(r"[.!?…]{1,10}[\"'”\u2019)\]]{0,3}(?=\s|\Z)")
_ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|vs|e\.g|i\.e|etc|Jr|Sr|approx|a\.m|p\.m))\Z")
_BEFORE = 8
"""Characters in which an abbreviation is looked for."""
_FOREIGN = re.compile(
    r"\b(?:say|said|says|saying|tell|told|tells|write|wrote|writes|written|ask|asked|reply|replied|replies|answer(?:ed)?"
    r"|e?mail(?:ed)?|message|messaged|letter|quote|quoted|transcript|lyrics|poem|story|dialog(?:ue)?|script|translate"
    r"|translation|rewrite|rephrase|paraphrase|summari[sz]e|proofread|correct|improve|following|example|sample|text"
    r"|sentence|paragraph|review|ticket|customer|role|persona|prompt|from)\b",
    re.IGNORECASE,
)
_SIGNS = str.maketrans("‘’ʼ＇“”«»\u00a0\t", "''''\"\"\"\"  ")  # noqa: RUF001 - these signs are meant
_OPENING = re.compile(r"(?<![\w'])'(?=\w)")
_CLOSING = re.compile(r"(?<=[\w.!?,])'(?![\w'])")


def word_set(words: str) -> frozenset[str]:
    """The words of a list that is written as words with blanks between them."""
    return frozenset(words.split())


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: the text's own characters, and the same with plain apostrophes and blanks (of equal length)."""

    text: str
    plain: str
    asks: bool
    """Whether it is a question."""


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text that are its writer's own word, in their order.

    Left out: code in fences, lines quoted with ">", what stands in quotation marks, what follows a line such as
    "She wrote:" or "Translate the following:", and sentences over `LONGEST` characters.
    """
    for block in _blocks(text):
        plain = block.translate(_SIGNS)
        start = 0
        open_quotes = _Quotes(plain)
        for end in _ends(plain):
            whole, begin = plain[start:end], start
            start = end
            body = whole.strip()
            if not body or len(body) > LONGEST:
                continue
            begin += len(whole) - len(whole.lstrip())
            if body[0] in "\"'" or open_quotes.inside(begin):
                continue
            yield Sentence(block[begin : begin + len(body)], body, "?" in body[-6:])


class _Quotes:
    """Whether a place is within quotation marks; asked for places in rising order."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._at = 0
        self._double = False
        self._single = 0

    def inside(self, place: int) -> bool:
        part = self._plain[self._at : place]
        if part.count('"') % 2:
            self._double = not self._double
        # one character more on each side, which tells an apostrophe from a quotation mark
        for opening in _OPENING.finditer(self._plain, self._at, min(place + 1, len(self._plain))):
            self._single += opening.start() < place
        for closing in _CLOSING.finditer(self._plain, self._at, min(place + 1, len(self._plain))):
            self._single -= closing.start() < place and self._single > 0
        self._at = place
        return self._double or self._single > 0


def _blocks(text: str) -> Iterator[str]:
    """Runs of lines that belong together: list items apart, a line that goes on in lower case with the one before."""
    block: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence or mark:
            if not fence and mark:
                fence = mark[1]
            elif mark and mark[1] == fence:
                fence = ""
            yield from _joined(block)
            block = []
            continue
        content = line.strip()
        bullet = _BULLET.match(line)
        quoted = _QUOTED_LINE.match(line)
        goes_on = bool(block) and content[:1].islower() and not bullet
        if not content or quoted or not goes_on:
            yield from _joined(block)
            block = []
        if content and not quoted:
            block.append(line[bullet.end() :] if bullet else line)
            if content.endswith(":") and _FOREIGN.search(content[-LONGEST:]):
                # what follows is somebody else's word
                break
    yield from _joined(block)


def _joined(block: list[str]) -> Iterator[str]:
    if block:
        yield "".join(block)


def _ends(plain: str) -> Iterator[int]:
    for match in _END.finditer(plain):
        if match[0] == "." and _ABBREVIATION.search(plain[max(0, match.start() - _BEFORE) : match.start()]):
            continue
        yield match.end()
    yield len(plain)
