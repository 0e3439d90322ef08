"""Documents taken in, read in the background, found again, retried, taken over, deleted and forgotten."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from io import BytesIO
from ipaddress import ip_network
from typing import Any

import pytest
import pytest_asyncio
from tests import files
from tests.conftest import Api
from tests.page_server import PageServer, answer, page_server
from tests.stored import counted, stored

from reverie.domain.clock import now_ms
from reverie.domain.documents import (
    Document,
    DocumentPolicy,
    DocumentSource,
    DocumentStatus,
    FileDraft,
    LinkDraft,
    Reading,
    TextDraft,
)
from reverie.errors import BadInput, Refusals
from reverie.graph import documents as graph
from reverie.graph.nodes import nodes_by_id
from reverie.intake.links import LinkPolicy
from reverie.resources import Resources
from reverie.services.documents import (
    create_document,
    delete_document,
    link_document,
    read_some,
    upload_document,
)
from reverie.services.embedding import embed_all
from reverie.services.forgetting import forget_subject

TEXT = "# Gates\n\nThe harbour has three gates. Ann Miller paints them with Krylon.\n\n## Paint\n\nIt is green."


@pytest_asyncio.fixture
async def pages() -> AsyncIterator[PageServer]:
    async with page_server() as server:
        yield server


def reaching(resources: Resources) -> Resources:
    """The same, with leave to read links of this machine."""
    return replace(resources, links=LinkPolicy(networks=(ip_network("127.0.0.1/32"),), seconds=5))


async def read_all(resources: Resources) -> None:
    while await read_some(resources):
        pass


async def found(resources: Resources, tenant: str, document_id: str) -> Document:
    (document,) = await nodes_by_id(resources.graph, tenant, [document_id], now=now_ms())
    assert isinstance(document, Document)
    return document


CHUNKS = """
MATCH (d:Document&Node {id: $id})<-[:PART_OF]-(c:Chunk) WITH c ORDER BY c.position
RETURN collect({text: c.text, position: c.position, words: c.words, tenant: c.tenant, subject: c.subjectId,
  waits: c:Unembedded, embedded: size(c.embedding), entities: [(c)-[:MENTIONS]->(e:Entity) | e.name]})
