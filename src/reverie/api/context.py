"""What every resolver is given: whose request it is, what it may use, and its own loaders."""

from dataclasses import dataclass, field, replace
from typing import Any

from starlette.background import BackgroundTasks
from starlette.requests import Request
from starlette.responses import Response
from strawberry.types import Info as StrawberryInfo

from reverie.api.loaders import Loaders
from reverie.domain.changes import LogPosition
from reverie.resources import Resources
from reverie.services.changes import Follower


@dataclass
class Context:
    """The context of one operation."""

    resources: Resources
    tenant: str
    request_id: str
    follower: Follower
    loaders: Loaders = field(init=False)
    request: Request | None = None
    response: Response | None = None
    background_tasks: BackgroundTasks | None = None

    def __post_init__(self) -> None:
        self.loaders = Loaders(self.resources.graph, self.tenant)

    async def log_position(self, number: int) -> LogPosition:
        """A place in the tenant's change log."""
        return LogPosition(self.resources.epoch, await self.resources.tenant_number(self.tenant), number)

    def renewed(self) -> "Context":
        """The same with fresh loaders: an event of a subscription must not see what an earlier one has read."""
        return replace(self)


Info = StrawberryInfo[Context, Any]
