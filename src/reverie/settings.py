"""Every setting, read from the environment once."""

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
from platformdirs import user_cache_path, user_data_path

from reverie.errors import ConfigurationError

EMBEDDERS = ("auto", "openai", "local", "none")
EXTRACTORS = ("auto", "openai", "rules")
LOG_LEVELS = ("debug", "info", "warning", "error")
MOST_DIMENSIONS = 4096
"""What a vector index of Neo4j holds."""
_LONGEST_TENANT = 200
_LONGEST = {"seconds": 86_400, "minutes": 525_600, "days": 365_000}
"""What a time may be at most, by its unit: a day, a year, a thousand years."""
_MOST_ATTEMPTS = 1_000
_TIMES = {
    "neo4j_timeout": "seconds",
    "embedding_timeout": "seconds",
    "extraction_timeout": "seconds",
    "idle_gap": "minutes",
    "lease": "seconds",
    "link_timeout": "seconds",
    "parse_timeout": "seconds",
    "communities_interval": "minutes",
    "half_life_fact": "days",
    "half_life_preference": "days",
    "half_life_belief": "days",
}
_SPANS = {
    "document_bytes": (1_000, 200_000_000),
    "chunk_size": (100, 10_000),
    "chunk_overlap": (0, 5_000),
    "parse_memory": (256, 64_000),
    "link_redirects": (0, 20),
}
"""The least and the most that a whole number may be."""
_NEO4J_URI = re.compile(r"(bolt|neo4j)(\+s|\+ssc)?://\S+")
_REDIS_URL = re.compile(r"(rediss?|unix)://\S+")
_KEY = re.compile(r"[!-~]+")