"""


async def chunks(resources: Resources, document_id: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = await resources.graph.read(CHUNKS, id=document_id)
    return rows


async def test_a_document_waits_is_read_and_embedded(resources: Resources, tenant: str, api: Api) -> None:
    # given: entities that its text names, and one that it doesn't
    for name, aliases in (("Ann Miller", []), ("Spray", ["KRYLON"]), ("Bob", [])):
        made = {"name": name, "type": "PERSON", "aliases": aliases}
        await api.mutate("createEntity", "CreateEntityInput", "entity { id }", made)

    document = await create_document(resources, tenant, TextDraft("Harbour", TEXT, "ann"), None)

    assert (document.status, document.source, document.media_type) == (
        DocumentStatus.PENDING,
        DocumentSource.TEXT,
        "text/plain",
    )
    assert (document.title, document.size_bytes, document.subject_id) == ("Harbour", len(TEXT), "ann")
    assert await chunks(resources, document.id) == []

    await read_all(resources)

    assert (await found(resources, tenant, document.id)) == replace(document, status=DocumentStatus.READY)
    (chunk,) = await chunks(resources, document.id)
    number = await resources.tenant_number(tenant)
    assert chunk["text"] == TEXT
    assert chunk["words"].startswith(f"{number}k_gate {number}k_the {number}k_harbour")
    assert sorted(chunk["entities"]) == ["Ann Miller", "Spray"]
    assert (chunk["position"], chunk["tenant"], chunk["subject"], chunk["waits"]) == (0, tenant, "ann", True)
    # and: what was sent in is kept no longer
    assert (await counted(resources.graph, tenant))["Original"] == 0

    await embed_all(resources)

    (chunk,) = await chunks(resources, document.id)
    assert (chunk["waits"], chunk["embedded"]) == (False, 64)


@pytest.mark.usefixtures("worker")
async def test_the_worker_reads_and_embeds_what_waits(resources: Resources, tenant: str) -> None:
    document = await create_document(resources, tenant, TextDraft("Harbour", TEXT), None)

    async with asyncio.timeout(30):
        while not (rows := await chunks(resources, document.id)) or rows[0]["waits"]:  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.1)

    assert (await found(resources, tenant, document.id)).status is DocumentStatus.READY
    assert [row["embedded"] for row in rows] == [64]


async def test_no_entity_is_made_for_what_a_document_names(resources: Resources, tenant: str) -> None:
    await create_document(resources, tenant, TextDraft("Harbour", TEXT), None)

    await read_all(resources)

    counts = await counted(resources.graph, tenant)
    assert (counts["Entity"], counts["Name"], counts["Chunk"]) == (0, 0, 1)


async def test_chunks_are_in_place_and_as_long_as_the_settings_say(resources: Resources, tenant: str) -> None:
    text = "\n\n".join(f"# Part {number}\n\n{'The gate is green. ' * 20}" for number in range(30))
    small = replace(resources, documents=DocumentPolicy(chunk_size=500, chunk_overlap=0))

    document = await create_document(small, tenant, TextDraft("Parts", text), None)
    await read_all(small)

    rows = await chunks(resources, document.id)
    assert [row["position"] for row in rows] == list(range(30))
    assert [row["text"].splitlines()[0] for row in rows] == [f"# Part {number}" for number in range(30)]


async def test_the_same_content_is_one_document_of_its_subject(resources: Resources, tenant: str) -> None:
    first = await create_document(resources, tenant, TextDraft("Harbour", TEXT, "ann"), None)
    again = await create_document(resources, tenant, TextDraft("Another title", TEXT, "ann"), None)
    as_file = await upload_document(
        resources, tenant, FileDraft("a.md", "text/markdown", None, "ann"), BytesIO(TEXT.encode()), None
    )
    others = [
        await create_document(resources, tenant, TextDraft("Harbour", text, subject), None)
        for text, subject in ((TEXT, None), (TEXT, "bob"), (f"{TEXT} ", "ann"))
    ]

    assert again == as_file == first
    assert len({first.id, *(other.id for other in others)}) == 4
    assert (await counted(resources.graph, tenant))["Original"] == 4


async def test_thirty_two_writers_of_one_content_make_one_document(resources: Resources, tenant: str) -> None:
    made = await asyncio.gather(
        *(create_document(resources, tenant, TextDraft(f"Title {number}", TEXT), None) for number in range(32))
    )
    await read_all(resources)

    assert len({document.id for document in made}) == 1
    counts = await counted(resources.graph, tenant)
    assert (counts["Document"], counts["Chunk"], counts["Original"]) == (1, 1, 0)


async def test_what_cannot_be_read_fails_with_its_reason_and_may_be_sent_again(
    resources: Resources, tenant: str
) -> None:
    locked = files.pdf(["secret"], password="x")  # noqa: S106 - the file's own
    draft = FileDraft("report.pdf", "application/pdf")
    document = await upload_document(resources, tenant, draft, BytesIO(locked), None)

    await read_all(resources)

    failed = await found(resources, tenant, document.id)
    assert (failed.status, failed.failure) == (DocumentStatus.FAILED, "is encrypted: it asks for a password")
    assert (await counted(resources.graph, tenant)) == {"Document": 1, "Node": 1}

    # and: sent again, it is read again
    again = await upload_document(resources, tenant, draft, BytesIO(locked), None)
    assert (again.id, again.status, again.failure) == (document.id, DocumentStatus.PENDING, None)
    await read_all(resources)
    assert (await found(resources, tenant, document.id)) == failed


async def test_a_large_file_is_kept_in_parts_and_read_whole(resources: Resources, tenant: str) -> None:
    lines = [f"The gate with the number {number} is green." for number in range(30_000)]
    data = "\n".join(lines).encode()
    assert len(data) > graph.PART

    document = await upload_document(resources, tenant, FileDraft("gates.txt", None), BytesIO(data), None)
    assert (await counted(resources.graph, tenant))["Original"] == 2
    await read_all(resources)

    assert (await found(resources, tenant, document.id)).status is DocumentStatus.READY
    rows = await chunks(resources, document.id)
    assert rows[0]["text"].startswith(lines[0])
    assert rows[-1]["text"].endswith(lines[-1])


async def test_a_link_is_fetched_and_titled_by_its_page(resources: Resources, tenant: str, pages: PageServer) -> None:
    pages.pages["/gates"] = answer(files.PAGE)
    url = pages.url("/gates")

    document = await link_document(reaching(resources), tenant, LinkDraft(url), "k")

    assert (document.source, document.url, document.title) == (DocumentSource.LINK, url, "127.0.0.1/gates")
    assert (document.media_type, document.size_bytes) == ("text/html", len(files.PAGE))
    await read_all(resources)
    assert (await found(resources, tenant, document.id)).title == "The gates"
    assert "painted every spring" in (await chunks(resources, document.id))[0]["text"]

    # and: the same key answers without asking the page again, another link with it doesn't
    again = await link_document(reaching(resources), tenant, LinkDraft(url), "k")
    assert (again.id, len(pages.asked)) == (document.id, 1)
    with pytest.raises(Refusals, match="another input"):
        await link_document(reaching(resources), tenant, LinkDraft(pages.url("/other")), "k")
    # and: a title that is given stays
    titled = await link_document(reaching(resources), tenant, LinkDraft(url, "My gates", "ann"), None)
    await read_all(resources)
    assert (await found(resources, tenant, titled.id)).title == "My gates"


async def test_a_link_of_this_machine_is_refused_and_nothing_is_written(
    resources: Resources, tenant: str, pages: PageServer
) -> None:
    pages.pages["/"] = answer(files.PAGE)

    with pytest.raises(BadInput, match="isn't public"):
        await link_document(resources, tenant, LinkDraft(pages.url("/")), "k")

    assert pages.asked == []
    assert await stored(resources.graph, tenant) == []


async def test_a_document_of_a_worker_that_died_is_read_by_another(resources: Resources, tenant: str) -> None:
    document = await create_document(resources, tenant, TextDraft("Harbour", TEXT), None)
    # given: a worker that took it, and shows no life
    work = next(
        one for one in await graph.take_documents(resources.graph, now_ms(), 200, 1_000) if one.id == document.id
    )
    assert (await graph.take_documents(resources.graph, now_ms(), 200, 1_000)) == []
    await asyncio.sleep(0.3)

    await read_all(resources)

    assert (await found(resources, tenant, document.id)).status is DocumentStatus.READY
    # and: what the dead one had found is no longer written
    assert await original(resources, work) is None
    assert not await graph.finish_document(resources.graph, work, Reading([]), [], now_ms())
    assert not await graph.fail_document(resources.graph, work, "late", now_ms())
    assert len(await chunks(resources, document.id)) == 1


async def original(resources: Resources, work: graph.DocumentWork) -> bytes | None:
    return await graph.original_part(resources.graph, work, 0)


async def test_a_document_whose_readers_die_is_given_up(resources: Resources, tenant: str) -> None:
    document = await create_document(resources, tenant, TextDraft("Harbour", TEXT), None)
    for _ in range(3):
        await graph.take_documents(resources.graph, now_ms(), -1, 1_000)

    await read_all(resources)

    failed = await found(resources, tenant, document.id)
    assert (failed.status, failed.failure) == (
        DocumentStatus.FAILED,
        "can't be read: that was begun 3 times, and never ended",
    )


async def test_a_worker_that_is_told_to_stop_gives_its_documents_back(resources: Resources, tenant: str) -> None:
    document = await create_document(resources, tenant, TextDraft("Harbour", "a" * 900_000), None)
    reading = asyncio.create_task(read_all(resources))
    await asyncio.sleep(1)

    reading.cancel()
    await asyncio.wait({reading})

    assert (await found(resources, tenant, document.id)).status is DocumentStatus.PENDING
    taken = await graph.take_documents(resources.graph, now_ms(), 60_000, 1_000)
    assert [work.attempts for work in taken if work.id == document.id] == [1]


async def test_a_document_is_deleted_with_all_it_had(resources: Resources, tenant: str) -> None:
    document = await create_document(resources, tenant, TextDraft("Harbour", TEXT), None)
    await read_all(resources)
    pending = await create_document(resources, tenant, TextDraft("Harbour", f"{TEXT}!"), None)

    for one in (document, pending):
        assert await delete_document(resources, tenant, one.id, None) == one.id
        with pytest.raises(Refusals, match="no document has this id"):
            await delete_document(resources, tenant, one.id, None)

    assert await stored(resources.graph, tenant) == []
    # and: it can come back
    again = await create_document(resources, tenant, TextDraft("Harbour", TEXT), None)
    await read_all(resources)
    assert again.id != document.id
    assert len(await chunks(resources, again.id)) == 1


async def test_a_document_that_goes_while_it_is_read_leaves_nothing(resources: Resources, tenant: str) -> None:
    document = await create_document(resources, tenant, TextDraft("Harbour", "a " * 200_000), None)
    reading = asyncio.create_task(read_all(resources))
    await asyncio.sleep(0.5)

    await delete_document(resources, tenant, document.id, None)
    await reading

    assert await stored(resources.graph, tenant) == []


async def test_a_forgotten_subject_leaves_no_document(resources: Resources, tenant: str, api: Api) -> None:
    made = {"content": "x", "entities": [{"name": "Krylon", "type": "TOOL"}], "subjectId": "ann"}
    await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", made)
    for number in range(3):
        await create_document(resources, tenant, TextDraft("Harbour", f"{TEXT} {number}", "ann"), None)
    kept = await create_document(resources, tenant, TextDraft("Harbour", TEXT, "bob"), None)
    await read_all(resources)
    await create_document(resources, tenant, TextDraft("Harbour", f"{TEXT} waits", "ann"), None)

    gone = await forget_subject(resources, tenant, "ann")

    assert (gone["DOCUMENT"], gone["CHUNK"], gone["MEMORY"]) == (4, 3, 1)
    counts = await counted(resources.graph, tenant)
    # Bob's document still mentions the entity, which stays
    assert (counts["Document"], counts["Chunk"], counts["Original"], counts["Entity"]) == (1, 1, 0, 1)

    assert await forget_subject(resources, tenant, "bob") == {"DOCUMENT": 1, "CHUNK": 1, "ENTITY": 1}
    assert kept.id
    assert await stored(resources.graph, tenant) == []


async def test_mentions_by_chunks_are_no_memories_of_an_entity(resources: Resources, tenant: str, api: Api) -> None:
    for name in ("Ann Miller", "Krylon"):
        await api.mutate("createEntity", "CreateEntityInput", "entity { id }", {"name": name, "type": "PERSON"})
    memory = {"content": "x", "entities": [{"name": "Krylon", "type": "PERSON"}]}
    await api.mutate("createMemory", "CreateMemoryInput", "memory { id }", memory)
    for number in range(3):
        text = f"Ann Miller, the {number}."
        await create_document(resources, tenant, TextDraft("Harbour", text), None)
    await read_all(resources)

    ordered = await api(
        "{ entities(orderBy: {field: MEMORIES, direction: DESC}) { nodes { name memories { totalCount } } } }"
    )

    assert ordered["entities"]["nodes"] == [
        {"name": "Krylon", "memories": {"totalCount": 1}},
        {"name": "Ann Miller", "memories": {"totalCount": 0}},
    ]
