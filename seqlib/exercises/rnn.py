"""The assignment ``rnn``: loss and batches of a language model, and a recurrent network."""

from seqlib.exercises import (
    _rnn_batches,
    _rnn_cross_entropy,
    _rnn_forward,
    _rnn_losses,
    _rnn_perplexity,
    _rnn_reverse,
    _rnn_step,
)
from seqlib.exercises.record import Assignment, Written

THREE_NUMBERS = Written(
    id="three_numbers",
    points=10,
    rubric=(
        "1 point: (a) ln 65 = 4.174 nats and perplexity 65, since no letter is preferred",
        "1 point: (a) a loss of 9 says that the untrained model is confident and mostly wrong "
        "(large logits), worse than guessing",
        "3 points: (b) mean over tokens 1.8, over sequences 1.5, over all positions 1.125 "
        "(1 point each)",
        "1 point: (b) the perplexity 3.08 is exp(1.125): divided by all positions",
        "1 point: (b) right is exp(1.8) = 6.05",
        "1 point: (c) right states 0.7616, 0.3634, 0.1797; the classmate's state is not "
        "carried, each step starts from h_0 = 0",
        "1 point: (c) the best possible loss of such a network is that of a table of pairs of "
        "letters",
        "1 point: (d) the targets are the inputs (not shifted), and a test that would show it",
    ),
)

ASSIGNMENT = Assignment(
    name="rnn",
    title="Language-model basics and the recurrent forward pass",
    tasks=(
        _rnn_losses.TASK,
        _rnn_cross_entropy.TASK,
        _rnn_perplexity.TASK,
        _rnn_batches.TASK,
        _rnn_step.TASK,
        _rnn_forward.TASK,
        _rnn_reverse.TASK,
    ),
    written=(THREE_NUMBERS,),
    grants=("seqlib.np.log_softmax", "seqlib.np.rnn_cell"),
    hours=3.0,
)
