"""The two backends offer the same functions with the same parameters.

Every public function of every module is found by itself: a new module needs a line in
``seqlib/np/__init__.py`` and ``seqlib/pt/__init__.py``, and nothing here.
"""

import importlib
import inspect
import pkgutil
import sys

import pytest
from twins import NUMPY, PYTORCH, modules

import seqlib.np as snp
import seqlib.pt as spt

# Functions of one backend alone, with the reason.
ONLY_NUMPY = {
    "adamw_step": "torch.optim.AdamW is PyTorch's",
    "decoder_lm": "PyTorch's is the module DecoderLM",
    "decoder_params": "a PyTorch module draws its own parameters",
    "gru_from_notes": "converts arrays; a tensor converts itself with .numpy()",
    "gru_from_torch": "takes a state dict of PyTorch and returns arrays",
    "gru_to_notes": "converts arrays; a tensor converts itself with .numpy()",
    "gru_to_torch": "takes arrays and returns what load_state_dict wants",
    "jacobian_norm_by_lag": "an analysis of the NumPy network by its own backward pass",
    "lstm_from_notes": "converts arrays; a tensor converts itself with .numpy()",
    "lstm_from_torch": "takes a state dict of PyTorch and returns arrays",
    "lstm_to_notes": "converts arrays; a tensor converts itself with .numpy()",
    "lstm_to_torch": "takes arrays and returns what load_state_dict wants",
    "rnn_jacobian": "an analysis of the NumPy network by its own backward pass",
    "streaming_attention": "shows in NumPy what PyTorch's kernel does inside",
    "transformer_layer": "PyTorch's is the module TransformerLayer",
}
ONLY_PYTORCH = {
    "decoder_from_gpt2": "takes a state dict of PyTorch; its arrays are decoder_lm's params",
    "decoder_from_llama": "takes a state dict of PyTorch; its arrays are decoder_lm's params",
}
# A backward pass without a forward pass of its own.
ONLY_BACKWARD = {"rnn_truncated_backward": "truncation changes the gradient of rnn alone"}
# Parameters that differ between the backends, with the reason.
OTHER_SIGNATURE = {}


FORWARD = {n: f for n, f in NUMPY.items() if not n.endswith(("_backward", "_with_vjp"))}
DERIVED = sorted(NUMPY.keys() - FORWARD.keys() - ONLY_BACKWARD.keys())
BOTH = sorted(FORWARD.keys() & PYTORCH.keys())

# The signatures that the pages, the exercises and other people's code rely on. A dagger marks
# those with a backward pass. Signatures of recurrent functions repeat the weights: W stands for
# "weight_ih, weight_hh, bias_ih, bias_hh".
FIXED = {
    "activation": """
        linear(x, weight, bias=None)†
        sigmoid(x)†
        relu(x)†
        gelu(x, *, approximate='none')†
        silu(x)†
        softmax(x, *, axis=-1)†
        log_softmax(x, *, axis=-1)†
    """,
    "loss": """
        cross_entropy(logits, targets, *, ignore_index=-100, reduction='mean')†
        perplexity(nats)
        bits(nats)
    """,
    "rnn": """
        rnn_cell(x, h, W)†
        rnn(x, h0, W, *, lengths=None, reverse=False)†
    """,
    "gradients": """
        clip_grad_norm(grads, *, max_norm)
        clip_grad_value(grads, *, clip_value)
    """,
    "lstm": """
        lstm_cell(x, h, c, W)†
        lstm(x, h0, c0, W, *, lengths=None, reverse=False)†
    """,
    "gru": """
        gru_cell(x, h, W, *, reset_after=False)†
        gru(x, h0, W, *, lengths=None, reverse=False, reset_after=False)†
    """,
    "attention": """
        simple_self_attention(x)†
        attention_weights(q, k, *, mask=None)†
        scaled_dot_product_attention(q, k, v, *, mask=None)†
        additive_attention(q, k, v, w_q, w_k, w_v, *, mask=None)†
    """,
    "multihead": """
        split_heads(x, *, n_head)†
        merge_heads(x)†
        multi_head_attention(x, in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, \
context=None, *, n_head, mask=None)†
    """,
    "masks": """
        causal_mask(T, S=None)
        padding_mask(is_padding)
        padding_from_lengths(lengths, S, *, side='right')
        to_additive(may_attend)
    """,
    "tokens": """
        one_hot(ids, V)
        embedding(ids, weight)†
    """,
    "positions": """
        sinusoidal_positions(T, D, *, base=10000.0, offset=0)
        rotary(x, *, offset=0, base=10000.0)†
        alibi_bias(N, T, S)
    """,
    "norm": """
        layer_norm(x, weight, bias, *, eps=1e-05)†
        rms_norm(x, weight, *, eps=1e-06)†
    """,
}
LINES = [
    (slug, line.strip())
    for slug, text in FIXED.items()
    if any(module.__name__ == f"seqlib.np.{slug}" for module in modules(snp))
    for line in text.strip().splitlines()
]


