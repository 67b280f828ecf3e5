"""The assignment ``decoder``: a language model, from its layers to training and sampling."""

from seqlib.exercises import (
    _decoder_cache,
    _decoder_distribution,
    _decoder_generate,
    _decoder_loss,
    _decoder_model,
    _decoder_train,
)
from seqlib.exercises.record import Assignment, Written

WHICH_MODEL = Written(
    id="which_model",
    points=10,
    rubric=(
        "2 points: (a) the standard deviations 0.16 and 8 (1 point each)",
        "1 point: (a) A starts near ln 168 = 5.12; B has drawn E with standard deviation 1",
        "1 point: (b) C is below the floor 0.651, by 45 standard errors: it sees the future",
        "1 point: (b) its text is garbage, since no later token is there to be looked at",
        "1 point: (b) D knows pairs of words, as counts do, E only how frequent words are",
        "1 point: (c) the right probabilities 0.867, 0.117, 0.016",
        "1 point: (c) the logits were multiplied by the temperature",
        "1 point: (d) 20 + 21 + ... + 119 = 6950 rows without a cache",
        "1 point: (d) 20 + 99 = 119 rows with a cache",
    ),
)

ASSIGNMENT = Assignment(
    name="decoder",
    title="A decoder-only language model",
    tasks=(
        _decoder_model.TASK,
        _decoder_loss.TASK,
        _decoder_distribution.TASK,
        _decoder_generate.TASK,
        _decoder_cache.TASK,
        _decoder_train.TASK,
    ),
    written=(WHICH_MODEL,),
    grants=(
        "seqlib.np.softmax",
        "seqlib.pt.DecoderConfig",
        "seqlib.pt.DecoderLM",
        "seqlib.pt.TransformerLayer",
    ),
    torch=True,
    hours=5.0,
)
