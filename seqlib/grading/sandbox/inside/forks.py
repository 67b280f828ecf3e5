"""Forking without what libraries want done at every fork, where there is nothing to do.

Python calls functions of ``threading``, ``logging`` and others at each fork, which put their
locks in order. That takes half of the time of a fork, and a process with one thread holds none
of them. Here they are kept, and called where there are more threads or a notebook forks.
"""

import _thread
import os

_hooks = []  # dicts of what was given to os.register_at_fork
_fork = os.fork


def keep_hooks():
    """Keep what is registered from now on in place of having it called at each fork."""
    os.register_at_fork = _register
    os.fork = _fork_with_hooks


def fork():
    """Fork as ``os.fork`` does; quickly, where this thread is the only one."""
    return _fork() if _thread._count() == 0 else _fork_with_hooks()


def _register(*, before=None, after_in_child=None, after_in_parent=None):
    hooks = {"child": after_in_child, "parent": after_in_parent}
    _hooks.append({"before": before} | hooks)


def _fork_with_hooks():
    _call("before", reversed(_hooks))
    pid = -1
    try:
        pid = _fork()
    finally:
        _call("parent" if pid else "child", _hooks)
    return pid


def _call(when, hooks):
    for hook in list(hooks):
        if hook[when] is not None:
            hook[when]()
