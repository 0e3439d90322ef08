"""What a process holds open: the graph, its joined commits, the embedder, the extractor, and the door-bell."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reverie.ai.cached_embedder import CachedEmbedder
from reverie.ai.embedders import Embedder
from reverie.ai.extractors import Extractor
from reverie.ai.local_embedder import DIMENSIONS as LOCAL_DIMENSIONS
from reverie.ai.local_embedder import NAME as LOCAL_NAME
from reverie.ai.local_embedder import LocalEmbedder, local_embedder_available
from reverie.ai.rules_extractor import RulesExtractor
from reverie.bus.bells import Bell
from reverie.bus.local_bell import LocalBell
from reverie.domain.beliefs import BeliefType
from reverie.domain.documents import DocumentPolicy
from reverie.domain.dreaming import DreamingPolicy
from reverie.domain.embedding import Choice, Provider, choose_embedder
from reverie.domain.text import ANALYSIS_VERSION
from reverie.errors import ConfigurationError
from reverie.graph.commits import Commits
from reverie.graph.embeddings import anything_to_embed
from reverie.graph.schema import StoreRecord, record_embedder, set_up
from reverie.graph.store import Graph, open_graph
from reverie.graph.tenants import tenant_number
from reverie.intake.links import LinkPolicy
from reverie.local import LocalNeo4jOptions, private_neo4j
from reverie.settings import Settings

if TYPE_CHECKING:
    from reverie.ai.openai_embedder import OpenAIOptions

log = logging.getLogger("reverie")

SET_UP_LIMIT = 1_800.0
"""Seconds for the store's set-up: indexes of a large store take their time, and so does the first statement of all."""


@dataclass(slots=True)
class Resources:
    """Everything a use case needs from outside. `unembedded` is set when something waits for its vector.

    `epoch` is the store's, which cursors of the change log carry. The bell is heard by this process alone, unless
    another is given.
    """

    graph: Graph
    commits: Commits
    embedder: Embedder | None
    embedder_note: str | None
    embedding_timeout: float
    neo4j_version: str
    epoch: str
    dreaming: DreamingPolicy = field(default_factory=DreamingPolicy)
    extractor: Extractor = field(default_factory=RulesExtractor)
    bell: Bell = field(default_factory=LocalBell)
    documents: DocumentPolicy = field(default_factory=DocumentPolicy)
    links: LinkPolicy = field(default_factory=LinkPolicy)
    communities_interval: float = 600.0
    """Seconds between two looks at whether communities are to be found anew."""
    detection_limit: float = 60.0
    """Seconds that the algorithm may take."""
    detecting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """Held while the algorithm runs."""
    unembedded: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: dict[str, int] = field(default_factory=dict)

    async def tenant_number(self, tenant: str) -> int:
        """The number that prefixes a tenant's words."""
        if tenant not in self._numbers:
            self._numbers[tenant] = await tenant_number(self.graph, tenant)
        return self._numbers[tenant]


@asynccontextmanager
async def open_neo4j(
    settings: Settings, notify: Callable[[str], None], *, progress: bool = False
) -> AsyncIterator[Graph]:
    """Opens the Neo4j that the settings name, or starts a private one where they name none."""
    async with AsyncExitStack() as stack:
        if settings.neo4j_uri:
            uri, user, password = settings.neo4j_uri, settings.neo4j_username, settings.neo4j_password
        else:
            local = await stack.enter_async_context(
                private_neo4j(
                    LocalNeo4jOptions(
                        data_dir=settings.data_dir,
                        cache_dir=settings.cache_dir,
                        version=settings.neo4j_version,
                        java=settings.java,
                        heap=settings.neo4j_heap,
                        page_cache=settings.neo4j_page_cache,
                    ),
                    notify=notify,
                    progress=progress,
                )
            )
            uri, user, password = local.uri, local.username, local.password
        yield await stack.enter_async_context(
            open_graph(uri, user, password, settings.neo4j_database, time_limit=settings.neo4j_timeout)
        )


@asynccontextmanager
async def open_resources(
    settings: Settings, notify: Callable[[str], None] = log.info, *, progress: bool = False
) -> AsyncIterator[Resources]:
    """Opens all that the settings name and sets the store up; closes in reverse.

    `notify` gets lines for a person. Raises StartupError or Unavailable, one sentence for the terminal.
    """
    async with AsyncExitStack() as stack:
        graph = await stack.enter_async_context(open_neo4j(settings, notify, progress=progress))
        choice, embedder, record = await _open_embedder(stack, graph, settings, notify)
        commits = Commits(graph)
        stack.push_async_callback(commits.close)
        bell = make_bell(settings)
        stack.push_async_callback(bell.close)
        extractor = make_extractor(settings)
        stack.push_async_callback(extractor.close)
        yield Resources(
            graph,
            commits,
            embedder,
            choice.note,
            settings.embedding_timeout,
            graph.server_version,
            record.epoch,
            dreaming_policy(settings),
            extractor,
            bell,
            document_policy(settings),
            link_policy(settings),
            communities_interval=settings.communities_interval * 60,
        )


