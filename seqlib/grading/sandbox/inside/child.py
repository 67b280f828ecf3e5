"""The processes of one submission: supervisor S, student's process P, one process T a task.

S is forked by the fork server, locks itself in, forks P and waits; it runs no student code.
P runs the cells. For each task it forks T, which answers requests in the state that the cells
have left, so that what a task does to its process is undone with it.
"""

import builtins
import contextlib
import os
import random
import signal
import socket
import sys
import warnings

from ....subject.driver import Session
from ....subject.guard import Capture
from . import codec, forks, landlock, limits, namespaces, processes, shell, syscalls

# Bound here, because student code may replace what it finds in the module ``os``.
_fork, _exit, _waitpid = forks.fork, os._exit, os.waitpid

CHANNEL = 64  # the one descriptor that P keeps beside 0, 1 and 2


class Channel:
    """Frames over a socket, in the child.

    Parameters
    ----------
    descriptor : int
        Of the socket.
    passing : bool
        Whether descriptors may come with messages, which takes longer to look for.
    """

    def __init__(self, descriptor, *, passing=False):
        # With its kind given, the socket is not asked for it.
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)
        self._passing = passing
        self._data = bytearray()  # came, and was not asked for yet
        self._descriptors = []

    def send(self, value, limit=codec.MAX_BYTES):
        """Send one value of ``limit`` bytes at most."""
        self._connection.sendall(codec.frame(value, limit=limit))

    def read(self):
        """Return the next value; raise EOFError at the end."""
        return codec.read_frame(self.receive, markers=True)

    def receive(self, count):
        """Return the next ``count`` bytes."""
        while len(self._data) < count:
            size = min(max(count - len(self._data), 1 << 14), 1 << 20)
            if self._passing:
                part, descriptors, _, _ = socket.recv_fds(self._connection, size, 1)
                self._descriptors += descriptors
            else:
                part = self._connection.recv(size)
            if not part:
                raise EOFError
            self._data += part
        data = bytes(memoryview(self._data)[:count])
        del self._data[:count]
        return data

    def take_descriptor(self):
        """Return the descriptor that came with the last message."""
        return self._descriptors.pop()


def supervise(server, order, connection, status):
    """Be S: lock in, fork P, wait for it, end what it left, write how it ended to ``status``.

    Parameters
    ----------
    server : seqlib.grading.sandbox.inside.zygote.Server
        What the fork server has prepared.
    order : dict
        ``layers``, ``limits``, ``build``, ``home``, ``user``.
    connection : socket
        P's connection to the judge.
    status : int
        A pipe's end.
    """
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server.pid:
        _exit(1)
    os.setsid()
    os.umask(0o022)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    confined = False
    if "namespaces" in order["layers"]:
        namespaces.enter(
            server.root,
            shown=server.shown,
            hidden=server.hidden,
            links=server.links,
            build=order["build"],
            size=order["limits"]["folder"],
            entries=order["limits"]["folder_entries"],
        )
    else:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        os.chdir(order["home"])
        if "landlock" in order["layers"]:
            confined = landlock.keep_signals_inside() and os.geteuid() != 0
    parent = os.getpid()
    child = _fork()
    if child == 0:
        _run_student(server, order, connection, parent, confined)
    connection.close()
    descriptor = os.pidfd_open(child)

    def end(*_):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    _, ended = _waitpid(child, 0)
    os.write(status, codec.frame({"status": ended}))
    if "namespaces" not in order["layers"]:
        processes.end_descendants(confined)


def _run_student(server, order, connection, parent, confined):
    """Be P: give up what is left of our rights, then serve the judge."""
    bounds = limits.Limits(**order["limits"])
    layers = order["layers"]
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if "namespaces" in layers:
        namespaces.drop_privileges(order["user"])
        home, build = namespaces.HOME, namespaces.BUILD
    else:
        if os.getppid() != parent:
            _exit(1)
        home, build = order["home"], order["build"]
        if "landlock" in layers and os.geteuid() == 0:
            # The real user counts for the limit on processes. The effective user stays root,
            # without capabilities, since the interpreter may lie in a folder of root's.
            os.setgroups([])
            os.setresgid(order["user"], 0, 0)
            os.setresuid(order["user"], 0, 0)
            namespaces.drop_capabilities()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of user clears it
    _set_environment(home)
    if "landlock" in layers:
        if server.rules is None:
            raise OSError("the kernel offers no Landlock")
        server.rules.apply(readable=[build], writable=[home])
    os.dup2(connection.fileno(), CHANNEL)
    connection.detach()
    if "limits" in layers:
        limits.apply(bounds)
    os.closerange(3, CHANNEL)
    os.closerange(CHANNEL + 1, 1 << 20)
    task_filter = None
    if "seccomp" in layers:
        server.filters[order["filter"]].apply()
        task_filter = server.filters["task"]
    sys.path[:0] = [build, ""]
    sys.argv = [""]
    random.seed(0)  # the same unseeded numbers for every submission
    shell.begin(server.shell, bounds.output)
    channel = Channel(CHANNEL, passing=True)
    interpreter = server.shell
    server.__dict__.clear()
    channel.send({"ready": True})
    try:
        _serve(channel, interpreter, bounds, task_filter)
    except EOFError:
        _exit(0)


