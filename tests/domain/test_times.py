"""Times that questions name: which words are meant as times, what they cover, and any text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.times import Month, Span, named_times

NOW = datetime(2026, 11, 30, 12, 30, tzinfo=UTC)


def year(number: int) -> Span:
    return Span(datetime(number, 1, 1, tzinfo=UTC), datetime(number + 1, 1, 1, tzinfo=UTC))


def days(first: int, last: int) -> Span:
    """From so many days ago up to so many days ago, both whole."""
    midnight = datetime(2026, 11, 30, tzinfo=UTC)
    return Span(midnight - timedelta(days=first), midnight - timedelta(days=last - 1))


@pytest.mark.parametrize(
    ("query", "times"),
    [
        ("Where was Ann in May 2023?", [Month(5, 2023)]),
        ("who painted on 8 May, 2023", [Month(5, 2023)]),
        ("who painted on May 8th, 2023", [Month(5, 2023)]),
        ("the 3rd of march", [Month(3)]),
        ("what was green in late-May", [Month(5)]),
        ("who left in December of 2021", [Month(12, 2021)]),
        ("Aug 15th", [Month(8)]),
        ("Dec. 5, 2021", [Month(12, 2021)]),
        ("sept 2020", [Month(9, 2020)]),
        ("NOVEMBER", [Month(11)]),
        ("in june", [Month(6)]),
        ("between June and July 2022", [Month(7, 2022)]),
        ("the log of 2023-05-08, and 2023-05 again", [Month(5, 2023)]),
        ("which boats came in 2022", [year(2022)]),
        ("the storm of summer 2021", [year(2021)]),
        ("what happened today", [days(0, 0)]),
        ("What did she write YESTERDAY?", [days(1, 1)]),
        ("who came this week", [days(7, 0)]),
        ("who came last week", [days(14, 0)]),
        ("who came the past month", [days(60, 0)]),
        ("three days ago", [days(4, 2)]),
        ("a couple  of weeks ago", [days(17, 11)]),
        ("4 years ago", [days(1642, 1278)]),
        ("\u017feptember, and in augu\u017ft 2023", [Month(9), Month(8, 2023)]),
        ("May 20\U00010d49\U00010d49", []),
        ("may I come in", []),
        ("the march of the boats may be long", []),
        ("mark the second decision", []),
        ("2000 boats, $2000, version 2.2019, port 2019-1", []),
        ("since 20222", []),
        ("in 1789", []),
        ("last boat", []),
        ("When did June leave April for Jan?", []),
        ("who came before November, and who after 8 May 2023", []),
        ("since 2021 or before 2023", []),
        ("", []),
    ],
)
def test_times_are_found(query: str, times: list[Month | Span]) -> None:
    assert named_times(query, NOW) == times


def test_what_times_cover() -> None:
    assert Month(5).covers(datetime(2019, 5, 31, 23, 59, tzinfo=UTC))
    assert not Month(5, 2020).covers(datetime(2019, 5, 31, tzinfo=UTC))
    # in UTC, wherever the moment was written down
    assert not Month(5).covers(datetime(2019, 5, 31, 23, tzinfo=timezone(timedelta(hours=-2))))
    assert year(2022).covers(datetime(2022, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))
    assert not year(2022).covers(datetime(2023, 1, 1, tzinfo=UTC))
    assert not year(2022).covers(datetime(2021, 12, 31, 23, 59, tzinfo=UTC))


WORDS = st.sampled_from(["in", "may", "May", "2023", "١٩٩٩", "last", "week", "999", "years ago", "31", "of", "-", "\n"])


@given(st.one_of(st.text(), st.lists(WORDS).map(" ".join)), st.datetimes(datetime(1971, 1, 1), datetime(9000, 1, 1)))
def test_any_text_at_any_time(query: str, now: datetime) -> None:
    for time in named_times(query, now.replace(tzinfo=UTC)):
        if isinstance(time, Span):
            assert time.start < time.end
        else:
            assert 1 <= time.number <= 12
