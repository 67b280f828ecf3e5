"""Docstrings say the truth: the documented shapes are drawn, and the results compared.

Every public function of both backends is covered by itself. A function whose arguments cannot
be drawn from its docstring needs an entry in ``ARGUMENTS``.
"""

import inspect
import re

import numpy as np
import pytest
import torch
from twins import NUMPY, PYTORCH

import seqlib.np as snp
import seqlib.pt as spt

# One size per axis letter, all different; D = N K, and K is even for rotary pairs.
SIZES = {"B": 3, "T": 5, "S": 7, "D": 8, "H": 11, "N": 2, "K": 4, "F": 13, "V": 17}
LEADING = (2, 3)  # stands for "..."

# Values of options and sizes that have no default, by name.
OPTIONS = {
    **{letter: size for letter, size in SIZES.items() if letter != "B"},
    "n_head": SIZES["N"],
    "p": 0.5,
    "max_norm": 1.0,
    "clip_value": 1.0,
    "max_new_tokens": SIZES["S"] - SIZES["T"],
    "k1": 2,
    "k2": 3,
    "rng": np.random.default_rng(0),
}
CONFIG = {"vocab_size": SIZES["V"], "context": SIZES["T"], "dim": SIZES["D"], "n_layer": 1}


def decoder_config():
    return snp.DecoderConfig(**CONFIG, n_head=SIZES["N"])


def decoder_params(rng):
    return snp.decoder_params(decoder_config(), rng=rng)


def layer_params(rng):
    """Make parameters of a layer that also attends to a context."""
    layer = spt.TransformerLayer(SIZES["D"], SIZES["N"], SIZES["F"], cross=True).double()
    return {name: rng.standard_normal(p.shape) for name, p in layer.state_dict().items()}


def recurrent_state(module):
    return module(SIZES["D"], SIZES["H"]).state_dict()


BIASES = ("bias_ih", "bias_hh")  # the notes' GRU has none, so gru_to_notes wants zeros

# Arguments that cannot be drawn from the docstring: name of the function -> name of the
# argument -> maker. A backward pass uses those of its forward pass.
ARGUMENTS = {
    "adamw_step": {
        "params": lambda rng: {"w": np.ones(3)},
        "grads": lambda rng: {"w": np.ones(3)},
        "state": lambda rng: {},
        "lr": lambda rng: 0.1,
    },
    "clip_grad_norm": {"grads": lambda rng: [rng.standard_normal(3)]},
    "clip_grad_value": {"grads": lambda rng: [rng.standard_normal(3)]},
    "decoder_lm": {"params": decoder_params, "config": lambda rng: decoder_config()},
    "decoder_params": {"config": lambda rng: decoder_config()},
    "generate": {"model": lambda rng: (decoder_params(rng), decoder_config())},
    "gru_from_torch": {"state": lambda rng: recurrent_state(torch.nn.GRU)},
    "gru_to_notes": {name: lambda rng: np.zeros(3 * SIZES["H"]) for name in BIASES},
    "lstm_from_torch": {"state": lambda rng: recurrent_state(torch.nn.LSTM)},
    "transformer_layer": {"params": layer_params},
}
# Options without which a function cannot do without its optional arguments.
WITHOUT_OPTIONAL = {
    "transformer_layer": {
        "params": lambda rng: {
            name: p
            for name, p in layer_params(rng).items()
            if not name.startswith(("multihead_attn", "norm3"))
        }
    }
}
# Functions that return no array of a documented shape, with what they return.
NO_SHAPE = {
    "adamw_step": "a dict of new parameters, of the shapes of the old ones, and a state",
    "clip_grad_norm": "the container that it was given, and a number",
    "clip_grad_value": "the container that it was given",
    "decoder_params": "a dict of parameters, of the shapes that the configuration lists",
    "gru_to_torch": "a dict of arrays, as load_state_dict wants it",
    "lstm_to_torch": "a dict of arrays, as load_state_dict wants it",
}


def sections(f):
    """Split a docstring into sections of ``(names, type, text)`` entries."""
    found, lines = {}, inspect.getdoc(f).splitlines()
    title = None
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and line and re.fullmatch("-{3,}", lines[i + 1]):
            title, found[line] = line, []
        elif title in ("Parameters", "Returns") and line and not line.startswith((" ", "-")):
            names, _, kind = line.rpartition(" : ")
            if (
                title == "Parameters"
                and not kind.startswith(("ndarray", "Tensor"))
                and not names
            ):
                names, kind = line, ""  # "x, weight, bias": the arguments of the forward call
            found[title].append([[n for n in names.split(", ") if n], kind, ""])
        elif title in ("Parameters", "Returns") and line.startswith(" "):
            found[title][-1][2] += line.strip() + " "
    return found


