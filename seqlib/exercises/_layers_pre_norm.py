"""Task: a stack of pre-norm layers and the norm at its end, equation (18)."""

import numpy as np

from seqlib.exercises import _layers_parts as parts
from seqlib.exercises._layers_statistics import gain
from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.np.norm import rms_norm


def reference(X, layers, gamma, eps):
    """Return the normalised output of the stack, and the output of each layer."""
    outputs = []
    for attention, mlp, gamma_1, gamma_2 in layers:
        Z = attention(rms_norm(X, gamma_1, eps=eps)) + X
        X = mlp(rms_norm(Z, gamma_2, eps=eps)) + Z
        outputs.append(X)
    return rms_norm(X, gamma, eps=eps), outputs


def variant(X, layers, gamma, eps, *, wrong=frozenset()):
    """Return the output and those of all layers, with the mistakes named in ``wrong``."""
    if "eps_ignored" in wrong:
        eps = 1e-6
    start, outputs = X, [X] if "input_in_outputs" in wrong else []
    for layer in layers:
        if "first_layer_repeated" in wrong:
            layer = layers[0]
        X = _layer(start if "layers_side_by_side" in wrong else X, *layer, eps, wrong)
        if "final_norm_everywhere" in wrong:
            X = _norm(X, gamma, eps, wrong)
        outputs.append(_norm(X, gamma, eps, wrong) if "outputs_normalised" in wrong else X)
    if "one_array" in wrong:
        outputs = [X for _ in outputs]
    if wrong & {"no_final_norm", "final_norm_everywhere"}:
        Y = X
    else:
        Y = _norm(
            X, np.ones_like(gamma) if "final_gamma_ignored" in wrong else gamma, eps, wrong
        )
    if "output_alone" in wrong:
        return Y
    return (outputs, Y) if "parts_exchanged" in wrong else (Y, outputs)


def _layer(X, attention, mlp, gamma_1, gamma_2, eps, wrong):
    if "norms_exchanged" in wrong:
        gamma_1, gamma_2 = gamma_2, gamma_1
    if "first_norm_twice" in wrong:
        gamma_2 = gamma_1
    if "second_norm_twice" in wrong:
        gamma_1 = gamma_2
    if "post_norm" in wrong:
        Z = _norm(attention(X) + X, gamma_1, eps, wrong)
        return _norm(mlp(Z) + Z, gamma_2, eps, wrong)
    if "norm_of_branch" in wrong:
        Z = _norm(attention(X), gamma_1, eps, wrong) + X
        return _norm(mlp(Z), gamma_2, eps, wrong) + Z
    normed = X if "no_first_norm" in wrong else _norm(X, gamma_1, eps, wrong)
    past = normed if "residual_after_norm" in wrong else X
    Z = attention(normed) + (0 if "no_attention_residual" in wrong else past)
    source = X if "parallel" in wrong else Z
    normed = source if "no_second_norm" in wrong else _norm(source, gamma_2, eps, wrong)
    past = normed if wrong & {"residual_after_norm", "mlp_residual_after_norm"} else Z
    if "residual_from_input" in wrong:
        past = X
    return mlp(normed) + (0 if "no_mlp_residual" in wrong else past)


def _norm(x, gamma, eps, wrong):
    centred = x - x.mean(axis=-1, keepdims=True) if "layer_norm" in wrong else x
    return gamma * centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)


def cases(rng):
    """Draw inputs for one run."""
    return [
        Case(_args(rng, 1, (5, 4)), label="one layer, n=5 tokens, d=4, eps=1e-6"),
        Case(_args(rng, 1, (3, 7)), label="one layer, n=3 tokens, d=7, eps=1e-6"),
        Case(_args(rng, 1, (1, 5)), label="one layer, one token, d=5, eps=1e-6"),
        Case(_args(rng, 3, (5, 4)), label="3 layers, n=5, d=4", tag="several"),
        Case(_args(rng, 2, (3, 5)), label="2 layers, n=3, d=5", tag="several"),
        Case(_args(rng, 1, (5, 4), eps=0.1), label="one layer, n=5, d=4, eps=0.1", tag="eps"),
        Case(_args(rng, 2, (2, 5, 3)), label="2 layers, 2 sequences, n=5, d=3", tag="batch"),
    ]


def _args(rng, L, shape, eps=1e-6):
    d = shape[-1]
    layers = [
        (parts.attention(rng, d), parts.mlp(rng, d), gain(rng, d), gain(rng, d))
        for _ in range(L)
    ]
    X = 2 * rng.standard_normal(shape) + rng.standard_normal((*shape[:-1], 1))
    return X, layers, gain(rng, d), eps


