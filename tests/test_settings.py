"""Settings: read from the environment and from flags, each wrong one named in one sentence."""

from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import ConfigurationError
from reverie.settings import Settings


def refusal(**environ: str) -> str:
    """What stands against these variables, which must be one sentence on one line."""
    with pytest.raises(ConfigurationError) as refused:
        Settings.read(environ)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_without_variables_the_defaults_hold() -> None:
    settings = Settings.read({})

    assert (settings.host, settings.port, settings.embedder) == ("127.0.0.1", 8000, "auto")
    assert settings.neo4j_uri is None
    assert settings.keys() == {}
    assert settings.data_dir.is_absolute()


VALUES = {
    "host": ("127.0.0.2", "127.0.0.2"),
    "port": ("0", 0),
    "data_dir": ("~/memories", Path.home() / "memories"),
    "cache_dir": ("cache", Path("cache")),
    "api_keys": ('{"k": "acme"}', '{"k": "acme"}'),
    "neo4j_uri": ("neo4j+s://graph.example.org", "neo4j+s://graph.example.org"),
    "neo4j_username": ("reader", "reader"),
    "neo4j_password": ("p w", "p w"),
    "neo4j_database": ("memories", "memories"),
    "neo4j_version": ("2026.02.0", "2026.02.0"),
    "neo4j_heap": ("2g", "2g"),
    "neo4j_page_cache": ("1g", "1g"),
    "neo4j_timeout": ("2.5", 2.5),
    "java": ("/opt/java/bin/java", "/opt/java/bin/java"),
    "redis_url": ("rediss://:p@redis.example.org:6380/1", "rediss://:p@redis.example.org:6380/1"),
    "embedder": ("none", "none"),
    "embedding_model": ("text-embedding-3-large", "text-embedding-3-large"),
    "embedding_dimensions": ("256", 256),
    "embedding_timeout": ("7", 7.0),
    "openai_api_key": ("sk-1", "sk-1"),
    "openai_base_url": ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
    "worker": ("off", "off"),
    "extractor": ("rules", "rules"),
    "extraction_model": ("gpt-4.1", "gpt-4.1"),
    "extraction_timeout": ("9", 9.0),
    "idle_gap": ("5", 5.0),
    "half_life_fact": ("100", 100.0),
    "half_life_preference": ("50", 50.0),
    "half_life_belief": ("25", 25.0),
    "dream_attempts": ("7", 7),
    "lease": ("15", 15.0),
    "document_bytes": ("1000000", 1_000_000),
    "chunk_size": ("800", 800),
    "chunk_overlap": ("0", 0),
    "parse_timeout": ("5", 5.0),
    "parse_memory": ("512", 512),
    "link_timeout": ("3", 3.0),
    "link_redirects": ("1", 1),
    "communities_interval": ("2", 2.0),
    "log_level": ("debug", "debug"),
}


@pytest.mark.parametrize("member", fields(Settings), ids=lambda member: member.name)
def test_each_setting_has_a_variable_and_a_flag_that_goes_before_it(member: "Field[Any]") -> None:
    text, value = VALUES[member.name]
    variable = Settings.variable(member.name)

    assert getattr(Settings.read({variable: text}), member.name) == value
    assert getattr(Settings.read({variable: "nonsense"}, **{member.name: text}), member.name) == value
    # and: an empty variable counts as not set
    assert getattr(Settings.read({variable: ""}), member.name) == getattr(Settings.read({}), member.name)
    assert variable.startswith(("REVERIE_", "NEO4J_", "REDIS_", "OPENAI_"))
    assert member.metadata["help"].endswith(".")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("REVERIE_PORT", "eighty", "'eighty' is not a whole number"),
        ("REVERIE_PORT", "80.5", "'80.5' is not a whole number"),
        ("REVERIE_PORT", "-1", "-1 is no port"),
        ("REVERIE_PORT", "65536", "65536 is no port"),
        ("REVERIE_NEO4J_TIMEOUT", "soon", "'soon' is not a number"),
        ("REVERIE_NEO4J_TIMEOUT", "0", "seconds above 0"),
        ("REVERIE_NEO4J_TIMEOUT", "nan", "seconds above 0"),
        ("REVERIE_NEO4J_TIMEOUT", "inf", "seconds above 0"),
        ("REVERIE_EMBEDDING_TIMEOUT", "-2", "seconds above 0"),
        ("REVERIE_LEASE", "1e14", "seconds above 0, 86,400 at most"),
        ("REVERIE_IDLE_GAP", "1e300", "minutes above 0, 525,600 at most"),
        ("REVERIE_HALF_LIFE_FACT", "1e9", "days above 0, 365,000 at most"),
        ("REVERIE_DREAM_ATTEMPTS", "99999999999999999999", "from 1 to 1,000"),
        ("NEO4J_URI", "bolt://127.0.0.1:99999", "must be an address such as bolt://"),
        ("REVERIE_EMBEDDING_DIMENSIONS", "0", "from 1 to 4096"),
        ("REVERIE_EMBEDDING_DIMENSIONS", "4097", "from 1 to 4096"),
        ("REVERIE_DOCUMENT_BYTES", "0", "from 1,000 to 200,000,000"),
        ("REVERIE_CHUNK_SIZE", "99", "from 100 to 10,000"),
        ("REVERIE_CHUNK_OVERLAP", "700", "at most half of REVERIE_CHUNK_SIZE"),
        ("REVERIE_CHUNK_OVERLAP", "-1", "from 0 to 5,000"),
        ("REVERIE_PARSE_MEMORY", "16", "from 256 to 64,000"),
        ("REVERIE_PARSE_TIMEOUT", "0", "seconds above 0"),
        ("REVERIE_LINK_TIMEOUT", "inf", "seconds above 0"),
        ("REVERIE_LINK_REDIRECTS", "21", "from 0 to 20"),
        ("REVERIE_EMBEDDER", "magic", "'magic' is none of auto, openai, local, none"),
        ("REVERIE_EMBEDDER", "openai", "OPENAI_API_KEY is not set"),
        ("REVERIE_LOG_LEVEL", "loud", "'loud' is none of debug, info, warning, error"),
        ("REVERIE_DATA_DIR", "~nobody-of-this-name/x", "home folder of nobody"),
        ("NEO4J_URI", "localhost:7687", "must be an address such as bolt://"),
        ("NEO4J_URI", "http://localhost:7474", "must be an address such as bolt://"),
        ("REDIS_URL", "localhost:6379", "must be an address such as redis://"),
        ("REDIS_URL", "http://localhost:6379", "must be an address such as redis://"),
        ("REDIS_URL", "redis://", "must be an address such as redis://"),
    ],
)
def test_a_wrong_value_is_refused_by_its_variable(variable: str, value: str, words: str) -> None:
    message = refusal(**{variable: value})

    assert message.startswith(variable)
    assert words in message


