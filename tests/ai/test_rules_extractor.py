"""What the English rules find, and what they must not take for a statement."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.ai.rules_extractor import RulesExtractor
from reverie.domain.beliefs import BeliefType, EvidenceKind
from reverie.domain.events import Event, EventType
from reverie.domain.extraction import Dropped, KnownBelief, Statement, evidence_of, occurs

AT = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
STATE, CORRECT, END = EvidenceKind.STATE, EvidenceKind.CORRECT, EvidenceKind.END


def event(text: str, event_type: EventType = EventType.USER_MESSAGE, id: str = "e1") -> Event:
    return Event(id, event_type, text, text, "thread", "alex", None, AT, AT)


async def read(
    *texts: str, known: dict[str, str] | None = None, event_type: EventType = EventType.USER_MESSAGE
) -> tuple[Statement, ...]:
    told = [event(text, event_type, f"e{place}") for place, text in enumerate(texts)]
    beliefs = [KnownBelief(key, value) for key, value in (known or {}).items()]
    reading = await RulesExtractor().read_episode(told, beliefs)
    dropped = Dropped()
    assert len(evidence_of(reading, told, "episode", dropped)) == len(reading.statements), dropped
    return reading.statements


FOUND = [
    # preferences, by purpose
    ("I prefer tabs for indentation", [("preference.indentation", "tabs", STATE)]),
    ("I prefer tabs for the indentation.", [("preference.indentation", "tabs", STATE)]),
    ("i prefer tabs for\nindentation", [("preference.indentation", "tabs", STATE)]),
    ("I really prefer using tabs for indentation!", [("preference.indentation", "tabs", STATE)]),
    ("I prefer to use vim for editing", [("preference.editing", "vim", STATE)]),
    ("I prefer vim as my editor, thanks", [("preference.editor", "vim", STATE)]),
    ("For indentation, I prefer tabs.", [("preference.indentation", "tabs", STATE)]),
    ("For indentation I prefer tabs.", [("preference.indentation", "tabs", STATE)]),
    ("I prefer tea when working", [("preference.working", "tea", STATE)]),
    ("I prefer **tabs** for indentation", [("preference.indentation", "tabs", STATE)]),
    ("I prefer `ruff` for linting", [("preference.linting", "ruff", STATE)]),
    ("I prefer \u201cdark mode\u201d for reading", [("preference.reading", "dark mode", STATE)]),
    (
        "I prefer C++ for games. I prefer C# for tools.",
        [("preference.games", "C++", STATE), ("preference.tools", "C#", STATE)],
    ),
    (
        "I prefer tea for breakfast and coffee for lunch",
        [("preference.breakfast", "tea", STATE), ("preference.lunch", "coffee", STATE)],
    ),
    ("I prefer tabs for indentation because they are short", [("preference.indentation", "tabs", STATE)]),
    # by rivals, by kind, by what is done
    ("I prefer tabs over spaces.", [("preference.spaces_or_tabs", "tabs", STATE)]),
    ("I prefer spaces to tabs", [("preference.spaces_or_tabs", "spaces", STATE)]),
    ("I prefer tabs rather than spaces", [("preference.spaces_or_tabs", "tabs", STATE)]),
    ("I prefer dark mode", [("preference.mode", "dark mode", STATE)]),
    ("I prefer short, direct answers, as you know.", [("preference.answers", "short, direct answers", STATE)]),
    ("I prefer meetings in the morning", [("preference.meetings", "meetings in the morning", STATE)]),
    ("I prefer to work alone", [("preference.work_alone", "work alone", STATE)]),
    ("My favourite colour is green", [("favorite.colour", "green", STATE)]),
    ("my favorite programming language is Python, by the way", [("favorite.programming_language", "Python", STATE)]),
    # corrections
    ("Actually, I prefer spaces for indentation now", [("preference.indentation", "spaces", CORRECT)]),
    ("No, I prefer spaces for indentation.", [("preference.indentation", "spaces", CORRECT)]),
    ("I now prefer spaces for indentation", [("preference.indentation", "spaces", CORRECT)]),
    ("I prefer spaces for indentation from now on.", [("preference.indentation", "spaces", CORRECT)]),
    ("I changed my mind. I prefer spaces for indentation.", [("preference.indentation", "spaces", CORRECT)]),
    ("Sorry, my name is Alex.", [("name", "Alex", CORRECT)]),
    ("Actually my favorite color is red", [("favorite.color", "red", CORRECT)]),
    # what the user likes and doesn't
    ("I like hiking", [("likes.hiking", "hiking", STATE)]),
    (
        "I like hiking, cycling and chess",
        [("likes.hiking", "hiking", STATE), ("likes.cycling", "cycling", STATE), ("likes.chess", "chess", STATE)],
    ),
    ("I love hiking in the mountains, it clears my head.", [("likes.hiking", "hiking", STATE)]),
    ("I like to travel", [("likes.travel", "travel", STATE)]),
    ("I'm a big fan of jazz", [("likes.jazz", "jazz", STATE)]),
    ("I like rock climbing a lot!", [("likes.rock_climbing", "rock climbing", STATE)]),
    ("I hate mushrooms", [("dislikes.mushrooms", "mushrooms", STATE)]),
    ("I can\u2019t stand loud music", [("dislikes.loud_music", "loud music", STATE)]),
    (
        "I don't like mushrooms or olives",
        [("dislikes.mushrooms", "mushrooms", STATE), ("dislikes.olives", "olives", STATE)],
    ),
    # what holds no longer
    ("I no longer prefer tabs for indentation", [("preference.indentation", "tabs", END)]),
    ("I don't prefer tabs for indentation any more.", [("preference.indentation", "tabs", END)]),
    ("I no longer like hiking", [("likes.hiking", "hiking", END)]),
    ("I don't like hiking anymore", [("likes.hiking", "hiking", END)]),
    ("I no longer hate mushrooms", [("dislikes.mushrooms", "mushrooms", END)]),
    ("We no longer use Redis for caching", [("uses.caching", "Redis", END)]),
    ("I don't use Emacs anymore", [("uses.emacs", "Emacs", END)]),
    ("I've stopped using Emacs", [("uses.emacs", "Emacs", END)]),
    ("I no longer live in Paris", [("residence", "Paris", END)]),
    ("I no longer work at Acme.", [("employer", "Acme", END)]),
    ("I\u2019m no longer allergic to cats", [("allergies.cats", "cats", END)]),
    # who the user is
    ("my name is alex", [("name", "alex", STATE)]),
    ("Hello! My name's Alex Stone, nice to meet you.", [("name", "Alex Stone", STATE)]),
    (
        "I'm called Dr. Jane O'Neil. Call me Jane.",
        [("name", "Dr. Jane O'Neil", STATE), ("preferred_name", "Jane", STATE)],
    ),
    ("You can call me Al", [("preferred_name", "Al", STATE)]),
    ("I work at Acme Corp as an engineer", [("employer", "Acme Corp", STATE)]),
    ("I work for the BBC.", [("employer", "BBC", STATE)]),
    (
        "I work as a backend developer at Acme",
        [("occupation", "backend developer", STATE), ("employer", "Acme", STATE)],
    ),
    ("I live in Berlin, Germany.", [("residence", "Berlin, Germany", STATE)]),
    ("i live in berlin", [("residence", "berlin", STATE)]),
    ("I'm based in the Netherlands", [("residence", "Netherlands", STATE)]),
    ("I'm from Chile", [("hometown", "Chile", STATE)]),
    (
        "I'm allergic to peanuts, shellfish and cats.",
        [
            ("allergies.peanuts", "peanuts", STATE),
            ("allergies.shellfish", "shellfish", STATE),
            ("allergies.cats", "cats", STATE),
        ],
    ),
    ("I'm a vegetarian", [("diet", "vegetarian", STATE)]),
    ("I speak English and German", [("speaks.english", "English", STATE), ("speaks.german", "German", STATE)]),
    ("My birthday is 3 May 1990.", [("birthday", "3 May 1990", STATE)]),
    ("My pronouns are they/them.", [("pronouns", "they/them", STATE)]),
    ("My time zone is CET", [("timezone", "CET", STATE)]),
    # what the user works with, and how
    ("We use Postgres for storage", [("uses.storage", "Postgres", STATE)]),
    (
        "We use Postgres for storage and Redis for caching.",
        [("uses.storage", "Postgres", STATE), ("uses.caching", "Redis", STATE)],
    ),
    ("Our team uses GitLab for CI", [("uses.ci", "GitLab", STATE)]),
    ("For CI we use GitLab", [("uses.ci", "GitLab", STATE)]),
    ("We use Postgres, Redis", [("uses.postgres", "Postgres", STATE), ("uses.redis", "Redis", STATE)]),
    ("I'm using vim", [("uses.vim", "vim", STATE)]),
    ("We switched from MySQL to Postgres", [("uses.postgres", "Postgres", CORRECT), ("uses.mysql", "MySQL", END)]),
    ("We've switched to Postgres for storage", [("uses.storage", "Postgres", CORRECT)]),
    ("I never drink coffee", [("habit.drink_coffee", "never", STATE)]),
    ("I always drink coffee", [("habit.drink_coffee", "always", STATE)]),
    # several things in one sentence, and lists
    ("My name is Alex and I prefer dark mode.", [("name", "Alex", STATE), ("preference.mode", "dark mode", STATE)]),
    (
        "I live in Berlin, I like jazz, and I use vim",
        [("residence", "Berlin", STATE), ("likes.jazz", "jazz", STATE), ("uses.vim", "vim", STATE)],
    ),
    (
        "About me:\n- I like tea\n- I use vim\n1. my name is Bo",
        [("likes.tea", "tea", STATE), ("uses.vim", "vim", STATE), ("name", "Bo", STATE)],
    ),
    ("```\nI like olives\n```\nI like tea", [("likes.tea", "tea", STATE)]),
    ("> I like olives\n\nI like tea", [("likes.tea", "tea", STATE)]),
]

NOT_FOUND = [
    "",
    "   \n\t ",
    "Thanks!",
    # questions
    "do I prefer tabs?",
    "I prefer tabs for indentation?",
    "Did you know that I prefer tabs for indentation?",
    "What's my name",
    # suppositions and wishes
    "If I prefer tabs for indentation, what then",
    "I prefer tabs if the file is in Go",
    "I'd prefer tabs for indentation",
    "I would prefer tabs for indentation",
    "I might prefer tabs",
    "Maybe I like tea",
    "Suppose I live in Berlin.",
    "Imagine my name is Bob and I like tea.",
    "I wish I lived in Berlin",
    "Let's say I use vim, and I like it",
    # negation
    "I don't prefer tabs",
    "I prefer not to say",
    "I never said that I prefer tabs",
    "I never wanted this",
    "My name is not important",
    "I like tea, not.",
    # other people's words
    "She said I prefer tabs for indentation.",
    "He told me that I like tea",
    "My boss thinks I like tea",
    '"I prefer tabs for indentation," she said.',
    'She wrote "Hello. I prefer tabs for indentation."',
    "\u201cHello. I like tea,\u201d he shouted.",
    "Tom's note: 'Well. I like tea.'",
    "I prefer tabs, said Tom.",
    "> I prefer tabs for indentation",
    "Bob wrote:\nI prefer tabs for indentation",
    "Translate the following:\n\nI prefer tea.\n\nI live in Rome.",
    "Bob: I prefer tabs",
    "You like tea",
    "Alex likes tea",
    # code
    "```python\n# I prefer tabs for indentation\nI like tea\n```",
    "~~~\nI like tea",
    "Text\n```\nI like tea\n",
    "`I like tea`",
    # the past
    "I liked hiking",
    "I used to like hiking",
    "I preferred tabs",
    # things without a name outside of the conversation
    "I love it",
    "I like this",
    "I like the new design",
    "I like how you did that",
    "I hate to say it",
    "I prefer it when you ask",
    "I prefer the second one",
    "I use it for work",
    "I like",
    "I prefer.",
    "I like your answer",
    "I love you",
    # other meanings
    "Call me back",
    "Call me tomorrow",
    "call me when you can",
    "I'm called away",
    "I live in fear",
    "I work at night",
    "I work for myself",
    "I work at home",
    "My name is on the list",
    "My birthday is soon",
    "My email is broken",
    "I moved to Postgres",
    "I'm from the support team",
    "I like tea? No idea.",
    "No longer using Redis",
    "I always wanted a dog",
    # secrets
    "My password is hunter2 and I prefer my token ghp_aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0fG1hJ2 for login",
    "I use sk-abcdefgh12345678ijkl for search",
    # another language
    "Ich mag Tee und ich wohne in Berlin",
    "J'aime le th\u00e9",
]


@pytest.mark.parametrize(("text", "expected"), FOUND)
async def test_what_is_stated_is_found(text: str, expected: list[tuple[str, str, EvidenceKind]]) -> None:
    assert [(one.key, one.value, one.kind) for one in await read(text)] == expected


@pytest.mark.parametrize("text", NOT_FOUND)
async def test_what_is_not_stated_is_not_found(text: str) -> None:
    assert await read(text) == ()


async def test_a_statement_tells_what_it_is() -> None:
    (one,) = await read("Hi. I prefer tabs for indentation. Bye.")

    assert (one.event_id, one.quote) == ("e0", "I prefer tabs for indentation.")
    assert (one.confidence, one.belief_type, one.domain) == (0.9, BeliefType.PREFERENCE, "preferences")

    for text in ("I usually prefer tabs for indentation", "Usually I prefer tabs for indentation"):
        (hedged,) = await read(text)
        assert hedged.confidence == 0.6, text

    (fact,) = await read("I live in Berlin")
    assert fact.belief_type is BeliefType.FACT


async def test_a_liking_ends_its_opposite_where_that_is_known() -> None:
    assert [(one.key, one.kind) for one in await read("I like olives", known={"dislikes.olives": "olives"})] == [
        ("likes.olives", STATE),
        ("dislikes.olives", END),
    ]
    assert [(one.key, one.kind) for one in await read("I hate tea", "I like tea")] == [
        ("dislikes.tea", STATE),
        ("likes.tea", STATE),
        ("dislikes.tea", END),
    ]


async def test_known_keys_are_used_again() -> None:
    (ended,) = await read("I no longer prefer tabs", known={"preference.indentation": "Tabs", "other": "tabs"})
    assert (ended.key, ended.value) == ("preference.indentation", "tabs")

    _, ended = await read("We use Redis for caching.", "We no longer use Redis.")
    assert (ended.key, ended.kind) == ("uses.caching", END)

    (moved,) = await read("We switched from MySQL to Postgres", known={"uses.storage": "MySQL"})
    assert (moved.key, moved.value, moved.kind) == ("uses.storage", "Postgres", CORRECT)

    (moved,) = await read("I moved to Rome", known={"residence": "Paris"})
    assert (moved.key, moved.value, moved.kind) == ("residence", "Rome", CORRECT)


@pytest.mark.parametrize("event_type", [kind for kind in EventType if kind is not EventType.USER_MESSAGE])
async def test_of_others_only_what_is_said_of_the_user_counts(event_type: EventType) -> None:
    said = "The user prefers tabs for indentation. The user's name is Alex. I like tea. The user is happy."

    found = await read(said, event_type=event_type)

    assert [(one.key, one.value, one.quote) for one in found] == [
        ("preference.indentation", "tabs", "The user prefers tabs for indentation."),
        ("name", "Alex", "The user's name is Alex."),
    ]


async def test_nothing_is_known_of_one_user_from_another() -> None:
    first, second = event("I hate tea"), event("I like tea", id="e2")

    reading = await RulesExtractor().read_episode([first, replace(second, user_id="bo")], [])

    assert [one.key for one in reading.statements] == ["dislikes.tea", "likes.tea"]


PARTS = st.sampled_from(
    [text for text, _ in FOUND] + NOT_FOUND
    + ["I", "prefer", "for", "no longer", "Actually,", "'", '"', ",", ". ", "\n", "> "]
    + ["\u0338", "\u0301", "\ufb01", "\u2019", "\u00a0", "\ud800", "_", "-", " and ", "my name is "]
)  # fmt: skip


def read_raw(text: str) -> tuple[Statement, ...]:
    return asyncio.run(RulesExtractor().read_episode([event(text)], [])).statements


@settings(deadline=None)  # the machine may be busy
@given(st.one_of(st.text(), st.lists(PARTS, max_size=6).map("".join), st.lists(PARTS, max_size=6).map(" ".join)))
def test_any_text_is_read_and_every_quote_occurs(text: str) -> None:
    for one in read_raw(text):
        assert occurs(one.quote, text)


@pytest.mark.parametrize(
    "part",
    ["a", " ", "1", "'a ", '"', "\n", "A b. ", "I ", "I really ", "I prefer a, ", "and I ", "A.", "no, ", "- a\n",
     "```\n", "I like tea. ", "for a ", "I use x for y and "],
)  # fmt: skip
def test_a_long_text_takes_no_long_time(part: str) -> None:
    text = (part * 100_000)[:100_000]
    started = time.process_time()

    read_raw(text)

    assert time.process_time() - started < 6.0
