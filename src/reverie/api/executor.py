"""How a subscription's events are executed: each by itself, with loaders of its own."""

from typing import Any

from graphql.execution import Executor
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from reverie.api.context import Context


class EventExecutor(StrawberryGraphQLCoreExecutionContext):
    """Strawberry's executor, but for what is made for a subscription's event.

    graphql-core copies the subscription's executor for each event, memos and all. Those memos grow with every event and
    live as long as the subscription; and all events would read through the same loaders, which answer with what they
    read first. So each event gets an executor that was made for it, and a renewed context.
    """

    def build_per_event_executor(self, payload: Any) -> Executor[Any]:
        context = self.context_value
        return type(self)(
            self.schema,
            self.fragment_definitions,
            self.fragments,
            payload,
            context.renewed(payload) if isinstance(context, Context) else context,
            self.operation,
            self.variable_values,
            self.field_resolver,
            self.type_resolver,
            self.subscribe_field_resolver,
            self.enable_early_execution,
            self.middleware_manager,
            self.is_awaitable,
            self.is_async_iterable,
            self.hide_suggestions,
            self.abort_signal,
            self.hooks,
            operation_extensions=self.operation_extensions,
        )