def make_bell(settings: Settings) -> Bell:
    """The bell over the Redis that the settings name, which is connected to in the background, or one of this process.

    Raises ConfigurationError for an address that can't be.
    """
    if settings.redis_url is None:
        return LocalBell()
    # read only where it is used, as the openai package
    from reverie.bus.redis_bell import RedisBell  # noqa: PLC0415

    try:
        return RedisBell(settings.redis_url)
    except ValueError:
        # whose words may show a part of a password that was not encoded
        raise ConfigurationError(
            "REDIS_URL: can't be read as an address; signs in its password must be percent-encoded"
        ) from None


def dreaming_policy(settings: Settings) -> DreamingPolicy:
    """How dreaming is done by these settings."""
    return DreamingPolicy(
        idle_gap=round(settings.idle_gap * 60_000),
        half_lives={
            BeliefType.FACT: settings.half_life_fact,
            BeliefType.PREFERENCE: settings.half_life_preference,
            BeliefType.BELIEF: settings.half_life_belief,
            BeliefType.TENET: None,
        },
        attempts=settings.dream_attempts,
        lease=round(settings.lease * 1000),
    )


def document_policy(settings: Settings) -> DocumentPolicy:
    """How documents are taken in and read by these settings."""
    return DocumentPolicy(
        bytes_most=settings.document_bytes,
        chunk_size=settings.chunk_size,
        chunk_overlap=settings.chunk_overlap,
        parse_seconds=settings.parse_timeout,
        parse_memory=settings.parse_memory,
    )


def link_policy(settings: Settings) -> LinkPolicy:
    """What of a link is read by these settings."""
    return LinkPolicy(
        bytes_most=settings.document_bytes, seconds=settings.link_timeout, redirects=settings.link_redirects
    )


def make_extractor(settings: Settings) -> Extractor:
    """What reads episodes and memories: a model where there is a key and the setting allows it, rules otherwise.

    Raises ConfigurationError for a key or address that can't be.
    """
    if settings.extractor == "rules" or (settings.extractor == "auto" and not settings.openai_api_key):
        return RulesExtractor()
    # read only where it is used, as below
    from reverie.ai.openai_extractor import OpenAIExtractor, OpenAIExtractorOptions  # noqa: PLC0415

    return OpenAIExtractor(
        OpenAIExtractorOptions(
            api_key=settings.openai_api_key or "",
            base_url=settings.openai_base_url,
            model=settings.extraction_model,
            timeout=settings.extraction_timeout,
            deadline=3 * settings.extraction_timeout,
        )
    )


async def _open_embedder(
    stack: AsyncExitStack, graph: Graph, settings: Settings, notify: Callable[[str], None]
) -> tuple[Choice, Embedder | None, StoreRecord]:
    """Sets the store up, and opens the embedder that it is used with, which is recorded where it is the first."""
    patient = graph.with_time_limit(SET_UP_LIMIT)
    record = await set_up(patient, analysis=ANALYSIS_VERSION, notify=notify)
    choice = choose(settings, record, empty=record.embedder is None and not await anything_to_embed(patient))
    embedder = make_embedder(settings, choice)
    if embedder is None:
        return choice, None, record
    stack.push_async_callback(embedder.close)
    if record.embedder is None:
        record = await record_embedder(patient, embedder.name, embedder.dimensions)
        settled = choose(settings, record, empty=False)
        if settled != choice:
            # another process was first, with another choice
            choice, embedder = settled, make_embedder(settings, settled)
            if embedder is not None:
                stack.push_async_callback(embedder.close)
    return choice, embedder, record


def choose(settings: Settings, record: StoreRecord, *, empty: bool) -> Choice:
    """Which embedder these settings mean for a store with this record. Raises ConfigurationError."""
    no_local = local_embedder_available()
    providers: list[Provider] = ["local"]
    if settings.openai_api_key or (record.embedder or "").startswith("openai:"):
        providers.append("openai")
    return choose_embedder(
        settings.embedder,
        recorded=None if record.embedder is None else _with_dimensions(record.embedder, record.dimensions),
        empty=empty,
        names={provider: _model(settings, provider) for provider in providers},
        has_key=bool(settings.openai_api_key),
        no_local=None if no_local is None else no_local.removesuffix("."),
    )


def _model(settings: Settings, provider: Provider) -> str:
    if provider == "openai":
        return _with_dimensions(_openai_options(settings).name, settings.embedding_dimensions)
    return _with_dimensions(LOCAL_NAME, LOCAL_DIMENSIONS)


def _with_dimensions(name: str, dimensions: int | None) -> str:
    return f"{name} ({dimensions} dimensions)"


def make_embedder(settings: Settings, choice: Choice) -> Embedder | None:
    """The embedder of a choice, cached; None for none. Raises ConfigurationError for a key or address that can't be."""
    match choice.provider:
        case "openai":
            from reverie.ai.openai_embedder import OpenAIEmbedder  # noqa: PLC0415 - as below

            return CachedEmbedder(OpenAIEmbedder(_openai_options(settings)))
        case "local":
            local = LocalEmbedder()
            local.start()
            return CachedEmbedder(local)
        case "none":
            return None


def _openai_options(settings: Settings) -> "OpenAIOptions":
    # The openai package takes a second or two to import, which those who don't use it needn't wait for.
    from reverie.ai.openai_embedder import OpenAIOptions  # noqa: PLC0415

    return OpenAIOptions(
        api_key=settings.openai_api_key or "",
        base_url=settings.openai_base_url,
        model=settings.embedding_model,
        dimensions=settings.embedding_dimensions,
    )
