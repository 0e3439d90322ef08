"""The operations that GraphiQL's welcome tabs offer, against the schema that answers them."""

from pathlib import Path

import graphql
import pytest

from reverie.api.schema import schema

WELCOME = Path(__file__).parents[2] / "src/explorer/src/welcome"


@pytest.mark.parametrize("name", ["memories", "create-memory", "search"])
def test_a_welcome_operation_is_valid_and_named(name: str) -> None:
    document = graphql.parse((WELCOME / f"{name}.graphql").read_text())
    operations = [node for node in document.definitions if isinstance(node, graphql.OperationDefinitionNode)]

    assert graphql.validate(graphql.build_schema(schema.as_str()), document) == []
    assert [operation.name is not None for operation in operations] == [True]
