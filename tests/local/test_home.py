"""What is laid down in Neo4j's folder, and what of it outlives a start that was cut short."""

import stat
from pathlib import Path

import pytest

from reverie.errors import LocalNeo4jError
from reverie.local.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A folder that nothing has been started in."""
    return Home(tmp_path / "neo4j", "2026.08.1")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_first_start_that_was_cut_short_begins_from_nothing(home: Home) -> None:
    first = home.prepare()
    (home.path / "data" / "databases").mkdir()

    second = home.prepare()

    assert second != first
    assert not (home.path / "data" / "databases").exists()
    assert second not in (home.path / "data" / "dbms" / "auth.ini").read_text()


def test_a_store_that_was_finished_is_kept(home: Home) -> None:
    password = home.prepare()
    (home.path / "data" / "databases").mkdir()
    home.finish_first_start()

    assert home.prepare() == password

    assert (home.path / "data" / "databases").exists()
    assert not (home.path / "data" / "dbms" / "auth.ini").exists()


def test_only_the_owner_can_read_it(home: Home) -> None:
    password = home.prepare()

    assert (home.path / "password").read_text() == f"{password}\n"
    assert len(password) == 32
    assert _mode(home.path) == 0o700
    for path in (home.path / "password", home.path / "data" / "dbms" / "auth.ini"):
        assert _mode(path) == 0o600


def test_a_password_that_is_gone_is_one_sentence(home: Home) -> None:
    home.prepare()
    home.finish_first_start()
    (home.path / "password").unlink()

    with pytest.raises(LocalNeo4jError) as caught:
        home.prepare()

    assert str(caught.value) == (
        f"The store in {home.path} can't be opened without its password, and {home.path / 'password'} is gone."
    )


@pytest.mark.parametrize("older", ["2026.07.1", "2026.08.0", "2026.2.3"])
def test_a_store_of_a_newer_version_is_refused(home: Home, older: str) -> None:
    home.prepare()

    with pytest.raises(LocalNeo4jError) as caught:
        Home(home.path, older).check_version()

    assert str(caught.value) == (
        f"Neo4j {older} can't open the store in {home.path}, which Neo4j 2026.08.1 has written: "
        "use that version or a newer one."
    )


@pytest.mark.parametrize("version", ["2026.08.1", "2026.8.1", "2026.10.0", "2027.01.0"])
def test_a_store_of_the_same_or_an_older_version_is_not(home: Home, version: str) -> None:
    home.prepare()

    Home(home.path, version).check_version()


@pytest.mark.parametrize("version", ["5.26.30", "2026.01.4"])
def test_a_neo4j_that_is_too_old_is_refused(home: Home, version: str) -> None:
    with pytest.raises(LocalNeo4jError) as caught:
        Home(home.path, version).check_version()

    assert str(caught.value) == f"Neo4j {version} is too old: 2026.02 or newer is needed."


@pytest.mark.parametrize("version", ["latest", "2026.08", "../2026.08.1"])
def test_what_is_not_a_version_is_refused(home: Home, version: str) -> None:
    with pytest.raises(LocalNeo4jError) as caught:
        Home(home.path, version).check_version()

    assert str(caught.value) == f"{version} isn't a version of Neo4j, as 2026.08.1 would be."