def test_a_wrong_flag_is_refused_by_the_same_name() -> None:
    with pytest.raises(ConfigurationError, match="REVERIE_PORT: 'x' is not a whole number"):
        Settings.read({"REVERIE_PORT": "8000"}, port="x")


def test_a_flag_that_is_given_and_empty_is_no_default() -> None:
    with pytest.raises(ConfigurationError, match="REVERIE_DATA_DIR: the flag is given, and empty"):
        Settings.read({}, data_dir="")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST", "::1"])
def test_without_keys_loopback_is_served(host: str) -> None:
    assert Settings.read({"REVERIE_HOST": host}).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "reverie.example.org", "localhost.example.org"])  # noqa: S104 - what must be refused
def test_without_keys_nothing_else_is(host: str) -> None:
    message = refusal(REVERIE_HOST=host)

    assert message.startswith(f"REVERIE_HOST: {host} can be reached from other machines")
    assert "REVERIE_API_KEYS" in message
    # and: with keys it is
    assert Settings.read({"REVERIE_HOST": host, "REVERIE_API_KEYS": '{"k": "t"}'}).host == host


def test_keys_come_from_the_variable_or_from_a_file(tmp_path: Path) -> None:
    text = '{"k-1": "acme", "k-2": "acme", "k-3": "Ümlaut & Co"}'
    file = tmp_path / "keys.json"
    file.write_text(text, encoding="utf-8")

    expected = {"k-1": "acme", "k-2": "acme", "k-3": "Ümlaut & Co"}
    assert Settings.read({"REVERIE_API_KEYS": text}).keys() == expected
    assert Settings.read({"REVERIE_API_KEYS": f"  {text}\n"}).keys() == expected
    assert Settings.read({"REVERIE_API_KEYS": str(file)}).keys() == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ('{"k": "t"', "no JSON"),
        ('{"k": NaN}', "no JSON"),
        ('{"k": "t", "k": "u"}', "has a key twice"),
        ("{}", "at least one key"),
        ('{"": "t"}', "a key must be made of"),
        ('{"two words": "t"}', "a key must be made of"),
        ('{"schlüssel": "t"}', "a key must be made of"),
        ('{"k": ""}', "a tenant must be"),
        ('{"k": "   "}', "a tenant must be"),
        ('{"k": "a\\u0000b"}', "a tenant must be"),
        ('{"k": null}', "a tenant must be"),
        ('{"k": ["t"]}', "a tenant must be"),
        ('{"k": "%s"}' % ("t" * 201), "a tenant must be"),
        ("no/such/file.json", "No such file or directory"),
        (".", "Is a directory"),
        ("~nobody-of-this-name/keys.json", "neither a JSON object nor the path of a file"),
    ],
)
def test_malformed_keys_are_refused(text: str, words: str) -> None:
    message = refusal(REVERIE_API_KEYS=text)

    assert message.startswith("REVERIE_API_KEYS: ")
    assert words in message


@pytest.mark.parametrize("content", ["[1]", "5", "null", "", '"k"', '{"k": 1}'])
def test_a_file_of_something_else_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(content)

    assert refusal(REVERIE_API_KEYS=str(file)).startswith("REVERIE_API_KEYS: ")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(b"\xff\xfe{")

    assert "neither a JSON object nor the path of a file" in refusal(REVERIE_API_KEYS=str(file))


def test_no_secret_is_shown() -> None:
    # given: a key given as it is, where an object or a file was wanted
    assert "sk-very-secret" not in refusal(REVERIE_API_KEYS="sk-very-secret")

    assert "r-secret" not in refusal(REDIS_URL="redis//:r-secret@redis.example.org")

    secrets = {"REVERIE_API_KEYS": '{"k-secret": "t"}', "NEO4J_PASSWORD": "p-secret", "OPENAI_API_KEY": "o-secret"}
    secrets["REDIS_URL"] = "redis://:r-secret@redis.example.org"
    assert "secret" not in repr(Settings.read(secrets))


@hypothesis.settings(deadline=None)
@given(st.dictionaries(st.sampled_from([Settings.variable(member.name) for member in fields(Settings)]), st.text()))
def test_any_environment_is_read_or_refused_with_the_name_of_a_variable(environ: dict[str, str]) -> None:
    refused = ""
    try:
        Settings.read(environ)
    except ConfigurationError as error:
        refused = str(error)

    assert not refused or any(name in refused for name in environ)
