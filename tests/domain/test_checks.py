import pytest

from reverie.domain import policy
from reverie.domain.checks import Checks
from reverie.errors import TooLarge

PHRASE = "\ufdfa"
"""One character whose normal form is a sentence of 18."""


@pytest.mark.parametrize("most", [policy.NAME_MOST, policy.TITLE_MOST, policy.PHRASE_MOST])
def test_a_name_may_have_its_most_characters_of_any_script(most: int) -> None:
    checks = Checks()

    for character in "aß漢😀":
        assert checks.name(character * most, ("name",), most) == character * most
    assert checks.refusals == []


def test_a_name_that_no_index_could_hold_is_too_large() -> None:
    checks = Checks()

    checks.name(PHRASE * policy.TITLE_MOST, ("title",), policy.TITLE_MOST)

    (refusal,) = checks.refusals
    assert isinstance(refusal, TooLarge)
    assert (refusal.message, refusal.path) == ("has 16500 bytes in its normal form, 6000 at most", ("title",))
