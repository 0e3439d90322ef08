"""Events: recorded, each once, in the order in which they arrive."""

from collections.abc import Sequence

from reverie.domain.events import Event, EventBatch, EventDraft, check_events
from reverie.graph import events
from reverie.resources import Resources
from reverie.services.bells import tell_episodes
from reverie.services.writing import read_back, write


async def record_events(
    resources: Resources, tenant: str, drafts: Sequence[EventDraft], key: str | None
) -> list[Event]:
    """Records a batch of events, all or none; the events in order, for a re-sent one that which was recorded first.

    Durable, listed, and in their episodes when this returns.
    """
    checked = check_events(drafts)
    if not checked:
        return []
    batch = EventBatch(checked, resources.dreaming.idle_gap)
    writer = events.record_events
    done = await write(resources, tenant, "recordEvents", writer, batch, key, weight=len(checked), asked=checked)
    tell_episodes(resources, tenant, done["opened"])
    tell_episodes(resources, tenant, done["pending"], work=bool(done["pending"]))
    return await read_back(resources, tenant, done["events"], Event)
