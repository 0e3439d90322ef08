"""The store's own schema: constraints and indexes, its version, and what its vectors and words were made with."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from neo4j.exceptions import ClientError, Neo4jError, TransientError

from reverie.domain.clock import now_ms
from reverie.domain.ids import new_id
from reverie.errors import StoreError, Unavailable
from reverie.graph.store import Graph, Transaction
from reverie.graph.words import LETTERS, VECTOR_LABELS, reword

log = logging.getLogger("reverie.graph")

SCHEMA_VERSION = 4
_WORDS_SINCE = 3
"""The first version whose full-text index has today's labels."""
_TRIES = 10
_NAME_TAKEN = "Neo.ClientError.Schema.IndexWithNameAlreadyExists"
_BEING_MADE = {_NAME_TAKEN, "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"}
"""What Neo4j says of something that another process is making, or was making when it was cut off."""
MEMORY_FILTERS = (
    "tenant",
    "memoryType",
    "importance",
    "conversationId",
    "subjectId",
    "agentId",
    "createdAt",
    "happenedAt",
    "expiresAt",
)
_CARRIED = {
    "Memory": MEMORY_FILTERS,
    "Belief": ("tenant", "subjectId", "createdAt"),
    "Episode": ("tenant", "agentId", "userId"),
    "Chunk": ("tenant", "subjectId"),
}
"""The properties that a label's vector index carries, so that it can filter by them."""

STORE_CONSTRAINT = "CREATE CONSTRAINT store_name IF NOT EXISTS FOR (n:Store) REQUIRE n.name IS UNIQUE"

