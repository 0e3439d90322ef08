"""The compose file: the services there are, their versions, what each is told, and who can reach them."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reverie.__main__ import cli
from reverie.settings import Settings

FILE = Path(__file__).parents[2] / "docker" / "compose.yaml"
TEXT = FILE.read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("server", "worker")
KNOWN = {Settings.variable(name): name for name in Settings.__dataclass_fields__}
SECRETS = ("NEO4J_PASSWORD", "REVERIE_API_KEYS", "OPENAI_API_KEY")


def interpolated(value: str, given: dict[str, str]) -> str:
    """As compose reads `${NAME:-default}` and `${NAME:?message}`."""

    def replaced(found: re.Match[str]) -> str:
        name, operator, rest = found.groups()
        if given.get(name):
            return given[name]
        assert operator == ":-", f"{name} is needed: {rest}"
        return rest

    return re.sub(r"\$\{(\w+)(:[-?])([^}]*)\}", replaced, value)


def environ(service: str, given: dict[str, str]) -> dict[str, str]:
    """What a container of ours is told: the image's own and the service's."""
    told = {name: interpolated(value, given) for name, value in SERVICES[service]["environment"].items()}
    return {"REVERIE_HOST": "0.0.0.0", "REVERIE_PORT": "8000", **told}  # noqa: S104 - inside its container


def test_there_are_a_store_a_bell_a_server_and_a_worker() -> None:
    assert set(SERVICES) == {"neo4j", "redis", "server", "worker"}


def test_neo4j_is_the_version_of_the_private_one() -> None:
    assert SERVICES["neo4j"]["image"] == f"neo4j:{Settings.read({}).neo4j_version}"


@pytest.mark.parametrize("service", ["neo4j", "redis"])
def test_images_have_a_version(service: str) -> None:
    assert re.fullmatch(r"[\w/]+:\d[\w.-]*", SERVICES[service]["image"])


@pytest.mark.parametrize("service", OURS)
def test_ours_are_built_from_the_one_dockerfile(service: str) -> None:
    build = SERVICES[service]["build"]

    assert (FILE.parent / build["context"] / build["dockerfile"]).resolve() == (FILE.parent / "Dockerfile").resolve()
    assert SERVICES[service]["image"] == "reverie"


@pytest.mark.parametrize("service", OURS)
def test_ours_are_told_settings_that_there_are_and_that_work(service: str) -> None:
    given = {"NEO4J_PASSWORD": "a long password", "REVERIE_API_KEYS": '{"k": "acme"}'}
    told = environ(service, given)

    assert set(told) <= set(KNOWN)
    settings = Settings.read(told)
    assert (settings.neo4j_uri, settings.redis_url) == ("bolt://neo4j:7687", "redis://redis:6379/0")
    assert settings.neo4j_password == "a long password"  # noqa: S105 - made up
    assert settings.embedder == Settings.read({}).embedder
    assert settings.extractor == Settings.read({}).extractor
    assert settings.log_level == Settings.read({}).log_level
    assert settings.openai_api_key is None


@pytest.mark.parametrize("name", ["NEO4J_PASSWORD", "REVERIE_API_KEYS"])
def test_what_must_be_set_is_asked_for(name: str) -> None:
    given = {"NEO4J_PASSWORD": "a long password", "REVERIE_API_KEYS": '{"k": "acme"}'}
    del given[name]

    with pytest.raises(AssertionError, match=f"{name} is needed"):
        environ("server", given)


def test_every_variable_that_is_read_is_a_setting_and_no_secret_has_a_default() -> None:
    read = re.findall(r"\$\{(\w+)(:[-?])([^}]*)\}", TEXT)

    assert {name for name, _, _ in read} <= set(KNOWN)
    for name, operator, rest in read:
        if name in SECRETS:
            assert operator == ":?" or rest == ""
    assert not re.search(r"\$\w", TEXT)


def test_neo4j_gets_the_password_that_ours_use() -> None:
    given = {"NEO4J_PASSWORD": "a long password"}

    assert interpolated(SERVICES["neo4j"]["environment"]["NEO4J_AUTH"], given) == "neo4j/a long password"
    assert SERVICES["neo4j"]["environment"]["NEO4J_dbms_usage__report_enabled"] == "false"
    assert "neo4j-data" in COMPOSE["volumes"]
    assert SERVICES["neo4j"]["volumes"] == ["neo4j-data:/data"]


def test_only_the_server_is_reached_and_only_from_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert {name: [interpolated(port, {}) for port in ports] for name, ports in published.items()} == {
        "server": ["127.0.0.1:8000:8000"]
    }


def test_each_waits_for_what_it_needs_to_be_healthy() -> None:
    waits = {
        name: {other: how["condition"] for other, how in service.get("depends_on", {}).items()}
        for name, service in SERVICES.items()
    }
    healthy = "service_healthy"

    assert waits == {
        "neo4j": {},
        "redis": {},
        "server": {"neo4j": healthy, "redis": healthy},
        "worker": {"server": healthy},
    }
    # then: whoever is waited for has a check, the server that of its image
    for name in ("neo4j", "redis"):
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert "healthcheck" not in SERVICES["server"]


def test_the_worker_works() -> None:
    assert SERVICES["worker"]["command"] == ["work"]
    assert "work" in cli.commands
    assert "command" not in SERVICES["server"]
    given = {"NEO4J_PASSWORD": "a long password", "REVERIE_API_KEYS": '{"k": "acme"}'}
    assert Settings.read(environ("server", given)).worker == "off"


def test_all_come_back_by_themselves_and_ours_have_no_rights() -> None:
    assert {service["restart"] for service in SERVICES.values()} == {"unless-stopped"}
    for name in OURS:
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]
