"""Documents: taken in, read in the background, deleted."""

import asyncio
import logging
import os
from contextlib import suppress
from io import BytesIO
from tempfile import TemporaryFile
from typing import BinaryIO

from reverie.domain.clock import now_ms
from reverie.domain.documents import (
    TEXT,
    Document,
    DocumentSource,
    FileDraft,
    LinkDraft,
    MediaType,
    Reading,
    TextDraft,
    check_file,
    check_link,
    check_text,
    content_hash,
    link_title,
)
from reverie.errors import BadInput, Refusals, TooLarge, Unavailable, Unreadable
from reverie.graph import documents
from reverie.graph.documents import DocumentWork, NewDocument, parts
from reverie.graph.schema import await_words
from reverie.graph.words import LETTERS
from reverie.intake.links import fetch
from reverie.intake.reader import read_document
from reverie.resources import Resources
from reverie.services.bells import tell_work
from reverie.services.leases import kept
from reverie.services.writing import check_id, read_back, write

log = logging.getLogger("reverie.documents")

AT_ONCE = 2
"""Documents that one worker reads at a time."""
ATTEMPTS = 3
"""How often reading a document is begun before it is given up."""
PAUSE = 30_000
"""Milliseconds after which reading is begun again that failed for no fault of the document's."""
_BYTES_PER_WEIGHT = 20_000
"""A document of more than a megabyte is written in a transaction of its own."""
_DELETION_WEIGHT = 100
_LAST_WORD = 5.0
"""Seconds in which a document that wasn't read is given back."""


async def create_document(resources: Resources, tenant: str, draft: TextDraft, key: str | None) -> Document:
    """Takes in what a caller wrote out."""
    draft = check_text(draft)
    data = draft.text.encode()
    new = NewDocument(
        draft.title,
        DocumentSource.TEXT,
        None,
        MediaType(TEXT, "utf-8"),
        len(data),
        content_hash([data]),
        draft.subject_id,
        BytesIO(data),
    )
    return await _take_in(resources, tenant, "createDocument", new, key, draft)


async def upload_document(
    resources: Resources, tenant: str, draft: FileDraft, file: BinaryIO, key: str | None
) -> Document:
    """Takes in a file; TooLarge over the cap, Unsupported for a kind that can't be read."""
    title, media_type = check_file(draft)
    size = file.seek(0, os.SEEK_END)
    if size > resources.documents.bytes_most:
        raise Refusals([TooLarge(f"has {size:,} bytes, {resources.documents.bytes_most:,} at most", ("file",))])
    if size == 0:
        raise Refusals([BadInput("is empty", ("file",))])
    found = await asyncio.to_thread(lambda: content_hash(parts(file)))
    new = NewDocument(title, DocumentSource.FILE, None, media_type, size, found, draft.subject_id, file)
    asked = (title, media_type.name, draft.subject_id, found)
    return await _take_in(resources, tenant, "uploadDocument", new, key, asked)


async def link_document(resources: Resources, tenant: str, draft: LinkDraft, key: str | None) -> Document:
    """Takes in what a link leads to, which is fetched now. Raises a refusal where it can't be, or may not be."""
    draft = check_link(draft)
    known = await resources.commits.known(tenant, "linkDocument", key, asked=draft, now=now_ms())
    if known is not None:
        return (await read_back(resources, tenant, [known["document"]], Document))[0]
    fetched = await fetch(draft.url, resources.links)
    with fetched.file as file:
        if fetched.size == 0:
            raise Refusals([BadInput("answers with nothing", ("url",))])
        new = NewDocument(
            draft.title or link_title(draft.url),
            DocumentSource.LINK,
            draft.url,
            fetched.media_type,
            fetched.size,
            fetched.hash,
            draft.subject_id,
            file,
            untitled=draft.title is None,
        )
        return await _take_in(resources, tenant, "linkDocument", new, key, draft)