def _setting(variable: str, help_: str, default: Any = None, *, secret: bool = False, factory: Any = None) -> Any:
    metadata = {"variable": variable, "help": help_, "secret": secret}
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one process; each names its environment variable and says what it is for."""

    host: str = _setting("REVERIE_HOST", "Address to listen on.", "127.0.0.1")
    port: int = _setting("REVERIE_PORT", "Port to listen on.", 8000)
    data_dir: Path = _setting(
        "REVERIE_DATA_DIR",
        "Folder of the private Neo4j; the platform's user data folder by default.",
        factory=lambda: user_data_path("reverie", appauthor=False),
    )
    cache_dir: Path = _setting(
        "REVERIE_CACHE_DIR",
        "Folder for what is fetched once and shared; the platform's user cache folder by default.",
        factory=lambda: user_cache_path("reverie", appauthor=False),
    )
    api_keys: str | None = _setting(
        "REVERIE_API_KEYS",
        "JSON object of API key to tenant, or the path of a file holding one; none: one tenant, loopback only.",
        secret=True,
    )
    neo4j_uri: str | None = _setting("NEO4J_URI", "Address of a Neo4j; none: a private one is started.")
    neo4j_username: str = _setting("NEO4J_USERNAME", "User of that Neo4j.", "neo4j")
    neo4j_password: str | None = _setting("NEO4J_PASSWORD", "Password of that Neo4j.", secret=True)
    neo4j_database: str | None = _setting("NEO4J_DATABASE", "Database of that Neo4j; its default one otherwise.")
    neo4j_version: str = _setting("REVERIE_NEO4J_VERSION", "Version of the private Neo4j.", "2026.08.1")
    neo4j_heap: str = _setting("REVERIE_NEO4J_HEAP", "Heap of the private Neo4j.", "1g")
    neo4j_page_cache: str = _setting("REVERIE_NEO4J_PAGE_CACHE", "Page cache of the private Neo4j.", "512m")
    neo4j_timeout: float = _setting("REVERIE_NEO4J_TIMEOUT", "Seconds a statement may take.", 30.0)
    java: str | None = _setting("REVERIE_JAVA", "Java to run the private Neo4j with, 21 or newer.")
    redis_url: str | None = _setting(
        "REDIS_URL", "Address of a Redis that servers and workers ring each other over; none: one process.", secret=True
    )
    embedder: str = _setting(
        "REVERIE_EMBEDDER",
        "What makes vectors: auto, openai, local or none; auto chooses once, for an empty store.",
        "auto",
    )
    embedding_model: str = _setting("REVERIE_EMBEDDING_MODEL", "OpenAI's embedding model.", "text-embedding-3-small")
    embedding_dimensions: int = _setting("REVERIE_EMBEDDING_DIMENSIONS", "Dimensions of that model's vectors.", 1536)
    embedding_timeout: float = _setting(
        "REVERIE_EMBEDDING_TIMEOUT",
        "Seconds that a write waits for its vectors and a search for its query's; the rest follows in the background.",
        2.0,
    )
    openai_api_key: str | None = _setting("OPENAI_API_KEY", "Key for OpenAI or a compatible server.", secret=True)
    openai_base_url: str | None = _setting("OPENAI_BASE_URL", "Address of a compatible server.")
    worker: str = _setting("REVERIE_WORKER", "Whether `serve` has a worker of its own: on or off.", "on")
    extractor: str = _setting(
        "REVERIE_EXTRACTOR",
        "What reads episodes and memories: auto, openai or rules; auto is openai where there is a key. Rules send "
        "nothing anywhere.",
        "auto",
    )
    extraction_model: str = _setting("REVERIE_EXTRACTION_MODEL", "OpenAI's model for reading.", "gpt-4.1-mini")
    extraction_timeout: float = _setting(
        "REVERIE_EXTRACTION_TIMEOUT", "Seconds that one answer of that model may take.", 60.0
    )
    idle_gap: float = _setting(
        "REVERIE_IDLE_GAP", "Minutes without an event after which an episode of a thread is over.", 30.0
    )
    half_life_fact: float = _setting("REVERIE_HALF_LIFE_FACT", "Days in which the confidence of a FACT halves.", 365.0)
    half_life_preference: float = _setting("REVERIE_HALF_LIFE_PREFERENCE", "The same of a PREFERENCE.", 180.0)
    half_life_belief: float = _setting("REVERIE_HALF_LIFE_BELIEF", "The same of a BELIEF; a TENET never fades.", 60.0)
    dream_attempts: int = _setting(
        "REVERIE_DREAM_ATTEMPTS", "How often reading an episode may fail before it is FAILED.", 3
    )
    lease: float = _setting(
        "REVERIE_LEASE", "Seconds after which the work of a worker that shows no life is another's.", 60.0
    )
    document_bytes: int = _setting(
        "REVERIE_DOCUMENT_BYTES", "Bytes that an uploaded or linked document may have.", 20_000_000
    )
    chunk_size: int = _setting("REVERIE_CHUNK_SIZE", "Characters that a chunk of a document has at most.", 1_200)
    chunk_overlap: int = _setting(
        "REVERIE_CHUNK_OVERLAP", "Characters that a chunk may repeat of the one before it.", 150
    )
    parse_timeout: float = _setting("REVERIE_PARSE_TIMEOUT", "Seconds that reading one document may take.", 60.0)
    parse_memory: int = _setting("REVERIE_PARSE_MEMORY", "Megabytes that reading one document may take.", 1_024)
    link_timeout: float = _setting("REVERIE_LINK_TIMEOUT", "Seconds that fetching a link may take.", 20.0)
    link_redirects: int = _setting("REVERIE_LINK_REDIRECTS", "Redirects that are followed from a link.", 5)
    communities_interval: float = _setting(
        "REVERIE_COMMUNITIES_INTERVAL",
        "Minutes between a worker's looks at whether topics changed enough for communities to be found anew.",
        10.0,
    )
    log_level: str = _setting("REVERIE_LOG_LEVEL", "Level of the log: debug, info, warning or error.", "warning")

    @classmethod
    def read(cls, environ: Mapping[str, str], **given: Any) -> "Settings":
        """Reads the environment; what is given (and not None) goes before it.

        Raises ConfigurationError, which names the variable.
        """
        values: dict[str, Any] = {}
        for member in fields(cls):
            raw = given.get(member.name)
            if isinstance(raw, str) and not raw.strip():
                raise ConfigurationError(f"{member.metadata['variable']}: the flag is given, and empty")
            if raw is None:
                raw = environ.get(member.metadata["variable"])
            if raw is not None and raw != "":
                values[member.name] = _parsed(member.name, member.metadata["variable"], str(member.type), raw)
        settings = cls(**values)
        settings.check()
        return settings

    def check(self) -> None:
        """Raises ConfigurationError for values that can't be, or can't work together."""
        self._check_one_of("embedder", EMBEDDERS)
        self._check_one_of("worker", ("on", "off"))
        self._check_one_of("extractor", EXTRACTORS)
        self._check_one_of("log_level", LOG_LEVELS)
        if not 0 <= self.port <= 65_535:  # noqa: PLR2004 - the largest port
            raise ConfigurationError(f"REVERIE_PORT: {self.port} is no port")
        if not 1 <= self.embedding_dimensions <= MOST_DIMENSIONS:
            raise ConfigurationError(f"REVERIE_EMBEDDING_DIMENSIONS: must be from 1 to {MOST_DIMENSIONS}")
        for name, unit in _TIMES.items():
            if not 0 < getattr(self, name) <= _LONGEST[unit]:
                raise ConfigurationError(
                    f"{self.variable(name)}: must be a number of {unit} above 0, {_LONGEST[unit]:,} at most"
                )
        self._check_documents()
        if not 1 <= self.dream_attempts <= _MOST_ATTEMPTS:
            raise ConfigurationError(f"REVERIE_DREAM_ATTEMPTS: must be from 1 to {_MOST_ATTEMPTS:,}")
        if self.neo4j_uri is not None and not (_NEO4J_URI.fullmatch(self.neo4j_uri) and _has_port(self.neo4j_uri)):
            raise ConfigurationError(
                f"NEO4J_URI: {self.neo4j_uri!r} must be an address such as bolt://localhost:7687, "
                "neo4j://localhost:7687 or, with TLS, neo4j+s://example.org"
            )
        if self.redis_url is not None and not _REDIS_URL.fullmatch(self.redis_url):
            raise ConfigurationError(
                "REDIS_URL: must be an address such as redis://localhost:6379, with TLS rediss://example.org, "
                "or unix:///run/redis.sock"
            )
        if self.embedder == "openai" and not self.openai_api_key:
            raise ConfigurationError("REVERIE_EMBEDDER is openai, but OPENAI_API_KEY is not set")
        if self.extractor == "openai" and not self.openai_api_key:
            raise ConfigurationError("REVERIE_EXTRACTOR is openai, but OPENAI_API_KEY is not set")
        if not self.keys() and not _is_loopback(self.host):
            raise ConfigurationError(
                f"REVERIE_HOST: {self.host} can be reached from other machines, which needs REVERIE_API_KEYS"
            )

    def _check_documents(self) -> None:
        for name, (least, most) in _SPANS.items():
            if not least <= getattr(self, name) <= most:
                raise ConfigurationError(f"{self.variable(name)}: must be from {least:,} to {most:,}")
        if self.chunk_overlap > self.chunk_size // 2:
            raise ConfigurationError("REVERIE_CHUNK_OVERLAP: must be at most half of REVERIE_CHUNK_SIZE")

    def _check_one_of(self, name: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in allowed:
            raise ConfigurationError(f"{self.variable(name)}: {value!r} is none of {', '.join(allowed)}")

    @classmethod
    def variable(cls, name: str) -> str:
        """The environment variable of a setting."""
        return str(next(member for member in fields(cls) if member.name == name).metadata["variable"])

    def keys(self) -> dict[str, str]:
        """Tenant by API key; empty when none is configured. Raises ConfigurationError, whose words show no key."""
        if self.api_keys is None:
            return {}
        text = self.api_keys.strip()
        if not text.startswith("{"):
            try:
                text = Path(text).expanduser().read_text(encoding="utf-8")
            except (OSError, ValueError, RuntimeError) as error:
                reason = (error.strerror if isinstance(error, OSError) else None) or "no text"
                raise ConfigurationError(
                    f"REVERIE_API_KEYS: is neither a JSON object nor the path of a file that can be read ({reason})"
                ) from None
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise ConfigurationError(f"REVERIE_API_KEYS: no JSON ({error.msg})") from None
        # orjson is as strict as for every other body, but keeps the last of two equal keys without a word
        found = json.loads(text, object_pairs_hook=_distinct)
        if not isinstance(found, dict) or not found:
            raise ConfigurationError("REVERIE_API_KEYS: must be a JSON object of key to tenant with at least one key")
        if not all(_KEY.fullmatch(key) for key in found):
            raise ConfigurationError(
                "REVERIE_API_KEYS: a key must be made of ASCII letters, digits and signs, no blanks"
            )
        if not all(_is_tenant(tenant) for tenant in found.values()):
            raise ConfigurationError(
                f"REVERIE_API_KEYS: a tenant must be a text of 1 to {_LONGEST_TENANT} visible characters"
            )
        return found


def _has_port(uri: str) -> bool:
    """Whether the port that an address names, if it does, can be one."""
    try:
        return urlsplit(uri).port != 0
    except ValueError:
        return False


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, as long as no key is in it twice, since a typo would lead a caller to another's memory."""
    if len(dict(pairs)) < len(pairs):
        raise ConfigurationError("REVERIE_API_KEYS: has a key twice")
    return dict(pairs)


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_tenant(name: object) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= _LONGEST_TENANT and name.isprintable() and bool(name.strip())


def _parsed(name: str, variable: str, type_: str, raw: Any) -> Any:
    if not isinstance(raw, str):
        return raw
    try:
        if "Path" in type_:
            return Path(raw).expanduser()
        if "int" in type_:
            return int(raw)
        return float(raw) if "float" in type_ else raw
    except RuntimeError as error:
        raise ConfigurationError(f"{variable}: {raw!r} names the home folder of nobody here") from error
    except ValueError as error:
        whole = "a whole number" if "int" in type_ else "a number"
        raise ConfigurationError(f"{variable}: {raw!r} is not {whole}") from error