def shape_of(kind):
    """Return the sizes of "ndarray of shape (..., 3D)", or None if the type names no shape."""
    match = re.search(r"(?:ndarray|Tensor)(?: of \w+)? of shape (\([^)]*\))", kind)
    if match is None:
        return None
    sizes = []
    for axis in filter(None, (part.strip() for part in match[1].strip("()").split(","))):
        sizes += LEADING if axis == "..." else [sum(_size(term) for term in axis.split("+"))]
    return tuple(sizes)


def _size(term):
    factor, letter = re.fullmatch(r"\s*(\d*)([A-Z]?)\s*", term).groups()
    return int(factor or 1) * SIZES.get(letter, 1) if letter else int(factor)


def draw(name, kind, rng):
    """Draw an array of the documented type and shape."""
    shape = shape_of(kind)
    if " of bool " in kind:
        return rng.random(shape) < 0.5
    if " of int " in kind:
        return rng.integers(SIZES["T"] if name == "lengths" else SIZES["V"], size=shape)
    return rng.standard_normal(shape)


def documented_parameters(f):
    return [
        (name, kind) for names, kind, _ in sections(f).get("Parameters", []) for name in names
    ]


def make_arguments(name, rng, *, optional):
    """Return the arguments of a forward function; None for the optional ones if asked."""
    f = NUMPY[name]
    kinds = dict(documented_parameters(f))
    makers = ARGUMENTS.get(name, {}) | ({} if optional else WITHOUT_OPTIONAL.get(name, {}))
    args, kwargs = [], {}
    for parameter in inspect.signature(f).parameters.values():
        kind = kinds[parameter.name]
        by_keyword = parameter.kind is parameter.KEYWORD_ONLY
        if parameter.name in makers:
            value = makers[parameter.name](rng)
        elif by_keyword and parameter.default is not parameter.empty:
            continue
        elif shape_of(kind) is None:
            value = OPTIONS[parameter.name]
        elif not optional and ("None" in kind or "optional" in kind):
            value = None
        else:
            value = draw(parameter.name, kind, rng)
        if by_keyword:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return args, kwargs


