"""The times that a question names, in English: "last week", "in May", "8 May 2023", "three days ago".

Only what is surely meant as a time counts: what may be a name or another word, such as "may", "march" and "june", needs
a word or a number beside it that makes it a month, and a year a word before it. What is said to be before or after a
time isn't of it. Of a day, its month counts: people speak of a thing before and after its day.
"""

from calendar import month_abbr, month_name
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import regex

_MONTHS = {name.lower(): number for names in (month_name, month_abbr) for number, name in enumerate(names) if name}
_MONTHS["sept"] = 9
_ANY = "|".join(sorted(_MONTHS, key=len, reverse=True))
_PLAIN = "january|february|july|september|october|november|december"
"""The months whose names are nobody's, and mean nothing else."""
_DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)[0-9][0-9]"
_MONTH = regex.compile(
    rf"(?<!\b(?:before|after|since|by|until|till|from|to)\s+(?:{_DAY}\s+(?:of\s+)?)?)\b"
    rf"(?:(?:{_DAY}\s+(?:of\s+)?|(?:in|on|of|during|early|late|mid)[\s-]+)(?P<month>{_ANY})"
    rf"|(?P<month>{_ANY})(?=\.?\s+{_DAY}\b|\.?,?\s+(?:of\s+)?{_YEAR}\b)"
    rf"|(?P<month>{_PLAIN}))\b(?:\.?(?:\s+{_DAY})?,?\s+(?:of\s+)?(?P<year>{_YEAR})\b)?",
    regex.IGNORECASE,
)
_ISO = regex.compile(rf"\b(?P<year>{_YEAR})-(?P<month>0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?\b")
_SEASONS = "spring|summer|autumn|fall|winter"
_BARE_YEAR = regex.compile(
    rf"\b(?:in|of|during|early|late|mid|{_SEASONS})[\s-]+(?P<year>{_YEAR})\b(?![-/]|[.,][0-9])",
    regex.IGNORECASE,
)
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_COUNT = rf"[0-9]{{1,3}}|a\s+couple\s+of|{'|'.join(sorted(_COUNTS, key=len, reverse=True))}"
_RELATIVE = regex.compile(
    r"\b(?:(?P<day>today|yesterday)|(?P<which>this|last|past)\s+(?P<unit>week|month|year)"
    rf"|(?P<count>{_COUNT})\s+(?P<unit>day|week|month|year)s?\s+ago)\b",
    regex.IGNORECASE,
)
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
"""Roughly: what is said to be three months ago is no closer to it than that."""
_LOOKED_AT = 2_000
"""Characters of a question that are looked at."""


@dataclass(frozen=True, slots=True)
class Month:
    """A month; of every year where none is given."""

    number: int
    year: int | None = None

    def covers(self, moment: datetime) -> bool:
        """Whether a moment lies in it, in UTC."""
        moment = moment.astimezone(UTC)
        return moment.month == self.number and self.year in (None, moment.year)


@dataclass(frozen=True, slots=True)
class Span:
    """From one moment up to another."""

    start: datetime
    end: datetime

    def covers(self, moment: datetime) -> bool:
        """Whether a moment lies in it."""
        return self.start <= moment < self.end


def named_times(query: str, now: datetime) -> list[Month | Span]:
    """The times that a question asked now names, each once; none for most questions."""
    text = query[:_LOOKED_AT]
    return list(dict.fromkeys((*_months(text), *_years(text), *_relative(text, now.astimezone(UTC)))))


def _months(text: str) -> Iterator[Month]:
    for found in _MONTH.finditer(text):
        yield Month(_MONTHS[found["month"].casefold()], None if found["year"] is None else int(found["year"]))
    for found in _ISO.finditer(text):
        yield Month(int(found["month"]), int(found["year"]))


def _years(text: str) -> Iterator[Span]:
    # a year that belongs to a month says nothing of the other months
    for found in _BARE_YEAR.finditer(_MONTH.sub(" ", text)):
        year = int(found["year"])
        yield Span(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))


def _relative(text: str, now: datetime) -> Iterator[Span]:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for found in _RELATIVE.finditer(text):
        if found["day"] is not None:
            start = midnight if found["day"].casefold() == "today" else midnight - timedelta(days=1)
            yield Span(start, start + timedelta(days=1))
            continue
        days = _DAYS[found["unit"].casefold()]
        if found["count"] is not None:
            count = _count(found["count"].casefold())
            # a unit earlier and later, as nobody counts exactly
            middle, around = midnight - timedelta(days=days * count), timedelta(days=max(1, days // 2))
            yield Span(middle - around, middle + around + timedelta(days=1))
        elif found["which"].casefold() == "this":
            yield Span(midnight - timedelta(days=days), midnight + timedelta(days=1))
        else:
            yield Span(midnight - timedelta(days=2 * days), midnight + timedelta(days=1))


def _count(word: str) -> int:
    if word.isdigit():
        return int(word)
    # a couple
    return _COUNTS.get(word, 2)