def _set_environment(home):
    keep = {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")}
    keep |= {k: os.environ[k] for k in ("MPLBACKEND", "OMP_THREAD_LIMIT") if k in os.environ}
    os.environ.clear()
    os.environ.update(keep)
    os.environ.update(HOME=home, TMPDIR=home, USER="student", LOGNAME="student", LANG="C.UTF-8")


def _serve(channel, interpreter, bounds, task_filter):
    """Carry out the judge's commands until it closes the connection."""
    tasks, ended = set(), {}
    carry_out = _requests(interpreter, channel, bounds.answer)
    while True:
        command = channel.read()
        if command["do"] == "cell":
            channel.send(shell.run_cell(interpreter, command["source"]))
        elif command["do"] == "task":
            descriptor = channel.take_descriptor()
            pid = _quiet_fork()
            if pid == 0:
                _run_task(interpreter, descriptor, bounds, task_filter)
            os.close(descriptor)
            tasks.add(pid)
            channel.send({"pid": pid})
        elif command["do"] == "request":
            carry_out(command)
        elif command["do"] == "end":
            pid = command["pid"]
            if pid in tasks and pid not in ended:
                ended[pid] = _waitpid(pid, 0)[1]
            tasks.discard(pid)
            channel.send({"status": ended.pop(pid, None)})
        _reap(tasks, ended)


def _reap(tasks, ended):
    """Collect finished children: they count as processes until then."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = _waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in tasks:
                ended[pid] = status


def _quiet_fork():
    """Fork without a warning of threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _fork()


def _run_task(interpreter, descriptor, bounds, task_filter):
    """Be T: answer requests until the judge closes the connection."""
    try:
        os.close(CHANNEL)
        if task_filter is not None:
            task_filter.apply()
        channel = Channel(descriptor)
        carry_out = _requests(interpreter, channel, bounds.answer)
        while True:
            carry_out(channel.read())
    except EOFError:
        _exit(0)
    finally:
        _exit(3)


def _requests(interpreter, channel, limit):
    """Return a function that carries out a request; what they keep is kept by expression."""
    sessions = {}

    def ask(number, args, kwargs):
        channel.send({"ask": number, "args": args, "kwargs": kwargs})
        answer = channel.read()
        if "error" in answer:
            raise _exception(*answer["error"])
        return answer["value"]

    def carry_out(message):
        expression = message["expression"]
        if expression not in sessions:
            sessions[expression] = Session(_evaluate(interpreter, expression), ask)
        answer(channel, sessions[expression], message, limit)

    return carry_out


def answer(channel, session, message, limit):
    """Carry out a request and send the reply, with the request's number."""
    reply = session.perform(message["request"]) | {"number": message["number"]}
    _answer(channel, reply, limit)


def _answer(channel, reply, limit):
    """Send a reply; one that is too large is replaced by a sentence that says so."""
    try:
        channel.send({"reply": reply}, limit)
    except codec.CodecError:
        size = f"{limit >> 20} MiB" if limit >> 20 else f"{limit} bytes"
        error = f"the result takes more than {size}"
        channel.send({"reply": reply | {"value": None, "fault": "unsupported", "error": error}})


def _evaluate(interpreter, expression):
    """Return the value of an expression over the notebook's names.

    If it has none, return a function that raises the reason, so that each request gets it.
    """
    if expression.isidentifier() and expression in interpreter.user_ns:
        return interpreter.user_ns[expression]
    with Capture():
        try:
            return eval(compile(expression, __file__, "eval"), interpreter.user_ns)
        except BaseException as error:
            reason = error

    def missing(*args, **kwargs):
        raise reason

    return missing


def _exception(name, message):
    """Make the exception that a function of the judge raised, if it is a built-in one."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        with contextlib.suppress(TypeError):
            return kind(message)
    return RuntimeError(f"{name}: {message}")
