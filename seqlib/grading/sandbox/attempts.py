"""What hostile code would try, in bounded form, for the doctor and the probe.

The text of this file is run as a cell in the sandbox, so it imports nothing of the course.
Each function returns a sentence that says what it achieved, or None, or raises: then it was
stopped. ``facts`` is what the doctor knows from outside: paths, ports, process numbers.
"""

import contextlib
import ctypes
import gc
import os
import resource
import signal
import socket
import sys
import threading
import time

MIB = 2**20


def course_files(facts):
    """Read the course's package, which holds the reference solutions."""
    for name in ("exercises/__init__.py", "np/__init__.py"):
        with open(os.path.join(facts["package"], name)) as file:
            return f"read {len(file.read())} characters of {name}"


def other_files(facts):
    """Read a file of the machine and one beside the submission."""
    for path in ("/etc/passwd", facts["secret"]):
        with contextlib.suppress(OSError), open(path) as file:
            return f"read {len(file.read())} characters of {path}"


def file_names(facts):
    """Learn whether a file outside exists and how large it is."""
    return f"learned its size, {os.stat(facts['secret']).st_size} bytes"


def writing(facts):
    """Change, add and touch files outside."""
    folder = os.path.dirname(facts["secret"])
    for path, mode in ((facts["secret"], "a"), (os.path.join(folder, "added"), "w")):
        with contextlib.suppress(OSError), open(path, mode) as file:
            file.write("changed")
            return f"wrote to {path}"
    for change in (lambda p: os.chmod(p, 0o777), lambda p: os.utime(p, (0, 0)), os.unlink):
        with contextlib.suppress(OSError):
            change(facts["secret"])
            return "changed the mode, the time or the name of a file"


def processes(facts):
    """Read what /proc says of other processes."""
    for pid in (facts["judge"], "self", 1):
        for name in ("environ", "cmdline", "maps"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}") as file:
                return f"read {name} of process {pid}, {len(file.read())} characters"


