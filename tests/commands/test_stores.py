"""Neo4j servers and stores that can't be used: one sentence each, whichever command meets them."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from neo4j import GraphDatabase
from tests.commands.program import finished
from tests.commands.test_command_line import refusal

from reverie.errors import StoreError
from reverie.graph.schema import SCHEMA_VERSION
from reverie.graph.store import check_version
from reverie.local import LocalNeo4j

COMMANDS = [["serve", "--port", "0"], ["setup"], ["reembed"]]


def variables_of(neo4j: LocalNeo4j, **more: str) -> dict[str, str]:
    return {"NEO4J_URI": neo4j.uri, "NEO4J_PASSWORD": neo4j.password, "REVERIE_EMBEDDER": "none", **more}


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_server_that_does_not_answer(command: list[str], tmp_path: Path) -> None:
    uri = f"bolt://127.0.0.1:{unused_port()}"

    assert refusal(tmp_path, *command, NEO4J_URI=uri).startswith(f"no Neo4j answers at {uri} (NEO4J_URI): ")


def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    uri = f"neo4j://127.0.0.1:{unused_port()}"

    assert refusal(tmp_path, "setup", NEO4J_URI=uri).startswith(f"no Neo4j answers at {uri} (NEO4J_URI): ")


def test_something_else_that_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.listen()
        uri = f"bolt://127.0.0.1:{other.getsockname()[1]}"

        assert refusal(tmp_path, "setup", NEO4J_URI=uri).startswith(f"no Neo4j answers at {uri} (NEO4J_URI): ")


@pytest.mark.parametrize("uri", ["localhost:7687", "http://localhost:7474", "bolt://127.0.0.1:port"])
def test_an_address_that_is_none(uri: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, "setup", NEO4J_URI=uri).startswith(f"NEO4J_URI: '{uri}' ")


def test_a_wrong_password(spare_neo4j: LocalNeo4j, tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "serve", "--port", "0", **variables_of(replace(spare_neo4j, password="guess")))  # noqa: S106 - a wrong one

    assert sentence == f"Neo4j at {spare_neo4j.uri} refuses the user or password (NEO4J_USERNAME, NEO4J_PASSWORD)"


def test_a_wrong_database(spare_neo4j: LocalNeo4j, tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "setup", "--neo4j-database", "elsewhere", **variables_of(spare_neo4j))

    assert sentence == f"Neo4j at {spare_neo4j.uri} refuses the database 'elsewhere' (NEO4J_DATABASE)"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_store_of_a_newer_version(command: list[str], blank_neo4j: LocalNeo4j, tmp_path: Path) -> None:
    with GraphDatabase.driver(blank_neo4j.uri, auth=(blank_neo4j.username, blank_neo4j.password)) as driver:
        driver.execute_query("CREATE (:Store {name: 'reverie', version: $newer})", newer=SCHEMA_VERSION + 1)

    sentence = refusal(tmp_path, *command, **variables_of(blank_neo4j))

    assert sentence == (
        f"this store was written by a newer Reverie (schema {SCHEMA_VERSION + 1}, this one knows {SCHEMA_VERSION}); "
        "install that version or newer"
    )


@pytest.mark.parametrize("version", ["5.26.3", "4.4.0", "2025.12.1", "2026.01.4", "5.27-aura", "compatible", ""])
def test_a_server_that_is_too_old_is_refused(version: str) -> None:
    with pytest.raises(StoreError, match=rf"Neo4j at bolt://x is version {version}; Reverie needs 2026\.02 or newer"):
        check_version("bolt://x", version)


@pytest.mark.parametrize(
    "version", ["2026.02.0", "2026.02", "2026.08.1", "2026.10.0", "2027.01.0", "2026.08.1-SNAPSHOT"]
)
def test_a_newer_server_is_not(version: str) -> None:
    check_version("bolt://x", version)


def test_setup_sets_a_store_up_and_says_so_again(blank_neo4j: LocalNeo4j, tmp_path: Path) -> None:
    for _ in range(2):
        done = finished(tmp_path, "setup", **variables_of(blank_neo4j))

        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == (
            "The store in Neo4j 2026.08.1 is set up.\nSearch is by word only: REVERIE_EMBEDDER is none.\n"
        )
    with GraphDatabase.driver(blank_neo4j.uri, auth=(blank_neo4j.username, blank_neo4j.password)) as driver:
        (store,) = driver.execute_query("MATCH (s:Store) RETURN s.version").records
        assert store[0] == SCHEMA_VERSION
