"""Inputs on which every known mistake shows: for answers that are one or two numbers."""


def drawn_clearly(draw, task, *, gap=0.003):
    """Draw arguments until each mistake gives the right numbers or clearly other ones.

    Two numbers agree by chance far more often than two arrays do: a mean of five losses that
    should have been a mean of six may differ from it by less than the tolerance.

    Parameters
    ----------
    draw : callable
        ``draw() -> tuple`` of fresh arguments.
    task : seqlib.exercises.record.Task
        Its answers are tuples of numbers, and each of its misconceptions is a switch.
    gap : float
        Smallest difference that is clear, relative to the right number or to 1.

    Returns
    -------
    tuple
        Arguments.
    """
    while True:
        args = draw()
        right = task.reference(*args)
        wrong = [task.variant(*args, wrong={m.name}) for m in task.misconceptions]
        if not any(
            _doubtful(a, b, gap) for guess in wrong for a, b in zip(guess, right, strict=True)
        ):
            return args


def _doubtful(a, b, gap):
    size = max(1.0, abs(b))
    return 1e-9 * size < abs(a - b) < gap * size  # False for NaN
