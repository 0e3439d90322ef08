"""Documents in Neo4j: taken in with their bytes, read by whoever holds their lease, and then chunks of text.

The bytes are kept beside the document until it is read, so that any worker can read it, and go then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, TypeVar

from reverie.domain.documents import (
    DocumentSource,
    DocumentStatus,
    MediaType,
    Passage,
    Reading,
    content_key,
)
from reverie.domain.ids import new_id
from reverie.errors import NotFound, Refusals
from reverie.graph.names import OWNERS_BY_FORM
from reverie.graph.store import Graph, Raced, Transaction
from reverie.graph.writes import Outcome, Write

T = TypeVar("T")

PART = 1_000_000
"""Bytes of a document that are kept, and moved, together."""
_CHUNKS_AT_ONCE = 500
_FORMS_AT_ONCE = 5_000
_ROWS_AT_ONCE = 5_000
_PATIENT = 180.0
"""Seconds for writing all that was read of one document."""


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to take in, its bytes in a file; `untitled` where its own title is better than this one."""

    title: str
    source: DocumentSource
    url: str | None
    media_type: MediaType
    size: int
    hash: str
    subject_id: str | None
    file: BinaryIO
    untitled: bool = False


def parts(file: BinaryIO) -> Iterator[bytes]:
    """A file from its beginning, in the parts in which it is kept."""
    file.seek(0)
    while part := file.read(PART):
        yield part


TAKE_IN = """
MERGE (d:Document {tenant: $t, contentKey: $content})
ON CREATE SET d:Node, d += $properties
SET d.lockedAt = $now
RETURN [d.id, d.status]
"""
READ_AGAIN = """
MATCH (d:Document&Node {id: $id})
SET d.status = 'PENDING', d.failure = null, d.attempts = 0, d.owner = null, d.leaseUntil = null
SET d.mediaType = $properties.mediaType, d.charset = $properties.charset
"""
KEEP_PART = """
MATCH (d:Document&Node {id: $id})
CREATE (:Original {tenant: d.tenant, place: $place, bytes: $bytes})-[:ORIGINAL_OF]->(d)
"""


