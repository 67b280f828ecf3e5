"""A PostgreSQL server of the tests' own on loopback, with the programs of Debian's package."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

from dask_tools import free_port

OWNER = "postgres"


def programs():
    """Return the folder of the newest server's programs, None if there is none."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
    return None if newest is None else newest.parent


def why_not():
    """Return why no server can be started here; empty if one can."""
    if programs() is None:
        return "needs PostgreSQL: apt-get install postgresql"
    if os.geteuid() == 0:  # which initdb refuses to be run by
        try:
            pwd.getpwnam(OWNER)
        except KeyError:
            return f"needs a user {OWNER}, as root may not run PostgreSQL"
    return ""


class Server:
    """A server with one user, who has a password; each database of it is made anew."""

    user, password = "instructor", "ein Geheimnis:@/%"

    def __init__(self, folder):
        self.folder, self.port = Path(folder), free_port()

    def _run(self, program, *arguments):
        command = [str(programs() / program), *arguments]
        if os.geteuid() == 0:
            command = [
                "setpriv",
                f"--reuid={OWNER}",
                f"--regid={OWNER}",
                "--clear-groups",
                *command,
            ]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def make(self):
        if os.geteuid() == 0:
            shutil.chown(self.folder, OWNER, OWNER)
        (self.folder / "password").write_text(self.password + "\n")
        self._run(
            "initdb",
            "--pgdata=data",
            f"--username={self.user}",
            "--pwfile=password",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-sync",
        )

    def start(self):
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' "
            "-c fsync=off -c deadlock_timeout=200ms"
        )
        self._run(
            "pg_ctl", "start", "--pgdata=data", "--wait", "--log=log", f"--options={options}"
        )

    def stop(self, mode="fast"):
        self._run("pg_ctl", "stop", "--pgdata=data", "--wait", f"--mode={mode}")

    def connect(self, database="postgres", **options):
        """Return a connection, which commits after each statement."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            password=self.password,
            dbname=database,
            autocommit=True,
            **options,
        )

    def address(self, database, *, password=None):
        """Return the address of a database as a configuration names it."""
        from sqlalchemy import URL

        who = {"username": self.user, "password": password or self.password}
        where = {"host": "127.0.0.1", "port": self.port, "database": database}
        return URL.create("postgresql+psycopg", **who, **where).render_as_string(
            hide_password=False
        )

    def new_database(self, name):
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.address(name)


@contextlib.contextmanager
def server():
    """Yield a running server, and leave nothing of it."""
    # Not in pytest's folders, which the server's own user may not enter.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        running = Server(folder)
        running.make()
        running.start()
        try:
            yield running
        finally:
            running.stop("immediate")
