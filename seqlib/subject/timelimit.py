"""Stop Python code after a time limit, in its own process and thread."""

import contextlib
import signal
import threading
import time

PATIENCE = 3.0  # seconds on the clock for each CPU second of a limit
AGAIN = 0.5  # code that swallows the first interrupt gets another one
LOOK = 0.01  # shortest wait between two looks at the time that is left


class TimeLimit:
    """Context that interrupts the main thread after some CPU seconds, as Ctrl-C does.

    CPU seconds, so that the same code gets the same answer on a busy machine. Code that waits
    is stopped when ``PATIENCE`` times as many seconds have passed on the clock.

    It needs the main thread, Python's own handler of Ctrl-C, and threads; without them (in
    the browser, say) there is no limit. A process in the background may ignore Ctrl-C: then it
    heeds it within this context. A long call into compiled code ends first.

    Parameters
    ----------
    seconds : float or None
        CPU seconds of the process; None is no limit.

    Attributes
    ----------
    reached : bool
        Whether the limit was reached; a ``KeyboardInterrupt`` then came from here.
    """

    def __init__(self, seconds):
        self.seconds = seconds
        self.reached = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._ignored = False

    def __enter__(self):
        if self.seconds is not None and _interruptible():
            self._ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            if self._ignored:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            watch = threading.Thread(target=self._watch, daemon=True)
            with contextlib.suppress(RuntimeError):  # no threads here
                watch.start()
        return self

    def __exit__(self, *exc):
        self._over.set()
        with self._lock:  # an interrupt that is under way arrives before this is left
            pass
        if self._ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _watch(self):
        used, end = time.process_time(), time.monotonic() + PATIENCE * self.seconds
        wait = self.seconds
        while not self._over.wait(wait):
            left = min(used + self.seconds - time.process_time(), end - time.monotonic())
            if left > 0:
                wait = max(left, LOOK)
                continue
            with self._lock:
                if self._over.is_set():
                    return
                self.reached = True
                _interrupt()
            wait = AGAIN


def _interruptible():
    return threading.current_thread() is threading.main_thread() and signal.getsignal(
        signal.SIGINT
    ) in (signal.default_int_handler, signal.SIG_IGN)


def _interrupt():
    if hasattr(signal, "pthread_kill"):  # ends a sleep too
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        import _thread

        _thread.interrupt_main()
