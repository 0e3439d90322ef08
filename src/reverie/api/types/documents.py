"""Documents and their chunks, as callers see and send them."""

from datetime import datetime
from typing import Any

import strawberry
from starlette.datastructures import UploadFile
from strawberry import UNSET

from reverie.api.context import Info
from reverie.api.reads import related_one
from reverie.api.types.connections import ChunkConnection, LazyDocument, related
from reverie.api.types.given import given_or_none
from reverie.api.types.nodes import Node
from reverie.domain import documents as domain
from reverie.domain.documents import DocumentSource, DocumentStatus
from reverie.errors import NotFound

TITLE = "What it is called: 1 to 500 characters."
SUBJECT_ID = "Whom it is about or belongs to, by the caller's own id; the tenant's own unless given."


@strawberry.type(description="Something to read: a text, a file or a page. It is read in the background, into chunks.")
class Document(Node):
    title: str = strawberry.field(description="What it is called.")
    source: DocumentSource = strawberry.field(description="How it came here.")
    url: str | None = strawberry.field(description="The link it was read from.")
    media_type: str = strawberry.field(description="What it is made of, such as application/pdf.")
    size_bytes: int = strawberry.field(description="How many bytes it had.")
    status: DocumentStatus = strawberry.field(description="How far reading it has come.")
    failure: str | None = strawberry.field(description="Why it couldn't be read.")
    subject_id: str | None = strawberry.field(description="Whom it is about or belongs to; null: the tenant's own.")
    created_at: datetime = strawberry.field(description="When it was taken in.")
    chunks: ChunkConnection = related("Document", "chunks", "Its chunks, in its own order; none until it is READY.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Document, cls))


async def _document(root: strawberry.Parent[Any], info: Info) -> Any:
    found = await related_one(info.context, "Chunk", "document", root.id)
    if found is None:
        raise NotFound("the document of this chunk was deleted while it was read")
    return found


@strawberry.type(description="A passage of a document, cut at headings and sentences.")
class Chunk(Node):
    text: str = strawberry.field(description="The passage itself, as Markdown where the document has headings.")
    position: int = strawberry.field(description="Its place in the document, from 0.")
    document: LazyDocument = strawberry.field(resolver=_document, description="The document it is of.")

    @classmethod
    def is_type_of(cls, value: object, info: object) -> bool:
        return isinstance(value, (domain.Chunk, cls))


@strawberry.input(description="A document to write out.")
class CreateDocumentInput:
    title: str = strawberry.field(description=TITLE)
    text: str = strawberry.field(description="Plain text or Markdown: 1 to 1,000,000 characters.")
    subject_id: str | None = strawberry.field(default=UNSET, description=SUBJECT_ID)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.TextDraft:
        return domain.TextDraft(self.title, self.text, given_or_none(self.subject_id))


@strawberry.input(description="A file to take in: PDF, plain text, Markdown, HTML or DOCX.")
class UploadDocumentInput:
    file: UploadFile = strawberry.field(description="The file.")
    title: str | None = strawberry.field(default=UNSET, description=f"{TITLE[:-1]}; the file's name unless given.")
    subject_id: str | None = strawberry.field(default=UNSET, description=SUBJECT_ID)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.FileDraft:
        return domain.FileDraft(
            self.file.filename,
            self.file.content_type,
            given_or_none(self.title),
            given_or_none(self.subject_id),
        )


@strawberry.input(description="A link to take in: a page or file at a public address, which is fetched at once.")
class LinkDocumentInput:
    url: str = strawberry.field(description="Its address, http or https: at most 2,000 characters.")
    title: str | None = strawberry.field(default=UNSET, description=f"{TITLE[:-1]}; the page's own unless given.")
    subject_id: str | None = strawberry.field(default=UNSET, description=SUBJECT_ID)
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")

    def to_domain(self) -> domain.LinkDraft:
        return domain.LinkDraft(self.url, given_or_none(self.title), given_or_none(self.subject_id))


@strawberry.input(description="A document to delete.")
class DeleteDocumentInput:
    id: strawberry.ID = strawberry.field(description="The document.")
    client_mutation_key: str | None = strawberry.field(default=UNSET, description="Idempotency key.")
