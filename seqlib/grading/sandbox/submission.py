"""A submission in the sandbox: its cells in order, its functions as subjects."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from .errors import Fault
from .outputs import clean_outputs, error_output, size
from .remote import EndState, RemoteSubject
from .spawned import Spawned

_NOTES = 10_000  # characters beyond the limit, for notes and the form of outputs
_ADMINISTRATION = 1.0  # CPU seconds for P to fork or reap a task


@dataclass(frozen=True)
class CellResult:
    """What came of one cell.

    Attributes
    ----------
    outputs : list of dict
        In nbformat's form, text and PNG only.
    ok : bool
        Whether it ran without an error.
    seconds : float
        On the clock.
    fault : str or None
        ``"timeout"``, ``"crash"``, ``"memory"`` or ``"protocol"`` if the cell ended or
        blocked the process and is left out from then on; ``"stopped"`` if it was not run,
        because the submission had been given up; else None.
    """

    outputs: list = field(default_factory=list)
    ok: bool = True
    seconds: float = 0.0
    fault: str | None = None


class Task(NamedTuple):
    """The process of one task.

    Attributes
    ----------
    spawned : Spawned
        The processes to which it belongs.
    number : int or None
        Its process number there; None for the process that runs the cells.
    """

    spawned: Spawned
    number: int | None

    @property
    def connection(self):
        """Connection to it."""
        return self.spawned.connection(self.number)


class Submission:
    """Cells and tasks of one notebook; made by :meth:`Sandbox.open`.

    A cell that ends or blocks the process is left out: the process is started again, the
    earlier cells are run again, and the submission goes on.

    Parameters
    ----------
    sandbox : Sandbox
        Where it runs.
    build : Path
        Folder of the student build.
    """

    def __init__(self, sandbox, build):
        self.limits = sandbox.limits
        self._sandbox, self._build = sandbox, build
        self._deadline = time.monotonic() + self.limits.patience * self.limits.submission
        self._sources = []
        self._skipped = self._restarts = 0
        self._output = 2 * self.limits.output + _NOTES
        self._given_up = None
        self._spawned = None
        self._start()

    @property
    def cells_run(self):
        """How many cells made the present state."""
        return len(self._sources)

    @property
    def given_up(self):
        """Why no more is run, a sentence; None while the submission goes on."""
        if self._given_up is None and time.monotonic() > self._deadline:
            self._given_up = (
                f"the notebook took longer than {self.limits.submission:g} s altogether"
            )
        return self._given_up

    def run_cell(self, source):
        """Run a cell after those run so far.

        Parameters
        ----------
        source : str
            Python, with IPython's magics.

        Returns
        -------
        CellResult

        Raises
        ------
        SandboxError
            If the sandbox itself failed: not the submission's doing.
        """
        start = time.monotonic()
        try:
            result = self._live().run_cell(source, self.watch(self.limits.cell))
            if type(result) is not dict:
                raise Fault("protocol", "the answer is not a result")
        except Fault as fault:
            return self._leave_out(fault, time.monotonic() - start)
        self._sources.append(source)
        # The far side keeps to the limit unless it was tampered with.
        outputs = clean_outputs(result.get("outputs"), self._output)
        self._output -= sum(map(size, outputs))
        return CellResult(outputs, result.get("ok") is True, time.monotonic() - start)

    def subject(self, expression):
        """Return a function or class of the notebook as a subject.

        Parameters
        ----------
        expression : str
            Evaluated over the notebook's names in the present state: ``"attention"``.

        Returns
        -------
        RemoteSubject
        """
        return RemoteSubject(self, expression)

    def end_state(self, expression):
        """Return the same for a notebook that has run to its end, without a process for it."""
        return EndState(self, expression)

    def process_numbers(self):
        """Return its processes at present with the time when each started, for tests."""
        return {} if self._spawned is None else self._spawned.process_numbers()

    def close(self):
        """End all processes of the submission."""
        if self._spawned is not None:
            self._spawned.close()
            self._spawned = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # What RemoteSubject uses.

    def watch(self, seconds):
        """Return the limits of an operation of ``seconds`` within those of the submission."""
        return self._live().watch(seconds, self._deadline)

    def open_task(self):
        """Fork a process in the present state; start P again if it has died.

        Raises
        ------
        Fault
            If there is none to be had.
        """
        while True:
            spawned = self._live()
            try:
                number = spawned.open_task(self.watch(_ADMINISTRATION))
            except Fault as fault:
                self._drop(fault)
                self._restart(fault)
            else:
                return Task(spawned, number)

    def itself(self):
        """Return the process that runs the cells in place of one of a task."""
        return Task(self._live(), None)

    def leave_task(self, task):
        """Let a task end whose process answers no more requests."""
        if task.spawned is self._spawned:
            self._spawned.leave_task(task.number)

    def end_task(self, task):
        """End the process of a task; return its wait status, None if that is not known."""
        if task.spawned is not self._spawned:
            return None  # it ended with the process that it was forked from
        if task.number is None:
            self.close()
            return None
        try:
            return self._spawned.end_task(task.number, self._spawned.watch(_ADMINISTRATION))
        except Fault as fault:
            self._drop(fault)
            return None

    def _live(self):
        """Return the processes, started again if they are gone, in the present state."""
        if self.given_up is not None:
            raise Fault("stopped", self.given_up)
        while self._spawned is None:
            self._start()
            for source in self._sources:
                watch = self._spawned.watch(self.limits.cell, self._deadline)
                try:
                    self._spawned.run_cell(source, watch)
                except Fault as fault:
                    self._drop(fault)
                    self._restart(fault)
                    break
        return self._spawned

    def _start(self):
        self._spawned = self._sandbox.spawn(self._build)

    def _restart(self, fault):
        self._restarts += 1
        if self._restarts > self.limits.restarts:
            self._given_up = (
                f"the notebook's process had to be started more than {self.limits.restarts} "
                f"times ({fault})"
            )
            raise Fault("stopped", self._given_up)

    def _leave_out(self, fault, seconds):
        if fault.kind == "stopped":
            message = f"This cell was not run: {fault}."
            return CellResult([error_output("NotRun", message)], False, seconds, fault.kind)
        how = self._drop(fault)
        message = _SAYS[fault.kind].format(fault=fault, limits=self.limits, how=how)
        self._skipped += 1
        if self._skipped > self.limits.skipped:
            self._given_up = f"more than {self.limits.skipped} cells ended or blocked Python"
        return CellResult([error_output("CellLeftOut", message)], False, seconds, fault.kind)

    def _drop(self, fault):
        """End the processes after a fault of P; return how P ended if it did so itself.

        Raises
        ------
        SandboxError
            If it was not P's doing.
        """
        try:
            return self._spawned.how_it_ended() if fault.kind == "crash" else None
        finally:
            self.close()


_SAYS = {
    "timeout": "This cell was left out: it did not finish within {limits.cell:g} s.",
    "crash": "This cell was left out: it ended the Python process ({how}).",
    "memory": "This cell was left out: it used {fault}.",
    "protocol": "This cell was left out: {fault}.",
}