_CONSTRAINTS = (
    "CREATE CONSTRAINT node_id IF NOT EXISTS FOR (n:Node) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT name_key IF NOT EXISTS FOR (n:Name) REQUIRE (n.tenant, n.kind, n.form, n.type) IS UNIQUE",
    "CREATE CONSTRAINT tenant_name IF NOT EXISTS FOR (n:Tenant) REQUIRE n.name IS UNIQUE",
    "CREATE CONSTRAINT tenant_number IF NOT EXISTS FOR (n:Tenant) REQUIRE n.number IS UNIQUE",
    "CREATE CONSTRAINT receipt_key IF NOT EXISTS FOR (n:Receipt) REQUIRE (n.tenant, n.field, n.key) IS UNIQUE",
    "CREATE CONSTRAINT event_client_id IF NOT EXISTS FOR (n:Event) REQUIRE (n.tenant, n.clientEventId) IS UNIQUE",
    "CREATE CONSTRAINT slot_identity IF NOT EXISTS FOR (n:Slot) REQUIRE (n.tenant, n.subjectId, n.key) IS UNIQUE",
    "CREATE CONSTRAINT belief_active IF NOT EXISTS FOR (n:Belief) REQUIRE n.activeSlot IS UNIQUE",
    "CREATE CONSTRAINT evidence_id IF NOT EXISTS FOR (n:Evidence) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT slot_id IF NOT EXISTS FOR (n:Slot) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT evidence_mark IF NOT EXISTS FOR (n:Evidence) REQUIRE n.mark IS UNIQUE",
    "CREATE CONSTRAINT change_number IF NOT EXISTS FOR (n:Change) REQUIRE (n.tenant, n.number) IS UNIQUE",
    "CREATE CONSTRAINT counter_tenant IF NOT EXISTS FOR (n:Counter) REQUIRE n.tenant IS UNIQUE",
    "CREATE CONSTRAINT subject_lease IF NOT EXISTS FOR (n:Lease) REQUIRE (n.tenant, n.subject) IS UNIQUE",
    "CREATE CONSTRAINT detection_key IF NOT EXISTS FOR (n:Detection) REQUIRE (n.tenant, n.algorithm) IS UNIQUE",
    "CREATE CONSTRAINT worker_id IF NOT EXISTS FOR (n:Worker) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT dream_id IF NOT EXISTS FOR (n:Dream) REQUIRE n.id IS UNIQUE",
    "CREATE CONSTRAINT conversation_thread IF NOT EXISTS FOR (n:Conversation) REQUIRE (n.tenant, n.threadId) IS UNIQUE",
    "CREATE CONSTRAINT document_content IF NOT EXISTS FOR (n:Document) REQUIRE (n.tenant, n.contentKey) IS UNIQUE",
)
_ORDERS = {
    "Memory": ("createdAt", "updatedAt", "happenedAt", "importance"),
    "Conversation": ("form", "createdAt", "updatedAt"),
    "Topic": ("form", "createdAt", "updatedAt"),
    "Entity": ("form", "createdAt", "updatedAt"),
    "Fact": ("createdAt",),
    "Community": ("form",),
    "Event": ("occurredAt",),
    "Episode": ("startedAt",),
    "Belief": ("validFrom",),
    "Document": ("createdAt",),
}
_INDEXES = (
    *(
        f"CREATE INDEX {label.lower()}_{column.lower()} IF NOT EXISTS FOR (n:{label}) ON (n.tenant, n.{column}, n.id)"
        for label, columns in _ORDERS.items()
        for column in columns
    ),
    "CREATE INDEX memory_expiry IF NOT EXISTS FOR (n:Memory) ON (n.tenant, n.expiresAt)",
    "CREATE INDEX memory_subject IF NOT EXISTS FOR (n:Memory) ON (n.tenant, n.subjectId)",
    "CREATE INDEX fact_subject IF NOT EXISTS FOR (n:Fact) ON (n.tenant, n.subjectForm)",
    "CREATE INDEX fact_object IF NOT EXISTS FOR (n:Fact) ON (n.tenant, n.objectForm)",
    "CREATE INDEX event_thread IF NOT EXISTS FOR (n:Event) ON (n.tenant, n.threadId)",
    "CREATE INDEX event_user IF NOT EXISTS FOR (n:Event) ON (n.tenant, n.userId)",
    "CREATE INDEX episode_thread IF NOT EXISTS FOR (n:Episode) ON (n.tenant, n.threadId)",
    "CREATE INDEX episode_user IF NOT EXISTS FOR (n:Episode) ON (n.tenant, n.userId)",
    "CREATE INDEX episode_status IF NOT EXISTS FOR (n:Episode) ON (n.consolidationStatus, n.startedAt)",
    "CREATE INDEX episode_growth IF NOT EXISTS FOR (n:Episode) ON (n.tenant, n.threadId, n.consolidationStatus)",
    "CREATE INDEX episode_owed IF NOT EXISTS FOR (n:Episode) ON (n.tenant, n.consolidationStatus, n.startedAt)",
    "CREATE INDEX belief_subject_form IF NOT EXISTS FOR (n:Belief) ON (n.tenant, n.subjectForm)",
    "CREATE INDEX belief_subject IF NOT EXISTS FOR (n:Belief) ON (n.tenant, n.subjectId)",
    "CREATE INDEX dream_begin IF NOT EXISTS FOR (n:Dream) ON (n.tenant, n.startedAt)",
    "CREATE INDEX topic_made IF NOT EXISTS FOR (n:Topic) ON (n.madeByServer, n.id)",
    "CREATE INDEX entity_made IF NOT EXISTS FOR (n:Entity) ON (n.madeByServer, n.id)",
    "CREATE INDEX topic_degree IF NOT EXISTS FOR (n:Topic) ON (n.tenant, n.degree)",
    "CREATE INDEX entity_degree IF NOT EXISTS FOR (n:Entity) ON (n.tenant, n.degree)",
    "CREATE INDEX memory_enrichment IF NOT EXISTS FOR (n:Memory) ON (n.enrichment, n.createdAt)",
    "CREATE INDEX document_subject IF NOT EXISTS FOR (n:Document) ON (n.tenant, n.subjectId)",
    "CREATE INDEX document_status IF NOT EXISTS FOR (n:Document) ON (n.status, n.createdAt)",
    "CREATE INDEX receipt_age IF NOT EXISTS FOR (n:Receipt) ON (n.createdAt)",
    "CREATE INDEX memory_place IF NOT EXISTS FOR (n:Memory) ON (n.tenant, n.conversationId, n.place)",
    "CREATE INDEX memory_context IF NOT EXISTS FOR (n:Memory) ON (n.tenant, n.saidAfter)",
    f"CREATE FULLTEXT INDEX words IF NOT EXISTS FOR (n:{'|'.join(LETTERS)}) ON EACH [n.words] "
    "OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: true}}",
)
_FILLED = (
    "MATCH (n:Topic) WHERE n.degree IS NULL CALL (n) { SET n.degree = COUNT { (n)--() } } IN TRANSACTIONS OF 1000 ROWS",
    "MATCH (n:Entity) WHERE n.degree IS NULL CALL (n) { SET n.degree = COUNT { (n)--() } } IN TRANSACTIONS OF 1000 ROWS",
)
"""What stores of earlier versions lack."""

