"""nbgrader with less work: quicker imports, and one connection in place of many."""

import contextlib
import gc
import sys

# jsonschema builds a parser for each rule of this grammar when it is imported, which takes a
# second, to offer a check of international addresses that no notebook asks for. It does without
# where the module is not installed.
_GRAMMARS = "rfc3987_syntax"


@contextlib.contextmanager
def without_grammars():
    """Import jsonschema, and what imports it, as if the module of grammars were not there."""
    if _GRAMMARS in sys.modules:
        yield
        return
    sys.modules[_GRAMMARS] = None  # an import raises ModuleNotFoundError
    try:
        yield
    finally:
        del sys.modules[_GRAMMARS]


@contextlib.contextmanager
def without_collections():
    """Collect no garbage while much is imported, and never look through it again.

    What is imported stays, and to go through it again and again takes half a second.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


@contextlib.contextmanager
def one_transaction(gradebook):
    """Let all changes of a gradebook within this context be one transaction.

    nbgrader commits after every cell, and each commit waits for the disk. Here a commit sends
    the changes to the database, which takes them over at the end of the context, or drops them
    if that is left by an exception. What was read before is read anew.

    Parameters
    ----------
    gradebook : nbgrader.api.Gradebook
        Its session is another one meanwhile.
    """
    from sqlalchemy.orm import scoped_session, sessionmaker

    before = gradebook.db
    before.remove()
    with gradebook.engine.begin() as connection:
        options = {"bind": connection, "join_transaction_mode": "rollback_only"}
        options["expire_on_commit"] = False  # nobody else changes anything meanwhile
        gradebook.db = scoped_session(sessionmaker(autoflush=True, future=True, **options))
        try:
            yield
            gradebook.db.commit()
        finally:
            gradebook.db.remove()
            gradebook.db = before


@contextlib.contextmanager
def shared(gradebook, *modules):
    """Let some of nbgrader's modules use a gradebook that is open, whichever they open.

    Parameters
    ----------
    gradebook : nbgrader.api.Gradebook
        Which. They use it in a ``with`` statement, which must not close it.
    modules : module
        Those that say ``Gradebook(address)``.
    """
    before = [module.Gradebook for module in modules]
    for module in modules:
        module.Gradebook = lambda *_: gradebook
    try:
        yield
    finally:
        for module, kind in zip(modules, before, strict=True):
            module.Gradebook = kind


@contextlib.contextmanager
def version_read_here(api):
    """Let nbgrader find the version of a new gradebook without a process of its own.

    It runs the command ``alembic``, which must be on the path, and takes two seconds.

    Parameters
    ----------
    api : module
        ``nbgrader.api``.
    """
    before, api.get_alembic_version = api.get_alembic_version, _newest_version
    try:
        yield
    finally:
        api.get_alembic_version = before


def _newest_version():
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR

    return ScriptDirectory(ALEMBIC_DIR).get_current_head()
