"""What every resolver is given: whose request it is, what it may use, and its own loaders."""

from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

from starlette.background import BackgroundTasks
from starlette.requests import Request
from starlette.responses import Response
from strawberry.types import Info as StrawberryInfo

from reverie.api.loaders import Loaders
from reverie.domain.changes import BeliefChange, LogPosition
from reverie.domain.clock import now_ms
from reverie.resources import Resources
from reverie.services.changes import Follower


class EventLoaders:
    """What an entry of the log leads to is read once for all subscribers of a server who are told of it together."""

    SHARED_FOR = 1_000
    """Milliseconds after which somebody who is told later reads anew."""

    def __init__(self) -> None:
        self._latest: WeakValueDictionary[tuple[str, str], Loaders] = WeakValueDictionary()

    def of(self, change: BeliefChange, resources: Resources, tenant: str) -> Loaders:
        """The loaders for an entry."""
        found = self._latest.get((tenant, change.id))
        if found is None or now_ms() - found.now > self.SHARED_FOR:
            found = self._latest[(tenant, change.id)] = Loaders(resources.graph, tenant, shared=True)
        return found


@dataclass
class Context:
    """The context of one operation."""

    resources: Resources
    tenant: str
    request_id: str
    follower: Follower
    event_loaders: EventLoaders = field(default_factory=EventLoaders)
    loaders: Loaders = field(init=False)
    request: Request | None = None
    response: Response | None = None
    background_tasks: BackgroundTasks | None = None

    def __post_init__(self) -> None:
        self.loaders = Loaders(self.resources.graph, self.tenant)

    async def log_position(self, number: int) -> LogPosition:
        """A place in the tenant's change log."""
        return LogPosition(self.resources.epoch, await self.resources.tenant_number(self.tenant), number)

    def renewed(self, event: object) -> "Context":
        """The same with loaders for an event of a subscription, which must not see what an earlier one has read."""
        context = replace(self)
        if isinstance(event, BeliefChange):
            context.loaders = self.event_loaders.of(event, self.resources, self.tenant)
        return context


Info = StrawberryInfo[Context, Any]