def to_torch(value):
    if isinstance(value, tuple) and value and isinstance(value[-1], snp.DecoderConfig):
        model = spt.DecoderLM(value[1])  # the module that stands for (params, config)
        model.load_state_dict(to_torch(value[0]))
        return model
    if isinstance(value, np.ndarray):
        return torch.tensor(value)
    if isinstance(value, dict):
        return {key: to_torch(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(to_torch, value))
    return value


def assert_returns_as_documented(f, result):
    """Compare a result with the section Returns; return how many shapes that compared."""
    entries = [
        (kind, text) for names, kind, text in sections(f)["Returns"] for _ in names or [""]
    ]
    values = result if isinstance(result, tuple) else (result,)
    assert len(values) == len(entries), "documents another number of results"
    shaped = 0
    for value, (kind, text) in zip(values, entries, strict=True):
        shape = shape_of(kind)
        if value is None:
            assert "None" in kind + text, f"a result is None, documented is {kind}"
        elif shape is not None:
            assert tuple(value.shape) == shape, f"{tuple(value.shape)} is not {kind}"
            dtype = str(value.dtype)
            assert ("bool" in dtype) == (" of bool " in kind), f"{dtype} is not {kind}"
            assert ("int" in dtype) == (" of int " in kind), f"{dtype} is not {kind}"
            shaped += 1
    return shaped


FORWARD = sorted(name for name in NUMPY if not name.endswith(("_backward", "_with_vjp")))
BACKWARD = sorted(f"{name}_backward" for name in FORWARD if f"{name}_backward" in NUMPY)
ALL = [*((NUMPY[n], n) for n in sorted(NUMPY)), *((PYTORCH[n], n) for n in sorted(PYTORCH))]


@pytest.mark.parametrize("f", [f for f, _ in ALL], ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_every_parameter_is_documented_in_order(f):
    documented = [name for name, _ in documented_parameters(f)]
    assert documented == list(inspect.signature(f).parameters)
    assert sections(f)["Returns"], "says nothing about the result"
    assert re.match(r"[A-Z].*[.:;]$", inspect.getdoc(f).splitlines()[0]), "no summary line"


@pytest.mark.parametrize("optional", [True, False], ids=["all arguments", "optional ones None"])
@pytest.mark.parametrize("name", FORWARD)
def test_documented_shapes_are_true_in_both_backends(name, optional):
    args, kwargs = make_arguments(name, np.random.default_rng(0), optional=optional)
    shaped = assert_returns_as_documented(NUMPY[name], NUMPY[name](*args, **kwargs))
    assert (shaped == 0) == (name in NO_SHAPE)
    if name in PYTORCH:
        result = PYTORCH[name](*to_torch(args), **to_torch(kwargs))
        assert assert_returns_as_documented(PYTORCH[name], result) == shaped


@pytest.mark.parametrize("optional", [True, False], ids=["all arguments", "optional ones None"])
@pytest.mark.parametrize("name", BACKWARD)
def test_documented_shapes_of_gradients_are_true(name, optional):
    rng = np.random.default_rng(0)
    forward, backward = NUMPY[name.removesuffix("_backward")], NUMPY[name]
    args, kwargs = make_arguments(forward.__name__, rng, optional=optional)
    y = forward(*args, **kwargs)
    # One dy per output, of the output's shape.
    several = isinstance(y, tuple)
    if not several:
        documented = shape_of(sections(backward)["Parameters"][0][1])
        assert documented == y.shape, "dy has another shape than the output"
    dy = tuple(rng.standard_normal(v.shape) for v in (y if several else (y,)))
    result = backward(dy if several else dy[0], *args, **kwargs)
    shaped = assert_returns_as_documented(backward, result)
    for params in (arg for arg in args if isinstance(arg, dict)):
        (grads,) = (
            g for g in (result if isinstance(result, tuple) else (result,)) if type(g) is dict
        )
        assert {k: g.shape for k, g in grads.items()} == {k: p.shape for k, p in params.items()}
        shaped += len(grads)
    assert shaped > 0


@pytest.mark.parametrize("name", sorted(NUMPY.keys() & PYTORCH.keys()))
def test_twins_document_the_same(name):
    ours, twin = sections(NUMPY[name]), sections(PYTORCH[name])
    for title in ("Parameters", "Returns"):
        for entry, other in zip(ours[title], twin[title], strict=True):
            assert other[0] == entry[0]
            same = other[1].replace("Tensor", "ndarray").replace("torch.", "numpy.random.")
            same = same.replace("DecoderLM", "tuple of (dict, DecoderConfig)")
            assert same == entry[1]
    assert ("Raises" in ours) == ("Raises" in twin)


# The check itself must fail on a wrong docstring.
def transpose(x):
    """Swap the last two axes.

    Parameters
    ----------
    x : ndarray of shape (..., T, D)
        Any.

    Returns
    -------
    ndarray of shape (..., D, T)
        The transpose.
    """
    return x.swapaxes(-1, -2)


@pytest.mark.parametrize(
    ("documented", "message"),
    [
        ("ndarray of shape (..., T, D)", "is not ndarray"),
        ("ndarray of shape (D, T)", "is not ndarray"),
        ("ndarray of shape (..., D, 2T)", "is not ndarray"),
        ("ndarray of bool of shape (..., D, T)", "float64 is not"),
        ("ndarray of int of shape (..., D, T)", "float64 is not"),
    ],
)
def test_a_wrong_docstring_is_noticed(documented, message):
    def wrong(x):
        return transpose(x)

    wrong.__doc__ = transpose.__doc__.replace("ndarray of shape (..., D, T)", documented)
    x = draw("x", documented_parameters(transpose)[0][1], np.random.default_rng(0))
    assert x.shape == (*LEADING, SIZES["T"], SIZES["D"])
    assert assert_returns_as_documented(transpose, transpose(x)) == 1
    with pytest.raises(AssertionError, match=message):
        assert_returns_as_documented(wrong, wrong(x))


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("ndarray of shape ()", ()),
        ("ndarray of shape (...)", LEADING),
        ("Tensor of int of shape (B,)", (3,)),
        ("ndarray of shape (4H, H + D), or None", (44, 19)),
        ("ndarray of shape (B, 1, 1, S)", (3, 1, 1, 7)),
        ("ndarray that broadcasts to (..., T, S), optional", None),
        ("int", None),
    ],
)
def test_shapes_are_read_from_the_type(kind, shape):
    assert shape_of(kind) == shape
