"""What every resolver is given: whose request it is, what it may use, and its own loaders."""

from dataclasses import dataclass, field, replace
from typing import Any

from starlette.background import BackgroundTasks
from starlette.requests import Request
from starlette.responses import Response
from strawberry.types import Info as StrawberryInfo

from reverie.api.loaders import Loaders
from reverie.resources import Resources


@dataclass
class Context:
    """The context of one operation."""

    resources: Resources
    tenant: str
    request_id: str
    loaders: Loaders = field(init=False)
    request: Request | None = None
    response: Response | None = None
    background_tasks: BackgroundTasks | None = None

    def __post_init__(self) -> None:
        self.loaders = Loaders(self.resources.graph, self.tenant)

    def renewed(self) -> "Context":
        """The same with fresh loaders: an event of a subscription must not see what an earlier one has read."""
        return replace(self)


Info = StrawberryInfo[Context, Any]