async def _take_in(
    resources: Resources, tenant: str, field: str, new: NewDocument, key: str | None, asked: object
) -> Document:
    weight = 1 + new.size // _BYTES_PER_WEIGHT
    done = await write(resources, tenant, field, documents.take_in, new, key, weight=weight, asked=asked)
    tell_work(resources, tenant)
    return (await read_back(resources, tenant, [done["document"]], Document))[0]


async def delete_document(resources: Resources, tenant: str, document_id: str, key: str | None) -> str:
    """Deletes a document with its chunks; its id."""
    check_id(document_id, "document")
    writer = documents.delete_documents
    done = await write(resources, tenant, "deleteDocument", writer, document_id, key, weight=_DELETION_WEIGHT)
    return str(done["deletedId"])


async def read_some(resources: Resources) -> int:
    """Reads some documents that wait; returns how many were taken. Raises Unavailable."""
    taken = await documents.take_documents(resources.graph, now_ms(), resources.dreaming.lease, AT_ONCE)
    # each ends by itself, whatever becomes of the others
    outcomes = await asyncio.gather(*(_read(resources, work) for work in taken), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return len(taken)


async def _read(resources: Resources, work: DocumentWork) -> None:
    lease = resources.dreaming.lease

    async def renew() -> None:
        await documents.renew_document(resources.graph, work, now_ms(), lease)

    # an outage is no fault of the document's, unless writing what was found of it is too much for Neo4j
    counts, pause, ended = False, PAUSE, False
    try:
        if work.attempts > ATTEMPTS:
            raise Unreadable(f"can't be read: that was begun {ATTEMPTS} times, and never ended")
        async with kept(lease, renew):
            reading, mentioned = await _read_through(resources, work)
            counts = True
            await _finish(resources, work, reading, mentioned)
        ended = True
    except Unreadable as error:
        await documents.fail_document(resources.graph, work, str(error), now_ms())
        ended = True
    except _Gone:
        ended = True
    except asyncio.CancelledError:
        counts, pause = False, 0
        raise
    except Unavailable:
        raise
    except Exception:
        counts = True
        log.exception("document %s could not be read", work.id)
    finally:
        if not ended:
            # what can't be given back is left to its lease
            with suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(_LAST_WORD):
                    await documents.give_back_document(resources.graph, work, now_ms(), begun=counts, pause=pause)


class _Gone(Exception):
    """The document was deleted, or taken by another."""


async def _read_through(resources: Resources, work: DocumentWork) -> tuple[Reading, list[list[str]]]:
    """What a document holds, and for each passage the entities that it mentions."""
    with TemporaryFile() as file:
        for place in range(work.parts):
            part = await documents.original_part(resources.graph, work, place)
            if part is None:
                raise _Gone
            file.write(part)
        file.flush()
        prefix = f"{work.number}{LETTERS['Chunk']}"
        reading = await read_document(file, work.media_type, resources.documents, prefix)
    return reading, await _mentioned(resources, work, reading)


async def _finish(resources: Resources, work: DocumentWork, reading: Reading, mentioned: list[list[str]]) -> None:
    try:
        finished = await documents.finish_document(resources.graph, work, reading, mentioned, now_ms())
    except documents.Outdated:
        await _finish(resources, work, reading, await _mentioned(resources, work, reading))
        return
    if finished:
        resources.unembedded.set()
        await await_words(resources.graph)


async def _mentioned(resources: Resources, work: DocumentWork, reading: Reading) -> list[list[str]]:
    """For each passage, the entities that are known by a name in it."""

    def all_forms() -> list[str]:
        return sorted({form for passage in reading.passages for form in passage.forms})

    def owners() -> list[list[str]]:
        return [
            sorted({entity for form in passage.forms for entity in found.get(form, ())}) for passage in reading.passages
        ]

    # a long document has some hundred thousand, which others' requests needn't wait for
    found = await documents.entities_by_form(resources.graph, work.tenant, await asyncio.to_thread(all_forms))
    return await asyncio.to_thread(owners)
