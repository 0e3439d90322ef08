"""Forgetting: all of one subject is erased, and what rested on it alone."""

from collections import Counter

from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.domain.clock import now_ms
from reverie.domain.ids import new_id
from reverie.graph import forgetting
from reverie.graph.dreaming import settle_dreams
from reverie.graph.enrichment import delete_orphans
from reverie.graph.schema import await_words
from reverie.resources import Resources
from reverie.services.bells import tell_changes, tell_work

HELD = 600_000
"""Milliseconds for which workers keep away from the subject, at most."""


async def forget_subject(resources: Resources, tenant: str, subject: str) -> dict[str, int]:
    """Erases a subject's events, episodes, beliefs, memories and documents; how many went, by kind.

    Entries of the change log keep tenant and number alone. Taken again after an interruption, it goes on where it was.
    """
    checks = Checks()
    checks.text(subject, ("subjectId",), policy.NAME_MOST)
    checks.done()
    graph, number = resources.graph, await resources.tenant_number(tenant)
    now = now_ms()
    # whatever is being read of this subject loses its lease with its episode, and is never written
    await forgetting.take_subject(graph, tenant, subject, new_id(), now + HELD)
    gone: Counter[str] = Counter()
    gone += await forgetting.forget_episodes(graph, tenant, number, subject, now)
    gone += await forgetting.forget_events(graph, tenant, number, subject, now)
    await settle_dreams(graph, tenant, now_ms())
    gone += await forgetting.forget_beliefs(graph, tenant, subject, now)
    memories, topics, entities = await forgetting.forget_memories(graph, tenant, subject)
    gone += memories
    documents, mentioned = await forgetting.forget_documents(graph, tenant, subject, now)
    gone += documents
    entities |= mentioned
    for label, touched in (("Topic", topics), ("Entity", entities)):
        if swept := await delete_orphans(graph, label, [(tenant, node_id) for node_id in sorted(touched)], now):
            gone[label.upper()] = swept
    await forgetting.drop_subject(graph, tenant, subject)
    tell_work(resources, tenant)
    await await_words(graph)
    tell_changes(resources, tenant)
    return dict(gone)
