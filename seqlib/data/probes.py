"""Tasks made to measure memory: copy, recall at a lag, addition, reversal.

Each function draws n examples with a generator. The tasks with tokens give ``inputs`` and
``targets`` of one shape, with the target -100 at every step that asks for nothing, which is
what ``cross_entropy`` ignores.
"""

import numpy as np

from seqlib._check import check_positive

__all__ = ["adding", "copy", "recall", "reversal"]

IGNORED = -100


def copy(n, rng, *, length, lag, V):
    """Draw sequences that are to be repeated ``lag`` steps later.

    The tokens 0 to V - 1 are symbols, V is a blank, V + 1 the sign to begin. With length 2,
    lag 3 and V = 4 the symbols 2 0 give the inputs ``[2, 0, 4, 5, 4]`` and the targets
    ``[-100, -100, -100, 2, 0]``.

    A model without memory can only guess: its best loss is ln V at each step with a target.

    Parameters
    ----------
    n : int
        Number of sequences.
    rng : numpy.random.Generator
        Source of the symbols, which are independent and equally likely.
    length : int
        Number of symbols.
    lag : int
        Steps from each symbol to its repetition, at least ``length``.
    V : int
        Number of different symbols.

    Returns
    -------
    inputs : ndarray of int of shape (n, T)
        Token ids below V + 2, with T = lag + length.
    targets : ndarray of int of shape (n, T)
        The symbols at the last ``length`` steps, -100 before.

    Raises
    ------
    ValueError
        If ``lag`` is shorter than ``length``.

    References
    ----------
    Hochreiter and Schmidhuber (1997), "Long Short-Term Memory", Neural Computation 9, Section
    5; in the form of Arjovsky, Shah and Bengio (2016), "Unitary Evolution Recurrent Neural
    Networks", Section 5.1, arXiv:1511.06464.
    """
    symbols = _symbols(n, rng, length, V)
    check_positive("lag", lag)
    if lag < length:
        raise ValueError(
            f"lag must be at least length = {length}, got {lag}; the copy begins when all "
            "symbols have been read"
        )
    return _answer_later(symbols, symbols, lag, V)


def reversal(n, rng, *, length, V):
    """Draw sequences that are to be repeated backwards.

    Tokens and layout as in :func:`copy`: with V = 4 the symbols 2 0 3 give the inputs
    ``[2, 0, 3, 5, 4, 4]`` and the targets ``[-100, -100, -100, 3, 0, 2]``. The last symbol is
    asked for after one step and the first after 2 length - 1.

    Parameters
    ----------
    n : int
        Number of sequences.
    rng : numpy.random.Generator
        Source of the symbols, which are independent and equally likely.
    length : int
        Number of symbols.
    V : int
        Number of different symbols.

    Returns
    -------
    inputs : ndarray of int of shape (n, T)
        Token ids below V + 2, with T = 2 length.
    targets : ndarray of int of shape (n, T)
        The symbols from last to first at the last ``length`` steps, -100 before.
    """
    symbols = _symbols(n, rng, length, V)
    return _answer_later(symbols, symbols[:, ::-1], length, V)


def recall(n, rng, *, lag, V):
    """Draw sequences whose first token is asked for after ``lag`` steps of other tokens.

    The tokens 0 to V - 1 are symbols, V is the question. With lag 3 and V = 4 a sequence is
    ``[2, 0, 3, 4]`` with the targets ``[-100, -100, -100, 2]``. All symbols are independent
    and equally likely, so that whoever does not remember the first names it with probability
    1 / V.

    Parameters
    ----------
    n : int
        Number of sequences.
    rng : numpy.random.Generator
        Source of the symbols.
    lag : int
        Steps from the first token to the question.
    V : int
        Number of different symbols.

    Returns
    -------
    inputs : ndarray of int of shape (n, T)
        Token ids below V + 1, with T = lag + 1.
    targets : ndarray of int of shape (n, T)
        The first token at the last step, -100 before.
    """
    check_positive("lag", lag)
    inputs = np.concatenate([_symbols(n, rng, lag, V), np.full((n, 1), V)], axis=1)
    targets = np.full_like(inputs, IGNORED)
    targets[:, -1] = inputs[:, 0]
    return inputs, targets


def adding(n, rng, *, T):
    """Draw rows of numbers of which two are marked; their sum is asked for at the end.

    The row 0.1 0.5 0.2 0.9 with marks 0 1 0 1 has the target 1.4. The numbers are uniform on
    [0, 1), one mark falls into the first half of the row and one into the second. Who always
    answers 1 has the mean squared error 1/6 = 0.167, twice the variance of a number.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : numpy.random.Generator
        Source of numbers and marks.
    T : int
        Steps, at least 2.

    Returns
    -------
    inputs : ndarray of shape (n, T, 2)
        Number and mark (1 or 0) of each step, in float64.
    targets : ndarray of shape (n,)
        Sums of the two marked numbers.

    Raises
    ------
    ValueError
        If T is below 2.

    References
    ----------
    Hochreiter and Schmidhuber (1997), "Long Short-Term Memory", Neural Computation 9, Section
    5.4, in the form with uniform numbers on [0, 1) and one mark in each half.
    """
    check_positive("n", n)
    check_positive("T", T)
    if T < 2:
        raise ValueError(f"T must be at least 2, one step for each marked number, got {T}")
    values, marks, rows = rng.random((n, T)), np.zeros((n, T)), np.arange(n)
    first, second = rng.integers(T // 2, size=n), rng.integers(T // 2, T, size=n)
    marks[rows, first] = marks[rows, second] = 1
    return np.stack([values, marks], axis=-1), values[rows, first] + values[rows, second]


def _symbols(n, rng, length, V):
    for name, value in (("n", n), ("length", length), ("V", V)):
        check_positive(name, value)
    return rng.integers(V, size=(n, length))


def _answer_later(symbols, answer, lag, V):
    """Ask for ``answer`` from step ``lag`` on: blanks between, a sign where it begins."""
    n, length = symbols.shape
    inputs = np.full((n, lag + length), V)
    inputs[:, :length] = symbols
    inputs[:, lag] = V + 1
    targets = np.full_like(inputs, IGNORED)
    targets[:, lag:] = answer
    return inputs, targets