TASK = Task(
    id="layers.pre_norm_stack",
    title="Stack of pre-norm layers",
    signature="(X, layers, gamma, eps)",
    equations=("eq-18", "eq-21"),
    page="transformer#pre-norm",
    reference=reference,
    variant=variant,
    cases=cases,
    criteria=(
        Criterion("values", 4, "output Y of one layer and the final norm", part=0),
        Criterion("layer", 5, "output of the layer itself", part=1, needs=()),
        Criterion("several", 3, "several layers", tag="several"),
        Criterion("eps", 1, "another eps", tag="eps"),
        Criterion("batch", 2, "several sequences", tag="batch"),
    ),
    misconceptions=(
        Misconception(
            "post_norm",
            "The norms stand behind the sums: these are post-norm layers.",
            "transformer#post-norm",
            "harvardnlp/annotated-transformer#13",
        ),
        Misconception(
            "residual_after_norm",
            "The residual connections add the normalised tokens: X was overwritten by its norm "
            "before it was kept.",
            "transformer#residual",
            "pytorch/pytorch#61165",
        ),
        Misconception(
            "mlp_residual_after_norm",
            "The residual connection of the MLP adds the normalised tokens, not Z.",
            "transformer#residual",
            "SHI-Labs/Compact-Transformers#25",
        ),
        Misconception(
            "norm_of_branch",
            "The norms are applied to the outputs of attention and MLP, not to their inputs.",
            "transformer#pre-norm",
            "harvardnlp/annotated-transformer#110",
        ),
        Misconception(
            "no_final_norm",
            "The norm at the end of the stack is missing.",
            "transformer#final-norm",
            "NVIDIA-NeMo/Speech#2197",
        ),
        Misconception(
            "final_norm_everywhere",
            "The final norm is applied after every layer, and the next one gets its result.",
            "transformer#final-norm",
            "pytorch/pytorch#50086",
        ),
        Misconception(
            "final_gamma_ignored",
            "The norm at the end of the stack does not use its gamma.",
            "transformer#final-norm",
            "our own: unseen where gamma is 1",
        ),
        Misconception(
            "first_norm_twice",
            "Both norms of a layer use gamma_1.",
            "transformer#two-norms",
            "allenai/OLMo#222",
        ),
        Misconception(
            "second_norm_twice",
            "Both norms of a layer use gamma_2.",
            "transformer#two-norms",
            "our own: the first norm copied, with the second one's name",
        ),
        Misconception(
            "norms_exchanged",
            "gamma_1 and gamma_2 are exchanged.",
            "transformer#two-norms",
            "our own: two vectors of the same shape",
        ),
        Misconception(
            "no_first_norm",
            "The attention gets X without a norm.",
            "transformer#pre-norm",
            "our own: the first norm forgotten",
        ),
        Misconception(
            "no_second_norm",
            "The MLP gets Z without a norm.",
            "transformer#pre-norm",
            "our own: the second norm forgotten",
        ),
        Misconception(
            "no_attention_residual",
            "X is not added to the output of the attention.",
            "transformer#residual",
            "our own: the first residual connection forgotten",
        ),
        Misconception(
            "no_mlp_residual",
            "Z is not added to the output of the MLP.",
            "transformer#residual",
            "our own: the second residual connection forgotten",
        ),
        Misconception(
            "residual_from_input",
            "X is added to the output of the MLP, not Z.",
            "transformer#residual",
            "strutive07/transformer-tensorflow2.0#14",
        ),
        Misconception(
            "parallel",
            "The MLP gets the norm of X, not of Z: attention and MLP work side by side.",
            "transformer#pre-norm",
            "huggingface/transformers#18695",
        ),
        Misconception(
            "first_layer_repeated",
            "Every layer uses the functions and gains of the first one.",
            "transformer#pre-norm",
            "espnet/espnet#1278",
        ),
        Misconception(
            "layers_side_by_side",
            "Every layer gets the input of the stack, not the output of the layer before it.",
            "transformer#pre-norm",
            "our own: the loop does not overwrite X",
        ),
        Misconception(
            "layer_norm",
            "The norms subtract the mean, as in layer normalisation.",
            "norm#rmsnorm",
            "mit-han-lab/omniserve#32",
        ),
        Misconception(
            "eps_ignored",
            "The norms use eps = 1e-6 whatever eps is.",
            "norm#epsilon",
            "OpenNMT/OpenNMT-py#2446",
        ),
        Misconception(
            "input_in_outputs",
            "The list of outputs begins with the input of the stack.",
            "transformer#pre-norm",
            "our own: the list begun before the loop",
        ),
        Misconception(
            "output_alone",
            "Y is returned alone; the text asks for Y and the outputs of the layers.",
            "transformer#pre-norm",
            "our own: what a model needs is Y alone",
        ),
        Misconception(
            "parts_exchanged",
            "Y and the outputs of the layers are returned in the other order.",
            "transformer#pre-norm",
            "our own: the outputs are found first",
        ),
        Misconception(
            "one_array",
            "All entries of the list are the output of the last layer, as when every layer "
            "changes one array in place and the list holds it several times.",
            "transformer#pre-norm",
            "our own: X += in the loop, then append(X)",
        ),
        Misconception(
            "outputs_normalised",
            "The list holds the outputs of the layers after the norm; they are asked for as "
            "they are.",
            "transformer#final-norm",
            "our own: the norm at the end applied before append",
        ),
    ),
    options={"axes": ("token", "feature"), "parts": ("Y", "outputs")},
)
