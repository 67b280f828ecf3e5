"""The known mistakes in putting a language model together."""

from seqlib.exercises.record import Misconception

MISCONCEPTIONS = (
    Misconception(
        "not_causal",
        "The layers are called without a causal mask: every token attends to all tokens, "
        "later ones too.",
        "decoder#causality",
        "rasbt/LLMs-from-scratch#1061",
    ),
    Misconception(
        "one_ahead",
        "The mask begins one place too late: every token attends to the token after it.",
        "decoder#causality",
        "our own: triu with a diagonal too high",
    ),
    Misconception(
        "batch_as_time",
        "The first axis is taken for time: tokens attend to the same place of other sequences.",
        "decoder#shapes",
        "our own: torch.nn.TransformerEncoderLayer without batch_first=True",
    ),
    Misconception(
        "positions_ignored",
        "P is not added to the embeddings.",
        "decoder#model",
        "our own: a layer alone does not see the order",
    ),
    Misconception(
        "positions_from_1",
        "Positions are counted from 1: the first token gets the second row of P.",
        "decoder#model",
        "our own: t as in the notes, which count from 1",
    ),
    Misconception(
        "embedding_scaled",
        "The embeddings are multiplied by the root of d.",
        "decoder#model",
        "our own: as in the original Transformer",
    ),
    Misconception(
        "no_final_norm",
        "The norm behind the last layer is missing.",
        "transformer#final-norm",
        "NVIDIA-NeMo/Speech#2197",
    ),
    Misconception(
        "norm_in_front",
        "The norm is applied to the sum of embeddings and positions, not behind the last "
        "layer.",
        "transformer#final-norm",
        "our own: the norm of BERT's embeddings",
    ),
    Misconception(
        "post_norm",
        "The layers are post-norm layers.",
        "transformer#pre-norm",
        "our own: torch.nn.TransformerEncoderLayer without norm_first=True",
    ),
    Misconception(
        "relu",
        "The layers use ReLU in place of GELU.",
        "transformer#gelu",
        "our own: torch.nn.TransformerEncoderLayer without activation='gelu'",
    ),
    Misconception(
        "first_layer_repeated",
        "Every layer is the first one, with its parameters.",
        "decoder#model",
        "espnet/espnet#1278",
    ),
    Misconception(
        "layers_side_by_side",
        "Every layer gets the embeddings, not the output of the layer before it.",
        "decoder#model",
        "our own: the loop does not overwrite X",
    ),
    Misconception(
        "b_ignored",
        "b is not added to the logits.",
        "decoder#model",
        "our own: the output layer of GPT-2 has no bias",
    ),
    Misconception(
        "probabilities",
        "The result has gone through softmax: these are probabilities, not logits.",
        "decoder#model",
        "our own: the softmax of the notes' output layer, which the loss applies again",
    ),
    Misconception(
        "log_probabilities",
        "The result has gone through log-softmax: these are log-probabilities, not logits.",
        "decoder#model",
        "our own: what torch.nn.NLLLoss expects",
    ),
    Misconception(
        "detached_head",
        "In the output layer E is cut off from its gradient: E learns from its use as an "
        "embedding alone.",
        "decoder#weight-tying",
        "our own: the matrix copied with detach() or .data",
    ),
    Misconception(
        "large_start",
        "E starts with a standard deviation of 1, so the first logits are far too large.",
        "decoder#loss-at-init",
        "huggingface/transformers#26441",
    ),
    Misconception(
        "one_layer_shared",
        "The list holds one and the same layer several times, so all layers share their "
        "parameters.",
        "decoder#model",
        "our own: [layer] * n_layer",
    ),
    Misconception(
        "dropout",
        "In training mode something is dropped.",
        "decoder#model",
        "our own: torch.nn.TransformerEncoderLayer without dropout=0",
    ),
    Misconception(
        "no_gradient",
        "The logits are cut off from the parameters: they are right and have no gradient, so "
        "the model cannot be trained.",
        "decoder#model",
        "our own: forward under torch.no_grad()",
    ),
)
