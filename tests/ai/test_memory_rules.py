"""What the rules find in a memory: little, and nothing that isn't written there."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.ai.memory_rules import read_memory
from reverie.domain.entities import EntityType
from reverie.domain.names import normal_form

PERSON, TOOL, PROJECT, CONCEPT, ORGANIZATION, PLACE = (
    EntityType.PERSON,
    EntityType.TOOL,
    EntityType.PROJECT,
    EntityType.CONCEPT,
    EntityType.ORGANIZATION,
    EntityType.PLACE,
)
KNOWN = [("Neo4j", TOOL), ("Bob", PERSON), ("C++", TOOL), ("New York", PLACE), ("", TOOL)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we moved to neo4j, finally", [("Neo4j", TOOL)]),
        ("neo4js and Bobby and AC++ don't count", []),
        ("C++ in new  york by BOB", [("Bob", PERSON), ("C++", TOOL), ("New York", PLACE)]),
        ("Yesterday Alice Martin said hello.", [("Alice Martin", PERSON)]),
        ("We met Ludwig van Beethoven.", [("Ludwig van Beethoven", PERSON)]),
        ("The Acme Corporation left Oslo", [("Acme Corporation", ORGANIZATION)]),
        ("At the University of Oslo", [("University of Oslo", ORGANIZATION)]),
        ("Near Lake Geneva on Baker Street", [("Lake Geneva", PLACE), ("Baker Street", PLACE)]),
        ("Project Apollo landed", [("Project Apollo", PROJECT)]),
        ("Event Sourcing is hard", [("Event Sourcing", CONCEPT)]),
        ("A Heading With Far Too Many Capitals", []),
        ("Alone stands one capital", []),
        ("call getUserById in EventStore", [("getUserById", CONCEPT), ("EventStore", CONCEPT)]),
        ("SLOT_WINDOW", [("SLOT_WINDOW", CONCEPT)]),
        ("import reverie.graph.store, user_names", [("reverie.graph.store", CONCEPT), ("user_names", CONCEPT)]),
        ("the billing-service and react-router-v6", [("billing-service", TOOL), ("react-router-v6", TOOL)]),
        ("`append()` and `run_all()` and `my-thing` and `plain`", [("run_all", CONCEPT), ("my-thing", TOOL)]),
        ("a well-known state-of-the-art thing, e.g. long-term", []),
        ("see https://example.com/a-service/getUser or a.b@example.com, www.example.com", []),
        ("the token ghp_aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0fG1hJ2 leaked", []),
        ("Carol works at Globex.", [("Carol", PERSON), ("Globex", ORGANIZATION)]),
        ("Carol lives in Lima with her dog.", [("Carol", PERSON), ("Lima", PLACE)]),
    ],
)  # fmt: skip
def test_entities(text: str, expected: list[tuple[str, EntityType]]) -> None:
    assert sorted(read_memory(text, KNOWN).entities) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The billing service depends on Redis.", [("billing service", "depends on", "Redis")]),
        ("Reverie uses Neo4j for storage.", [("Reverie", "uses", "Neo4j")]),
        ("Neo4j is a graph database, mostly.", [("Neo4j", "is a", "graph database")]),
        ("Rust is an old idea", [("Rust", "is an", "old idea")]),
        ("Carol now works at Globex Labs since May.", [("Carol", "works at", "Globex Labs")]),
        ("The server is written in Python and C.", [("server", "is written in", "Python")]),
        ("`api` runs on the new cluster", [("api", "runs on", "new cluster")]),
        ("One. Two requires three. Four", [("Two", "requires", "three")]),
        # not outright
        ("Does the API depend on Redis?", []),
        ("The API depends on Redis?", []),
        ("If the API depends on Redis, we wait.", []),
        ("Perhaps the API depends on Redis.", []),
        ("The API doesn't depend on Redis. It isn't a thing.", []),
        ("It depends on the weather. This is a test. There is a bug. She works at Acme.", []),
        ("Bob said the API depends on Redis.", []),
        ('"The API depends on Redis."', []),
        ("> The API depends on Redis.", []),
        ("The server requires password=hunter2", []),
    ],
)
def test_facts(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert [(one.subject, one.predicate, one.object) for one in read_memory(text, []).facts] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("I prefer tabs", ()),
        ("The migration is late. Without the migration, nothing.", ("migration",)),
        ("We planned the deployment of the index with the users", ("deployment", "index", "users")),
        ("Graph search: graph search and graph theory, really really", ("graph", "search")),
        ("Quickly and really slowly, it would be better", ()),
        ("Neo4j and Neo4j again", ()),
        ("the password=hunter2 and the password=hunter2", ("password",)),
        ("The move from Oslo to Rome, with Carol", ("move",)),
    ],
)
def test_topics(text: str, expected: tuple[str, ...]) -> None:
    assert read_memory(text, KNOWN).topics == expected


PARTS = st.sampled_from(
    ["The API", " depends on ", "Redis", ". ", "Alice Martin", " works at ", "Acme Inc", "`a-b`", "getUser", "\n> ",
     "```\n", "\ud800", "\0", "'", '"', "is a ", "\u0301", "my password is hunter2", "topic ", "neo4j"]
)  # fmt: skip


@settings(deadline=None)  # the machine may be busy
@given(st.one_of(st.text(), st.lists(PARTS, max_size=10).map("".join)))
def test_any_text_can_be_read_and_only_what_it_names_is_found(text: str) -> None:
    reading = read_memory(text, KNOWN)

    form = normal_form(text)
    for name, _ in reading.entities:
        assert normal_form(name) in form
    for topic in reading.topics:
        assert topic in form
    assert "hunter2" not in str(reading)


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "A ",
        "Aa ",
        "aB",
        "a-b",
        "a_b",
        "a.b",
        "a@",
        "`a",
        "The x depends on y. ",
        "x depends on y ",
        "A b. ",
        "x. ",
    ],
)
def test_a_long_text_takes_no_long_time(part: str) -> None:
    text = (part * 100_000)[:100_000]
    started = time.process_time()

    read_memory(text, KNOWN)

    assert time.process_time() - started < 6.0
