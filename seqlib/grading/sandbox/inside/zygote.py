"""The fork server: a process with everything imported, from which submissions are forked.

It is started by exec with a clean environment and loads copies of a few modules under another
package name, so that neither a reference solution nor a case nor a score has ever been in the
memory of a process that runs student code. It obeys the judge over one socket.
"""

import contextlib
import functools
import gc
import inspect
import os
import resource
import select
import shutil
import signal
import site
import socket

import numpy as np

from ....subject import shortcuts
from . import child, codec, forks, landlock, processes, seccomp, syscalls, visible
from .shell import make_shell
from .warm import warm_up


class Server:
    """What is prepared once for all submissions.

    Parameters
    ----------
    options : dict
        ``package`` (folder of the course's package), ``packages`` (folders of installed
        packages), ``folder`` (ours, with an empty one called ``root``), ``torch`` and
        ``plots`` (what to import), ``refuse`` (names of functions that tasks refuse),
        ``landlock`` (the newest version to use).
    """

    def __init__(self, options):
        self.pid = os.getpid()
        self.root = os.path.join(options["folder"], "root")
        _import_libraries(options)
        self.shell = make_shell()
        warm_up(self.shell)
        shortcuts.prepare(options["refuse"])
        self.shown = visible.visible(options["packages"])
        self.hidden = visible.course_files(options["package"], self.shown)
        self.links = visible.links()
        self.rules = None
        landlock.pretend(options["landlock"])
        if landlock.abi() > 0:
            readable, split = visible.without(self.shown, set(self.hidden))
            self.rules = landlock.Rules(readable, split, visible.DEVICES)
        self.filters = {}
        if syscalls.supported():
            for name, program in {
                "namespaces": seccomp.allow_list(),
                "landlock": seccomp.allow_list(metadata=False),
                "signals": seccomp.allow_list(metadata=False, signals=False),
                "task": seccomp.no_fork(),
            }.items():
                self.filters[name] = seccomp.Filter(program)


def main(options):
    """Prepare, then fork a submission for every order until the judge is gone."""
    control = socket.socket(fileno=options["control"])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # a descriptor per Landlock rule
    server = Server(options)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    gc.collect()
    gc.freeze()
    gc.enable()
    np.random.seed(0)  # noqa: NPY002 - the same unseeded numbers for every submission
    control.send(
        codec.frame(
            {
                "pid": server.pid,
                "threads": len(os.listdir("/proc/self/task")),
                "landlock": landlock.abi(),
            }
        )
    )
    supervisors = {}  # descriptor -> process number
    while True:
        ready, _, _ = select.select([control, *supervisors], [], [], 0.5)
        _sweep(supervisors)
        if control in ready:
            message, descriptors, _, _ = socket.recv_fds(control, 1 << 17, 2)
            if not message:
                break
            order = codec.decode(message[codec.HEADER.size :])
            pid, descriptor = _spawn(server, control, order, *descriptors)
            supervisors[descriptor] = pid
    processes.end_descendants()
    shutil.rmtree(options["folder"], ignore_errors=True)


def _spawn(server, control, order, connection, status):
    """Fork S; answer the judge with its process number and a descriptor for it."""
    pid = forks.fork()
    if pid == 0:
        try:
            control.close()
            child.supervise(server, order, socket.socket(fileno=connection), status)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.write(status, codec.frame({"failed": f"{type(error).__name__}: {error}"}))
        finally:
            os._exit(0)
    os.close(connection)
    os.close(status)
    descriptor = os.pidfd_open(pid)
    socket.send_fds(control, [codec.frame({"pid": pid})], [descriptor])
    return pid, descriptor


def _sweep(supervisors):
    """Reap what has ended, and kill what became ours because its supervisor was killed."""
    for _ in range(1000):  # processes that keep forking are overtaken
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        alive = set(processes.children(os.getpid()))
        strays = alive - set(supervisors.values())
        if not strays:
            break
        for pid in strays:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    for descriptor, pid in list(supervisors.items()):
        if pid not in alive:
            del supervisors[descriptor]
            os.close(descriptor)


def _import_libraries(options):
    """Import and warm what notebooks use, with one thread each."""
    # The interpreter was started without the module site, which may run installed code.
    site.sethelper()
    site.setquit()
    site.setcopyright()
    np.linalg.norm(np.ones((8, 8)) @ np.ones((8, 8)))
    if options["torch"]:
        _import_torch()
    if options["plots"]:
        with contextlib.suppress(ImportError):
            import matplotlib.pyplot as plt  # noqa: F401


def _import_torch():
    """Import torch and take one training step: the optimiser imports much more at first use."""
    import torch

    from ....subject import modules  # noqa: F401 - loaded now, its file will be out of reach

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    layer = torch.nn.LSTM(2, 2)
    optimiser = torch.optim.Adam(layer.parameters())
    layer(torch.zeros(1, 1, 2))[0].sum().backward()
    optimiser.step()
    repr(torch.zeros(2))
    torch.manual_seed(0)
    _load_in_one_process(torch.utils.data.DataLoader)


def _load_in_one_process(loader):
    """Let a DataLoader use no worker processes: they would need sockets, and wait for ever."""
    original = loader.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        if given.get("num_workers"):
            for name in ("num_workers", "timeout", "prefetch_factor", "persistent_workers"):
                given.pop(name, None)
            given.pop("multiprocessing_context", None)
        original(**given)

    loader.__init__ = init