async def take_in(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Takes documents in (drafts: NewDocument), to be read; outcome: `document`, its id.

    The subject's document of the same content is the answer where there is one; if it couldn't be read, it is to be
    read again.
    """
    outcomes: list[Outcome] = []
    for write in writes:
        draft: NewDocument = write.draft
        properties = _properties(write, draft)
        found, status = await transaction.run(
            TAKE_IN,
            t=write.tenant,
            content=content_key(draft.subject_id, draft.hash),
            properties=properties,
            now=write.now,
        )
        if found is None:
            # it was deleted while its lock was waited for
            raise Raced
        new = found == properties["id"]
        if not new and status == DocumentStatus.FAILED:
            await transaction.run(READ_AGAIN, id=found, properties=properties)
        if new or status == DocumentStatus.FAILED:
            for place, part in enumerate(parts(draft.file)):
                await transaction.run(KEEP_PART, id=found, place=place, bytes=part)
        outcomes.append({"document": found})
    return outcomes


def _properties(write: Write, draft: NewDocument) -> dict[str, Any]:
    return {
        "id": new_id(),
        "title": draft.title,
        "source": draft.source.value,
        "url": draft.url,
        "mediaType": draft.media_type.name,
        "charset": draft.media_type.charset,
        "sizeBytes": draft.size,
        "status": DocumentStatus.PENDING.value,
        "subjectId": draft.subject_id,
        "createdAt": write.now,
        "untitled": True if draft.untitled else None,
        "attempts": 0,
    }


@dataclass(frozen=True, slots=True)
class DocumentWork:
    """A document that is this owner's to read until its lease runs out."""

    id: str
    tenant: str
    number: int
    media_type: MediaType
    size: int
    attempts: int
    """How often reading it was begun, this time included."""
    token: str

    @property
    def parts(self) -> int:
        return -(-self.size // PART)


WAITING_DOCUMENTS = """
MATCH (d:Document) WHERE d.status = 'PENDING' AND d.createdAt > 0 AND coalesce(d.leaseUntil, 0) < $now
WITH d ORDER BY d.createdAt LIMIT $limit RETURN collect(d.id)
"""
TAKE_DOCUMENTS = """
UNWIND $ids AS i MATCH (d:Document&Node {id: i}) SET d.lockedAt = $now
WITH d WHERE d.status = 'PENDING' AND coalesce(d.leaseUntil, 0) < $now
SET d.owner = $token, d.leaseUntil = $until, d.attempts = d.attempts + 1
WITH d MATCH (t:Tenant {name: d.tenant})
RETURN collect([d.id, d.tenant, t.number, d.mediaType, d.charset, d.sizeBytes, d.attempts])
"""


async def take_documents(graph: Graph, now: int, lease: int, limit: int) -> list[DocumentWork]:
    """Takes documents that wait to be read, oldest first."""
    ids = await graph.read(WAITING_DOCUMENTS, now=now, limit=limit)
    if not ids:
        return []
    token = new_id()
    rows = await graph.write(TAKE_DOCUMENTS, ids=sorted(ids), now=now, token=token, until=now + lease)
    return [
        DocumentWork(key, of, number, MediaType(media_type, charset), size, attempts, token)
        for key, of, number, media_type, charset, size, attempts in rows
    ]


RENEW_DOCUMENT = """
MATCH (d:Document&Node {id: $id}) SET d.lockedAt = $now
WITH d WHERE d.owner = $token SET d.leaseUntil = $until
"""


async def renew_document(graph: Graph, work: DocumentWork, now: int, lease: int) -> None:
    """Moves the deadline of a document, where it still is its owner's."""
    await graph.write(RENEW_DOCUMENT, id=work.id, token=work.token, now=now, until=now + lease)


GIVE_BACK_DOCUMENT = """
MATCH (d:Document&Node {id: $id}) SET d.lockedAt = $now
WITH d WHERE d.owner = $token
SET d.owner = null, d.leaseUntil = $until, d.attempts = $attempts
"""


async def give_back_document(graph: Graph, work: DocumentWork, now: int, *, begun: bool, pause: int) -> None:
    """Puts a document back among those that wait, after a pause in milliseconds; `begun`: it counts as an attempt."""
    attempts = work.attempts if begun else work.attempts - 1
    await graph.write(
        GIVE_BACK_DOCUMENT, id=work.id, token=work.token, now=now, until=now + pause - 1, attempts=attempts
    )


ORIGINAL_PART = """
MATCH (d:Document&Node {id: $id})<-[:ORIGINAL_OF]-(o:Original) WHERE d.owner = $token AND o.place = $place
RETURN o.bytes
"""


async def original_part(graph: Graph, work: DocumentWork, place: int) -> bytes | None:
    """One part of a document's bytes; None where the document went, or is another's."""
    found = await graph.read(ORIGINAL_PART, id=work.id, token=work.token, place=place)
    return None if found is None else bytes(found)


async def entities_by_form(graph: Graph, tenant: str, forms: Sequence[str]) -> dict[str, list[str]]:
    """The ids of the entities that have these names, by the names' normal forms."""
    found: dict[str, list[str]] = {}
    for some in _batched(forms, _FORMS_AT_ONCE):
        for (_, form), entity in await graph.read(OWNERS_BY_FORM, rows=[[tenant, form] for form in some]):
            found.setdefault(form, []).append(entity)
    return found


HELD_DOCUMENT = """
MATCH (d:Document&Node {id: $id}) SET d.lockedAt = $now
WITH d WHERE d.owner = $token AND d.status = 'PENDING' RETURN [d.subjectId, d.untitled]
"""
CREATE_CHUNKS = """
MATCH (d:Document&Node {id: $id})
UNWIND $rows AS row
CREATE (c:Chunk:Node:Unembedded) SET c = row CREATE (c)-[:PART_OF]->(d)
"""
MENTION_ENTITIES = """
UNWIND $rows AS k MATCH (c:Chunk&Node {id: k[0]}) MATCH (e:Entity&Node {id: k[1]}) MERGE (c)-[:MENTIONS]->(e)
RETURN count(*)
"""
END_DOCUMENT = """
MATCH (d:Document&Node {id: $id}) SET d += $properties, d.owner = null, d.leaseUntil = null, d.untitled = null
WITH d CALL (d) { MATCH (o:Original)-[:ORIGINAL_OF]->(d) DETACH DELETE o }
"""


class Outdated(Exception):
    """What was looked up is no longer there: it is to be looked up again."""


async def finish_document(
    graph: Graph, work: DocumentWork, reading: Reading, mentioned: Sequence[Sequence[str]], now: int
) -> bool:
    """Writes a document's chunks, all in one transaction; False where it went meanwhile, or is another's.

    `mentioned` has the ids of the entities that each passage mentions. Raises Outdated where one of them went since it
    was looked up.
    """

    async def apply(transaction: Transaction) -> bool:
        held = await transaction.run(HELD_DOCUMENT, id=work.id, token=work.token, now=now)
        if held is None:
            return False
        subject, untitled = held
        ids = [new_id() for _ in reading.passages]
        chunks = zip(ids, reading.passages, strict=True)
        rows = [_chunk(work, subject, place, *chunk, now) for place, chunk in enumerate(chunks)]
        for some in _batched(rows, _CHUNKS_AT_ONCE):
            await transaction.run(CREATE_CHUNKS, id=work.id, rows=some)
        pairs = sorted({(entity, key) for key, entities in zip(ids, mentioned, strict=True) for entity in entities})
        for pair in _batched(pairs, _ROWS_AT_ONCE):
            told = [[key, entity] for entity, key in pair]
            if await transaction.run(MENTION_ENTITIES, rows=told) < len(told):
                raise Outdated
        properties: dict[str, Any] = {"status": DocumentStatus.READY.value}
        if untitled and reading.title is not None:
            properties["title"] = reading.title
        await transaction.run(END_DOCUMENT, id=work.id, properties=properties)
        return True

    return await graph.with_time_limit(_PATIENT).transact(apply)


def _chunk(work: DocumentWork, subject: str | None, place: int, key: str, passage: Passage, now: int) -> dict[str, Any]:
    return {
        "id": key,
        "tenant": work.tenant,
        "documentId": work.id,
        "subjectId": subject,
        "position": place,
        "text": passage.text,
        "words": passage.words,
        "createdAt": now,
    }


async def fail_document(graph: Graph, work: DocumentWork, failure: str, now: int) -> bool:
    """Says why a document can't be read; False where it went meanwhile, or is another's."""

    async def apply(transaction: Transaction) -> bool:
        if await transaction.run(HELD_DOCUMENT, id=work.id, token=work.token, now=now) is None:
            return False
        properties = {"status": DocumentStatus.FAILED.value, "failure": failure}
        await transaction.run(END_DOCUMENT, id=work.id, properties=properties)
        return True

    return await graph.transact(apply)


DELETE_DOCUMENT = """
MATCH (d:Document&Node {id: $id}) WHERE d.tenant = $t SET d.lockedAt = $now
WITH d
CALL (d) { MATCH (c:Chunk)-[:PART_OF]->(d) RETURN collect(c) AS chunks }
CALL (d) { MATCH (o:Original)-[:ORIGINAL_OF]->(d) RETURN collect(o) AS originals }
WITH d, chunks, originals, size(chunks) AS count
FOREACH (c IN chunks | DETACH DELETE c)
FOREACH (o IN originals | DETACH DELETE o)
DETACH DELETE d
RETURN count
"""


async def delete_documents(transaction: Transaction, writes: Sequence[Write]) -> list[Outcome]:
    """Deletes documents (drafts: ids) with their chunks; outcome: `deletedId`."""
    outcomes: list[Outcome] = []
    for write in writes:
        gone = await transaction.run(DELETE_DOCUMENT, id=write.draft, t=write.tenant, now=write.now)
        missing = Refusals([NotFound("no document has this id", ("id",))])
        outcomes.append(missing if gone is None else {"deletedId": write.draft})
    return outcomes


def _batched(values: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
