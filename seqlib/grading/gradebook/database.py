"""The database of a gradebook: others who write to it, and what can be wrong with its address.

SQLite lets one writer in after the other. PostgreSQL lets them work at the same time and undoes
what one of them did where that cannot be reconciled; the undone work is to be done again.
"""

import contextlib
import logging
import random
import time

ATTEMPTS = 10
_LOCK = int.from_bytes(b"seqlib")  # one of the numbers that all programs of a database share
# Where others were in the way, https://www.postgresql.org/docs/current/errcodes-appendix.html:
# undone in favour of another transaction, a lock not had, the same thing just made by others.
_IN_THE_WAY = ("40", "55P03", "23505", "42P07", "42710")


def repeated(work, *, attempts=ATTEMPTS):
    """Do work on a database, again where others were in the way.

    Parameters
    ----------
    work : callable
        Without arguments; all or nothing of it is in the database at its end.
    attempts : int
        How often it is tried.

    Returns
    -------
    object
        What ``work`` returns. An error that has another cause, or the last one, is raised.
    """
    for attempt in range(1, attempts + 1):
        try:
            with _unlogged():
                return work()
        except Exception as error:
            if attempt == attempts or not in_the_way(error):
                raise
            # Of different length, so that two who met do not meet again.
            time.sleep(random.uniform(0.5, 1.5) * 0.02 * attempt)
    raise AssertionError("unreachable")


def in_the_way(error):
    """Whether an error says that another writer was in the way."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        state = getattr(getattr(error, "orig", None), "sqlstate", None)
        if state is not None and state.startswith(_IN_THE_WAY):
            return True
        # nbgrader raises an error of its own while it handles that of the database.
        error = error.__cause__ or error.__context__
    return False


@contextlib.contextmanager
def alone(address):
    """Keep others waiting who want the same, in another process or on another machine.

    Parameters
    ----------
    address : str
        Of a database. In SQLite, where a writer is alone anyway, nothing is done.
    """
    from sqlalchemy import create_engine, make_url, text

    if make_url(address).get_backend_name() != "postgresql":
        yield
        return
    engine = create_engine(address)
    try:
        # The lock ends with the transaction, however that ends.
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            yield
    finally:
        engine.dispose()


@contextlib.contextmanager
def problems_of(address):
    """Turn what is wrong with the address of a gradebook into a sentence that names it.

    Raises
    ------
    ValueError
        If there is no such kind of database, or it does not answer or let us in.
    RuntimeError
        If its driver is not installed.
    """
    from sqlalchemy import exc

    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("psycopg"):
            raise
        raise RuntimeError(
            f"a gradebook in PostgreSQL needs {error.name}, which is not installed: "
            'pip install "seqlib-course[desk]"'
        ) from error
    except (exc.ArgumentError, exc.NoSuchModuleError, exc.OperationalError) as error:
        reason = " ".join(str(getattr(error, "orig", error)).split())
        raise ValueError(
            "CourseDirectory.db_url must be the address of a gradebook that can be opened, "
            f"got {shown(address)}: {reason}"
        ) from error


def shown(address):
    """Return an address of a database without its password."""
    from sqlalchemy import exc, make_url

    try:
        return make_url(address).render_as_string(hide_password=True)
    except exc.ArgumentError:
        # Whatever it is, the part before an @ may be a password.
        return f"...@{address.rpartition('@')[2]}" if "@" in address else repr(address)


@contextlib.contextmanager
def _unlogged():
    """Keep nbgrader from logging, with a traceback, what it raises anyway."""

    def other(record):
        return not str(record.msg).startswith("Rolling back session")

    log = logging.getLogger("tornado.application")
    log.addFilter(other)
    try:
        yield
    finally:
        log.removeFilter(other)