@pytest.mark.parametrize("package", [snp, spt])
def test_every_module_is_exported_by_its_package(package):
    for info in pkgutil.iter_modules(package.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        assert module.__all__ == sorted(module.__all__), f"__all__ of {info.name} is not sorted"
        for name in module.__all__:
            assert getattr(package, name, None) is getattr(module, name), (
                f"{package.__name__}/__init__.py lacks 'from {module.__name__} import *'"
            )


@pytest.mark.parametrize("package", [snp, spt])
def test_no_name_is_exported_twice(package):
    names = [name for module in modules(package) for name in module.__all__]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("package", [snp, spt])
def test_all_lists_what_is_documented_as_public(package):
    """A public function that is missing from ``__all__`` would escape every test here.

    Helpers that modules share have one line of docstring and no section Parameters.
    """
    for module in modules(package):
        documented = {
            name
            for name, f in vars(module).items()
            if inspect.isfunction(f)
            and f.__module__ == module.__name__
            and name[0] != "_"
            and "\nParameters\n---" in inspect.getdoc(f)
        }
        assert documented <= set(module.__all__), f"{module.__name__}.__all__ lacks a function"


def test_same_functions():
    only_numpy = FORWARD.keys() - PYTORCH.keys()
    assert only_numpy <= ONLY_NUMPY.keys(), "functions without a twin in PyTorch"
    only_pytorch = PYTORCH.keys() - FORWARD.keys()
    assert only_pytorch <= ONLY_PYTORCH.keys(), "functions without a twin in NumPy"
    assert not set(BOTH) & (ONLY_NUMPY.keys() | ONLY_PYTORCH.keys()), "listed but in both"


@pytest.mark.parametrize("name", BOTH)
def test_same_signature(name):
    ours, twin = inspect.signature(FORWARD[name]), inspect.signature(PYTORCH[name])
    assert (ours == twin) != (name in OTHER_SIGNATURE)


@pytest.mark.parametrize("name", DERIVED)
def test_backward_takes_the_gradient_and_then_the_forward_arguments(name):
    """And ``f_with_vjp``, which returns the output and a function, takes those of ``f``."""
    forward = inspect.signature(NUMPY[name.removesuffix("_backward").removesuffix("_with_vjp")])
    parameters = list(inspect.signature(NUMPY[name]).parameters.values())
    if name.endswith("_backward"):
        dy = parameters.pop(0)
        assert (dy.name, dy.default) == ("dy", inspect.Parameter.empty)
    assert parameters == list(forward.parameters.values())


@pytest.mark.parametrize(("slug", "line"), LINES)
def test_fixed_names(slug, line):
    name = line.split("(")[0]
    weights = "weight_ih, weight_hh, bias_ih, bias_hh"
    expected = line[len(name) :].removesuffix("†").replace("W)", f"{weights})")
    expected = expected.replace("W,", f"{weights},")
    assert str(inspect.signature(NUMPY[name])) == expected
    assert str(inspect.signature(PYTORCH[name])) == expected
    assert name in sys.modules[f"seqlib.np.{slug}"].__all__
    assert name in sys.modules[f"seqlib.pt.{slug}"].__all__
    assert (f"{name}_backward" in NUMPY) == line.endswith("†")