def connecting(facts):
    """Reach a server over TCP, UDP and two kinds of Unix sockets."""
    for family, kind, address in (
        (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", facts["tcp"])),
        (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", facts["udp"])),
        (socket.AF_UNIX, socket.SOCK_STREAM, facts["abstract"]),
        (socket.AF_UNIX, socket.SOCK_STREAM, facts["path"]),
    ):
        with contextlib.suppress(OSError), socket.socket(family, kind) as connection:
            connection.settimeout(1)
            connection.connect(address)
            connection.send(b"?")
            return f"sent a byte to {address!r}"


def signalling(facts):
    """Signal the judge and another process of the same user."""
    for pid in (facts["judge"], facts["victim"]):
        with contextlib.suppress(OSError):
            os.kill(pid, 0)
            return f"may signal process {pid}"


def tracing(facts):
    """Read the memory of another process of the same user."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, facts["victim"], None, None) == 0:  # PTRACE_ATTACH
        libc.ptrace(17, facts["victim"], None, None)
        return f"attached to process {facts['victim']}"


def executing(facts):
    """Replace this process by another program: it then ends with that program's status."""
    for path in ("/bin/true", "/usr/bin/true", facts["python"]):
        with contextlib.suppress(OSError):
            os.execv(path, [path, "-c", "0"])


def privileges(facts):
    """Get other rights: root, namespaces, mounts, higher limits."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.getuid() != 0:
        with contextlib.suppress(OSError):
            os.setuid(0)
            return "became root"
    if libc.unshare(0x10000000) == 0:
        return "made a user namespace"
    if libc.mount(b"none", b"/", None, 1 << 18, None) == 0:
        return "changed a mount"
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (facts["files"] + 1, facts["files"] + 1))
        return "raised a limit"


def descriptors(facts):
    """Find open descriptors beside the standard ones and the connection to the judge."""
    null = os.stat(os.devnull).st_rdev
    found = []
    for number in range(3, 1024):
        with contextlib.suppress(OSError):
            if os.fstat(number).st_rdev != null:
                found.append(number)
    if len(found) > 1:
        return f"found the descriptors {found}"


def environment(facts):
    """Find a secret of the judge's environment."""
    if facts["token"] in repr(dict(os.environ)):
        return "read it in os.environ"
    with contextlib.suppress(OSError), open("/proc/self/environ") as file:
        if facts["token"] in file.read():
            return "read it in /proc/self/environ"


def references(facts):
    """Find a module or function of the real library in the memory of this process."""
    for name in sys.modules:
        if name.startswith(("seqlib.exercises", "seqlib.judge")):
            return f"found the module {name}"
    for thing in gc.get_objects():
        code = getattr(thing, "__code__", None) if callable(thing) else None
        if facts["package"] in getattr(code, "co_filename", ""):
            return f"found the function {thing.__name__}"


def finders(facts):
    """Import the real library through what the interpreter or an installation offers."""
    import importlib

    import seqlib

    build = os.path.dirname(os.path.dirname(seqlib.__file__))
    for name in [n for n in sys.modules if n.partition(".")[0] == "seqlib"]:
        del sys.modules[name]
    sys.meta_path[:] = [f for f in sys.meta_path if getattr(f, "__module__", "") != "seqlib"]
    sys.path[:] = [p for p in sys.path if p not in ("", build)] + [facts["source"]]
    importlib.invalidate_caches()
    module = importlib.import_module("seqlib.exercises")
    return f"imported {module.__name__}"


def many_threads(facts):
    """Start many threads."""
    wake = threading.Event()
    threads = []
    with contextlib.suppress(RuntimeError):
        while len(threads) < 4 * facts["processes"]:
            thread = threading.Thread(target=wake.wait, daemon=True)
            thread.start()
            threads.append(thread)
    wake.set()
    if len(threads) > facts["processes"]:
        return f"started {len(threads)} threads"


def many_processes(facts):
    """Start many processes."""
    children = []
    with contextlib.suppress(OSError):
        while len(children) < 2 * facts["processes"]:
            if (pid := os.fork()) == 0:
                time.sleep(30)
                os._exit(0)
            children.append(pid)
    for pid in children:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if len(children) > facts["processes"]:
        return f"started {len(children)} processes"


def much_memory(facts):
    """Fill more memory than is allowed."""
    held = []
    while len(held) * 16 * MIB < 2 * facts["memory"]:
        held.append(bytearray(b"x") * (16 * MIB))
    return f"filled {len(held) * 16} MiB"


def much_memory_in_parts(facts):
    """Fill more memory than is allowed with several processes, each within its limit."""
    import mmap

    for _ in range(6):
        if os.fork() == 0:
            block = mmap.mmap(-1, facts["memory"] // 2)  # shared, as files in memory are
            for _ in range(len(block) // MIB):
                block.write(b"x" * MIB)
            time.sleep(30)
            os._exit(0)
    time.sleep(20)
    return "filled it and waited"


def one_large_file(facts):
    """Write one file that is larger than allowed."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    written = 0
    with contextlib.suppress(OSError), open("large", "wb", buffering=0) as file:
        while written < 4 * facts["file_size"]:
            written += file.write(b"x" * MIB)
    if written > facts["file_size"]:
        return f"wrote {written // MIB} MiB"


def many_files(facts):
    """Write more files than fit the folder."""
    written = 0
    with contextlib.suppress(OSError):
        for number in range(8 * facts["folder"] // facts["file_size"]):
            with open(f"part{number}", "wb") as file:
                written += file.write(b"x" * (facts["file_size"] // 2))
                time.sleep(0.05)
    if written > facts["folder"]:
        return f"wrote {written // MIB} MiB"


def endless(facts):
    """Compute for ever, whatever is raised."""
    while True:
        with contextlib.suppress(BaseException):
            while True:
                pass


def stopping(facts):
    """Stop this process and wait."""
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)
    return "waited a minute"


def flooding(facts):
    """Print without end."""
    for _ in range(2000):
        print("x" * 100_000)


def forging(facts):
    """Write an answer of one's own on the connection to the judge."""
    for number in range(3, 128):
        with contextlib.suppress(OSError):
            os.write(number, b"SEQ1" + (10 * 2**30).to_bytes(8, "little"))
    time.sleep(1)


def staying(facts):
    """Leave a process behind that has left its session and ignores signals."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 32):
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_IGN)
            time.sleep(300)
        os._exit(0)
    os.wait()
