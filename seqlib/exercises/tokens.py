"""The assignment ``tokens``: from text to token ids, to vectors, and to their positions."""

from seqlib.exercises import (
    _tokens_decode,
    _tokens_embed,
    _tokens_embed_backward,
    _tokens_encode,
    _tokens_merge,
    _tokens_pairs,
    _tokens_positions,
    _tokens_train,
)
from seqlib.exercises.record import Assignment, Written

PER_BYTE = Written(
    id="per_byte",
    points=10,
    rubric=(
        "1 point: (a) bits per byte 6 / (5 ln 2) = 1.731, with the bytes C3, A9, 61, 62, 63",
        "1 point: (a) 0.962 = 6 / (9 ln 2): each of C3 and A9 was decoded alone and counted as "
        "the three bytes of U+FFFD",
        "2 points: (b) A: log2(3) = 1.585 bits per byte; B: 40 log2(12) / 100 = 1.434 (1 point "
        "each)",
        "1 point: (b) B is the better one; a perplexity is per token, and B's tokens are "
        "longer, so the two perplexities are not comparable",
        "1 point: (c) right a, bc = 97, 256; the classmate's ab, c = 257, 99",
        "2 points: (c) both decode to abc, so the round trip passes; a test that compares the "
        "ids with known ones finds it, here [97, 256] (1 point each)",
        "1 point: (d) row 5 gets 1 + 2 + 4 = 7, the classmate's 4; row 2 gets 3 in both",
        "1 point: (d) dE[ids] += dX keeps the last place alone, and a frequent token has many "
        "places: most of its gradient is lost",
    ),
)

ASSIGNMENT = Assignment(
    name="tokens",
    title="Tokens, embeddings and positions",
    tasks=(
        _tokens_pairs.TASK,
        _tokens_merge.TASK,
        _tokens_train.TASK,
        _tokens_encode.TASK,
        _tokens_decode.TASK,
        _tokens_embed.TASK,
        _tokens_embed_backward.TASK,
        _tokens_positions.TASK,
    ),
    written=(PER_BYTE,),
    hours=4.0,
)