LOCK_STORE = "MERGE (s:Store {name: 'reverie'}) ON CREATE SET s.epoch = $epoch SET s.locked = coalesce(s.locked, 0) + 1 RETURN s.version"
RECORD_VERSION = "MATCH (s:Store {name: 'reverie'}) SET s.version = $version"
RECORD_ANALYSIS = "MATCH (s:Store {name: 'reverie'}) SET s.analysis = $analysis"
READ_STORE = "MATCH (s:Store {name: 'reverie'}) RETURN [s.version, s.embedder, s.dimensions, s.analysis, s.epoch]"
READ_DIMENSIONS = "MATCH (s:Store {name: 'reverie'}) RETURN s.dimensions"
READ_EMBEDDER = "MATCH (s:Store {name: 'reverie'}) RETURN s.embedder"
RECORD_EMBEDDER = "MATCH (s:Store {name: 'reverie'}) SET s.embedder = $embedder, s.dimensions = $dimensions"
AWAIT_INDEXES = "CALL db.awaitIndexes(600)"
FIND_REMNANT = "SHOW INDEXES YIELD name, owningConstraint WHERE name = $name AND owningConstraint IS NULL RETURN true"
AWAIT_WORDS = "CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()"
WORDS_PATIENCE = 5.0
"""Seconds that a write waits for the full-text index; what was committed stays committed."""


def vector_index(label: str, dimensions: int) -> str:
    """The statement that makes a label's vector index; every vector is compared in full (quantization NONE)."""
    carried = ", ".join(f"n.{column}" for column in _CARRIED.get(label, ("tenant",)))
    return (
        f"CYPHER 25 CREATE VECTOR INDEX {label.lower()}_embedding IF NOT EXISTS FOR (n:{label}) ON (n.embedding) WITH [{carried}] "
        f"OPTIONS {{indexConfig: {{`vector.dimensions`: {dimensions}, `vector.similarity_function`: 'cosine', "
        "`vector.quantization.type`: 'NONE'}}"
    )


def no_index(name: str) -> str:
    """The statement that takes an index away."""
    return f"DROP INDEX {name} IF EXISTS"


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """What the store says of itself; embedder is None while none was ever chosen. Restoring a backup changes the epoch."""

    version: int
    embedder: str | None
    dimensions: int | None
    analysis: int | None
    epoch: str


async def set_up(graph: Graph, *, analysis: int, notify: Callable[[str], None] = log.info) -> StoreRecord:
    """Brings the store to this version's schema and its words to this analysis; idempotent, and safe from several
    processes at once. `notify` is told how far a large store has come.

    The time limit of `graph` is for all of it, and for waiting until another process is done. Raises StoreError for a store of a newer version.
    """
    record = await read_record(graph)
    if record is None or record.version != SCHEMA_VERSION:
        await _patiently(graph, STORE_CONSTRAINT)
        await _migrate(graph)
        record = await read_record(graph)
    if record is None:
        raise StoreError("the store's own record can't be read back")
    if record.analysis != analysis:

        def tell(done: int, total: int) -> None:
            notify(f"Texts are indexed by word anew: {done:,} of {total:,}.")

        await reword(graph, now_ms(), tell)
        await graph.write(RECORD_ANALYSIS, analysis=analysis)
        record = replace(record, analysis=analysis)
    return record


async def read_record(graph: Graph) -> StoreRecord | None:
    """The store's record, None before the first set-up; StoreError when it was written by a newer version."""
    row = await graph.read(READ_STORE)
    if row is None or row[0] is None:
        return None
    record = StoreRecord(*row)
    if record.version > SCHEMA_VERSION:
        raise StoreError(
            f"this store was written by a newer Reverie (schema {record.version}, this one knows {SCHEMA_VERSION}); "
            "install that version or newer"
        )
    return record


