"""The schema file, the descriptions in it, and the contract it grows towards."""

from collections.abc import Iterator
from pathlib import Path

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    build_schema,
    is_introspection_type,
    is_specified_directive,
    is_specified_scalar_type,
)
from graphql.utilities import find_breaking_changes, find_dangerous_changes

from reverie.api.schema import sdl

HERE = Path(__file__).parent
CONTRACT = HERE / "contract.graphql"
OURS = build_schema(sdl())


def test_the_schema_file_is_the_schema() -> None:
    kept = (HERE.parent / "schema.graphql").read_text(encoding="utf-8")

    assert kept == sdl(), "`reverie schema > schema.graphql` brings the file up to date"


def test_the_contract_is_kept_but_for_what_later_capabilities_bring() -> None:
    contract = build_schema(CONTRACT.read_text(encoding="utf-8"))

    assert [change.description for change in find_breaking_changes(contract, OURS)] == []
    assert [change.description for change in find_dangerous_changes(contract, OURS)] == []


def test_inputs_have_the_contracts_defaults() -> None:
    contract = build_schema(CONTRACT.read_text(encoding="utf-8"))

    def defaults(types: dict[str, object]) -> dict[str, object]:
        return {
            f"{name}.{field}": value.default_value
            for name, type_ in types.items()
            if isinstance(type_, GraphQLInputObjectType)
            for field, value in type_.fields.items()
        }

    ours = defaults({**OURS.type_map})
    wanted = {name: value for name, value in defaults({**contract.type_map}).items() if name in ours}
    assert len(wanted) > 100
    assert {name: ours[name] for name in wanted} == wanted


def elements() -> Iterator[tuple[str, str | None]]:
    """Every element of the schema by its coordinate, with its description."""
    for name, type_ in OURS.type_map.items():
        if is_introspection_type(type_) or is_specified_scalar_type(type_):
            continue
        yield name, type_.description
        if isinstance(type_, GraphQLEnumType):
            for value_name, value in type_.values.items():
                yield f"{name}.{value_name}", value.description
        elif isinstance(type_, GraphQLInputObjectType):
            for field_name, given in type_.fields.items():
                yield f"{name}.{field_name}", given.description
        elif isinstance(type_, (GraphQLObjectType, GraphQLInterfaceType)):
            for field_name, field in type_.fields.items():
                yield from _field(f"{name}.{field_name}", field)
    for directive in OURS.directives:
        if not is_specified_directive(directive):
            yield f"@{directive.name}", directive.description


def _field(name: str, field: GraphQLField) -> Iterator[tuple[str, str | None]]:
    yield name, field.description
    for argument_name, argument in field.args.items():
        yield f"{name}({argument_name}:)", argument.description


def test_every_element_is_described() -> None:
    described = dict(elements())

    assert len(described) > 500
    assert [name for name, description in described.items() if not (description or "").strip()] == []
