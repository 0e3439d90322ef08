"""Lays out the folder that Neo4j lives in: its configuration, its password, and what is known of its store."""

import hashlib
import os
import re
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from reverie.errors import LocalNeo4jError
from reverie.local.java import Java
from reverie.local.options import LocalNeo4jOptions

USERNAME = "neo4j"
OLDEST_NEO4J = "2026.02"
_AUTH_ITERATIONS = 1024
_UNSAFE_MEMORY_FLAG_SINCE = 23

# Only Bolt listens, on loopback; nothing is announced to the network or reported to anybody. The two waits make a stop
# take 0.3 s instead of 10. Small transaction logs, since nobody copies them: they serve recovery alone. Settings that
# another version doesn't know are passed over.
_CONFIGURATION = """\
server.bolt.enabled=true
server.bolt.listen_address=127.0.0.1:{port}
server.bolt.advertised_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
server.fleet_discovery.enabled=false
dbms.fleet_manager.enabled=false
dbms.usage_report.enabled=false
server.memory.pagecache.size={page_cache}
db.logs.query.enabled=OFF
db.tx_log.rotation.size=32M
db.tx_log.rotation.retention_policy=100M size
internal.server.bolt.connection_shutdown_wait_time=0s
internal.server.bolt.thread_pool_shutdown_wait_time=0s
server.config.strict_validation.enabled=false
"""

# RollingFile opens for appending, as the console output of the process does, so that both can share neo4j.log. The
# console has what Neo4j would tell its debug log alone: why a database doesn't start, upon which it waits for ever.
_USER_LOG = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR">
  <Appenders>
    <RollingFile name="File" fileName="${config:server.directories.logs}/neo4j.log"
                 filePattern="${config:server.directories.logs}/neo4j.log.%i">
      <PatternLayout pattern="%d{yyyy-MM-dd HH:mm:ss.SSSZ}{GMT+0} %-5p %m%n"/>
      <SizeBasedTriggeringPolicy size="5 MB"/>
      <DefaultRolloverStrategy fileIndex="min" max="2"/>
    </RollingFile>
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="File"/></Root>
  </Loggers>
</Configuration>
"""
_SERVER_LOG = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR">
  <Appenders>
    <RollingFile name="File" fileName="${config:server.directories.logs}/debug.log"
                 filePattern="${config:server.directories.logs}/debug.log.%i">
      <PatternLayout pattern="%d{yyyy-MM-dd HH:mm:ss.SSSZ}{GMT+0} %-5p [%c{1.}] %m%n"/>
      <SizeBasedTriggeringPolicy size="5 MB"/>
      <DefaultRolloverStrategy fileIndex="min" max="2"/>
    </RollingFile>
    <Console name="Console" target="SYSTEM_OUT">
      <PatternLayout pattern="%d{yyyy-MM-dd HH:mm:ss.SSSZ}{GMT+0} %-5p %m%n"/>
    </Console>
  </Appenders>
  <Loggers>
    <Logger name="org.neo4j.dbms.database" level="INFO"><AppenderRef ref="Console" level="ERROR"/></Logger>
    <Root level="INFO"><AppenderRef ref="File"/></Root>
  </Loggers>
</Configuration>
"""