async def _migrate(graph: Graph) -> None:
    async def under_lock(transaction: Transaction) -> None:
        # schema statements can't share a transaction with data: the lock is held here while they run beside it
        found = await transaction.run(LOCK_STORE, epoch=new_id())
        if found is not None and found >= SCHEMA_VERSION:
            return
        if found is not None and found < _WORDS_SINCE:
            await _patiently(graph, no_index("words"))
        for statement in (*_CONSTRAINTS, *_INDEXES):
            await _patiently(graph, statement)
        dimensions = await transaction.run(READ_DIMENSIONS)
        if dimensions is not None:
            for label in VECTOR_LABELS:
                await _patiently(graph, vector_index(label, dimensions))
        for statement in _FILLED:
            await _patiently(graph, statement)
        await graph.execute(AWAIT_INDEXES)
        await transaction.run(RECORD_VERSION, version=SCHEMA_VERSION)

    await graph.transact(under_lock)
    log.info("the store's schema is set up", extra={"version": SCHEMA_VERSION})


async def record_embedder(graph: Graph, embedder: str, dimensions: int) -> StoreRecord:
    """Records what makes the store's vectors, and makes their indexes, unless something is recorded already.

    Returns the record afterwards, which names another embedder where another process was first.
    """

    async def under_lock(transaction: Transaction) -> None:
        await transaction.run(LOCK_STORE, epoch=new_id())
        if await transaction.run(READ_EMBEDDER) is not None:
            return
        # one that was interrupted here may have left indexes of other dimensions
        await drop_vector_indexes(graph)
        for label in VECTOR_LABELS:
            await _patiently(graph, vector_index(label, dimensions))
        await graph.execute(AWAIT_INDEXES)
        await transaction.run(RECORD_EMBEDDER, embedder=embedder, dimensions=dimensions)

    await graph.transact(under_lock)
    record = await read_record(graph)
    if record is None:
        raise StoreError("the store's own record can't be read back")
    return record


async def forget_embedder(graph: Graph) -> None:
    """Takes the record of what makes the vectors away, and their indexes, before all vectors are made anew."""

    async def forget(transaction: Transaction) -> None:
        await transaction.run(RECORD_EMBEDDER, embedder=None, dimensions=None)

    await graph.transact(forget)
    await drop_vector_indexes(graph)


async def drop_vector_indexes(graph: Graph) -> None:
    """Takes the vector indexes away."""
    for label in VECTOR_LABELS:
        await _patiently(graph, no_index(f"{label.lower()}_embedding"))


async def await_words(graph: Graph) -> None:
    """Returns when the full-text index holds all that was committed; where Neo4j can't tell in time, it will soon."""
    try:
        async with asyncio.timeout(WORDS_PATIENCE):
            await graph.execute(AWAIT_WORDS)
    except (Unavailable, Neo4jError, TimeoutError) as error:
        log.warning("could not wait for the full-text index (%s)", str(error) or f"not within {WORDS_PATIENCE:g} s")
        log.debug("where that was", exc_info=error)


async def _patiently(graph: Graph, statement: str) -> None:
    """Runs a schema statement; two processes making the same thing at once are no error.

    Raises StoreError when Neo4j refuses it.
    """
    for attempt in range(_TRIES):
        try:
            await graph.execute(statement)
        except Neo4jError as error:
            again = error.code in _BEING_MADE or isinstance(error, TransientError)
            if not again or attempt == _TRIES - 1:
                raise StoreError(
                    f"Neo4j refuses to set the store up: {' '.join((error.message or '').split())}"
                ) from error
            await asyncio.sleep(0.2 * (attempt + 1))
            if error.code == _NAME_TAKEN and attempt >= _TRIES // 2:
                await _drop_remnant(graph, statement.split()[2])
        else:
            return


async def _drop_remnant(graph: Graph, name: str) -> None:
    """Drops the index of a constraint whose making was cut off, which Neo4j neither finishes nor takes away."""
    if await graph.execute(FIND_REMNANT, name=name):
        with suppress(ClientError):
            await graph.execute(no_index(name))
