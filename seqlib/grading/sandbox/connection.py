"""The judge's end of a connection to student code: no wait without a limit.

Whatever the far side does (no answer, half an answer, an endless one, not reading what is
sent), sending and reading end with a value or a :class:`Fault`.
"""

import contextlib
import select
import socket
import time

from .errors import Fault
from .inside import codec

LOOK = 0.1  # seconds between two looks at what the processes use
_CHUNK = 1 << 18


class Watch:
    """Limits of one operation: seconds of CPU, seconds on the clock, memory.

    Parameters
    ----------
    seconds : float
        CPU seconds, counted from the first look.
    deadline : float
        End on the clock, as ``time.monotonic``.
    look : callable or None
        ``look() -> Usage``, which may be 0.1 s old; raises :class:`Fault` where another
        limit is reached.
    """

    def __init__(self, seconds, deadline, look=None):
        self.seconds, self.deadline, self._look = seconds, deadline, look
        self._start = None

    def wait(self, readable=(), writable=()):
        """Return when one of the sockets is ready; raise ``Fault`` at a limit."""
        while True:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise self._timeout()
            if self._look is not None:
                used = self._look().seconds
                self._start = used if self._start is None else self._start
                if used - self._start > self.seconds:
                    raise self._timeout()
            if any(select.select(readable, writable, [], min(left, LOOK))):
                return

    def _timeout(self):
        return Fault("timeout", f"no answer within {self.seconds:g} s")


class Connection:
    """Frames over a socket to a process that may be hostile."""

    def __init__(self, connection):
        connection.setblocking(False)
        self._socket = connection
        self._data = bytearray()  # came, and was not asked for yet

    def send(self, value, watch, descriptor=None):
        """Send one value, with a file descriptor if one is given.

        Raises
        ------
        Fault
            If the far side is gone or does not read in time.
        CodecError
            If the value is too large or not plain: a mistake of the judge.
        """
        self.send_frame(codec.frame(value), watch, descriptor)

    def send_frame(self, data, watch, descriptor=None):
        """Send a value as :func:`seqlib.grading.sandbox.inside.codec.frame` has made it."""
        data = memoryview(data)
        descriptors = [] if descriptor is None else [descriptor]
        while data:
            try:
                if descriptors:
                    sent = socket.send_fds(self._socket, [data[:_CHUNK]], descriptors)
                else:
                    sent = self._socket.send(data[:_CHUNK])
            except BlockingIOError:
                watch.wait(writable=[self._socket])
            except OSError:
                raise Fault("crash", "the process has ended") from None
            else:
                data, descriptors = data[sent:], []

    def read(self, watch, limit):
        """Return the next value, of ``limit`` bytes at most.

        Raises
        ------
        Fault
            If there is none in time, the far side is gone, or its bytes are no value.
        """
        try:
            return codec.read_frame(lambda n: self._receive(n, watch), limit=limit)
        except codec.CodecError as error:
            raise Fault("protocol", f"the answer could not be read: {error}") from None

    def nothing_more(self):
        """Whether no byte has come after the last value."""
        try:
            return not self._data and not self._socket.recv(1, socket.MSG_PEEK)
        except OSError:  # nothing yet
            return True

    def finish(self):
        """Say that nothing more is sent."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    @property
    def ended(self):
        """Whether the far side has ended, once all that it sent was read."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self):
        """Close the connection."""
        self._socket.close()

    def _receive(self, count, watch):
        while len(self._data) < count:
            watch.wait(readable=[self._socket])
            try:
                # Plain recv: descriptors that the far side attaches are dropped.
                part = self._socket.recv(_CHUNK)
            except OSError:
                part = b""
            if not part:
                raise Fault("crash", "the process has ended")
            self._data += part
        data = bytes(memoryview(self._data)[:count])
        del self._data[:count]
        return data
