"""What is looked at of an operation before it is validated and its variables are made into inputs."""

from collections.abc import Iterator
from typing import Any

from graphql import (
    GraphQLError,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNonNull,
    OperationDefinitionNode,
    get_named_type,
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
        nodes = () if document is None else document.definitions
        operations = [node for node in nodes if isinstance(node, OperationDefinitionNode)]
        named = context._provided_operation_name
        if named is None and len(operations) > 1:
            message = f"the request has {len(operations)} operations: operationName must say which one is meant"
            context.pre_execution_errors = [GraphQLError(message, operations, original_error=BadInput(message))]
        if context.variables:
            meant = [node for node in operations if named is None or (node.name and node.name.value == named)]
            context.variables = dict(context.variables)
            for definition in (meant[0].variable_definitions or ()) if meant else ():
                name = definition.variable.name.value
                type_ = type_from_ast(context.schema._schema, definition.type)
                if name in context.variables and type_ is not None:
                    context.variables[name] = _cut(type_, context.variables[name])
        yield


def _cut(type_: GraphQLInputType | Any, value: Any) -> Any:
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
