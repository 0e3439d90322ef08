"""What is looked at of an operation before it is validated and its variables are made into inputs."""

from collections.abc import Iterator
from typing import Any

from graphql import (
    GraphQLError,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    OperationDefinitionNode,
    get_named_type,
    get_operation_ast,
    type_from_ast,
)
from strawberry.extensions import SchemaExtension

from reverie.domain import policy
from reverie.errors import BadInput

MEMBERS_MOST = policy.BATCH_MOST + 1
"""Input objects of a list that are made: one more than any list may have, so that it is refused for its length."""


class FitOperation(SchemaExtension):
    """Refuses a document of which nobody knows which operation is meant, and cuts lists that are refused anyway.

    Making an input object takes a fraction of a millisecond, which a hundred thousand of them would take from everyone.
    """

    def on_validate(self) -> Iterator[None]:
        context = self.execution_context
        document = context.graphql_document
        if document is not None:
            meant = get_operation_ast(document, context._provided_operation_name)
            if meant is None:
                operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
                message = f"the request has {len(operations)} operations: operationName must say which one is meant"
                context.pre_execution_errors = [GraphQLError(message, operations, original_error=BadInput(message))]
            elif context.variables:
                context.variables = dict(context.variables)
                for definition in meant.variable_definitions or ():
                    name = definition.variable.name.value
                    if name in context.variables:
                        type_ = type_from_ast(context.schema._schema, definition.type)
                        context.variables[name] = _cut(type_, context.variables[name])
        yield


def _cut(type_: Any, value: Any) -> Any:
    """A value of this type with its lists of input objects cut."""
    if isinstance(type_, GraphQLNonNull):
        return _cut(type_.of_type, value)
    if isinstance(type_, GraphQLList) and isinstance(get_named_type(type_), GraphQLInputObjectType):
        return [_cut(type_.of_type, member) for member in value[:MEMBERS_MOST]] if isinstance(value, list) else value
    if isinstance(type_, GraphQLInputObjectType) and isinstance(value, dict):
        return {
            name: _cut(type_.fields[name].type, member) if name in type_.fields else member
            for name, member in value.items()
        }
    return value