@dataclass(frozen=True, slots=True)
class Home:
    """The folder `neo4j` of a data folder, readable by its owner alone, as Neo4j `version` is to use it."""

    path: Path
    version: str

    @property
    def log_file(self) -> Path:
        return self.path / "logs" / "neo4j.log"

    @property
    def previous_log_file(self) -> Path:
        return self.path / "logs" / "neo4j.previous.log"

    @property
    def lock_file(self) -> Path:
        return self.path / "run.lock"

    @property
    def _data(self) -> Path:
        return self.path / "data"

    @property
    def _password_file(self) -> Path:
        return self.path / "password"

    @property
    def _version_file(self) -> Path:
        return self.path / "version"

    @property
    def _unfinished(self) -> Path:
        """There for as long as the store's first start isn't over."""
        return self.path / "unfinished"

    def check_version(self) -> None:
        """Raises LocalNeo4jError when the version is none, or too old, in itself or for this store."""
        if re.fullmatch(r"\d+\.\d+\.\d+", self.version) is None:
            raise LocalNeo4jError(f"{self.version} isn't a version of Neo4j, as 2026.08.1 would be.")
        if _version_key(self.version) < _version_key(OLDEST_NEO4J):
            raise LocalNeo4jError(f"Neo4j {self.version} is too old: {OLDEST_NEO4J} or newer is needed.")
        with suppress(FileNotFoundError):
            written = self._version_file.read_text(encoding="utf-8").strip()
            if _version_key(written) > _version_key(self.version):
                raise self.newer_store(f"Neo4j {written}")

    def newer_store(self, writer: str) -> LocalNeo4jError:
        """What to say of a store that `writer` has written."""
        return LocalNeo4jError(
            f"Neo4j {self.version} can't open the store in {self.path}, which {writer} has written: "
            "use that version or a newer one."
        )

    def prepare(self) -> str:
        """Makes the store ready for a start, and gives the password.

        A first start that was interrupted begins again from nothing: it has never been handed to anybody.
        """
        for folder in (self.path, self.path / "conf", self.path / "logs"):
            folder.mkdir(mode=0o700, exist_ok=True)
        if self._unfinished.exists() or not self._data.exists():
            self._unfinished.touch(mode=0o600)
            if self._data.exists():
                shutil.rmtree(self._data)
            password = secrets.token_urlsafe(24)
            self._write_private(self._password_file, password + "\n")
            (self._data / "dbms").mkdir(mode=0o700, parents=True)
            self._write_private(self._data / "dbms" / "auth.ini", _initial_user(password))
        else:
            try:
                password = self._password_file.read_text(encoding="ascii").strip()
            except FileNotFoundError:
                raise LocalNeo4jError(
                    f"The store in {self.path} can't be opened without its password, and {self._password_file} is gone."
                ) from None
        # Before the start, which may change the store.
        self._write_private(self._version_file, self.version + "\n")
        return password

    def finish_first_start(self) -> None:
        """Notes that the store is complete."""
        if self._unfinished.exists():
            (self._data / "dbms" / "auth.ini").unlink(missing_ok=True)
            self._unfinished.unlink()
            descriptor = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def write_configuration(self, options: LocalNeo4jOptions, java: Java, jars: list[Path], port: int) -> list[str]:
        """Writes what configures one run on `port`, and gives the arguments for `java`; its working folder is that of
        the jars.
        """
        conf = self.path / "conf"
        settings = _CONFIGURATION.format(port=port, page_cache=options.page_cache)
        (conf / "neo4j.conf").write_text(settings, encoding="utf-8")
        (conf / "user-logs.xml").write_text(_USER_LOG, encoding="utf-8")
        (conf / "server-logs.xml").write_text(_SERVER_LOG, encoding="utf-8")
        # By their relative paths: a class path can't name a folder that has a colon in its name.
        (conf / "class-path").write_text(f"-cp {':'.join(map(str, jars))}\n", encoding="utf-8")
        home = ["--home-dir", str(self.path), "--config-dir", str(conf), "--console-mode"]
        return [*self._flags(options, java), f"@{conf / 'class-path'}", "org.neo4j.server.Neo4jCommunity", *home]

    def _flags(self, options: LocalNeo4jOptions, java: Java) -> list[str]:
        flags = [
            f"-Xmx{options.heap}",
            "--enable-native-access=ALL-UNNAMED",
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "--add-opens=java.base/java.io=ALL-UNNAMED",
            "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
            "-Dlog4j2.disable.jmx=true",
            f"-XX:ErrorFile={str(self.path / 'logs' / 'java-error.log').replace('%', '%%')}",
        ]
        if java.version >= _UNSAFE_MEMORY_FLAG_SINCE:
            flags.append("--sun-misc-unsafe-memory-access=allow")
        if "jdk.incubator.vector" in java.modules:
            flags += ["--add-modules", "jdk.incubator.vector"]
        if options.quick:
            flags += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        return flags

    def _write_private(self, path: Path, text: str) -> None:
        """Writes a file for its owner's eyes alone, whole or not at all."""
        part = path.with_name(f"{path.name}.part")
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)


def _initial_user(password: str) -> str:
    """What Neo4j reads from `auth.ini` when it makes its first user.

    It is the line that `neo4j-admin dbms set-initial-password` writes, which takes a Java process for it and shows the
    password to whoever lists processes. SHA-256 over salt and password, then over its own result, 1,024 times in all:
    `org.neo4j.server.security.SecureHasher`.
    """
    salt = secrets.token_bytes(32)
    digest = hashlib.sha256(salt + password.encode()).digest()
    for _ in range(_AUTH_ITERATIONS - 1):
        digest = hashlib.sha256(digest).digest()
    return f"{USERNAME}:SHA-256,{digest.hex()},{salt.hex()},{_AUTH_ITERATIONS}:"


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
