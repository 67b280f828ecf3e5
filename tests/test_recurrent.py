"""What rnn, lstm and gru have in common, in both backends and in the fast NumPy form."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from recurrent import (
    ALL_KINDS,
    KINDS,
    as_tensors,
    assert_all_close,
    autograd,
    call,
    cell_args,
    kind_id,
    make_args,
    numpy_gradients,
    random_dy,
    torch_layer,
)
from twins import error_text

import seqlib.np as snp
import seqlib.pt as spt
from seqlib.testing import check_backward

SIZES = [(2, 3, 5, 7), (3, 7, 2, 5), (7, 2, 5, 8), (1, 1, 1, 1), (5, 1, 3, 2), (1, 11, 3, 1)]
LENGTHS = {2: [1, 3], 3: [7, 2, 4], 7: [2, 1, 1, 2, 1, 2, 2], 1: [1], 5: [1] * 5}
all_kinds = pytest.mark.parametrize("kind", ALL_KINDS, ids=kind_id)
torch_kinds = pytest.mark.parametrize("kind", KINDS, ids=kind_id)


# --- Against PyTorch's layers and autograd


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("sizes", SIZES)
@torch_kinds
def test_equals_torch(kind, sizes, padded, reverse, bias, rng):
    name, options = kind
    args = make_args(name, rng, *sizes, bias=bias)
    options = options | {"reverse": reverse}
    if padded:
        options["lengths"] = np.array(LENGTHS[sizes[0]])
    theirs, ours = as_tensors(args, grad=True), as_tensors(args, grad=True)
    expected = torch_layer(name, *theirs, **options)
    twin = call(spt, name, ours, **options)
    y = call(snp, name, args, **options)
    assert_all_close(y, expected)
    assert_all_close(twin, expected)

    dy = random_dy(y, rng)
    wanted = autograd(expected, theirs, dy)
    assert_all_close(numpy_gradients(name, dy, args, **options), wanted, rtol=1e-9, atol=1e-9)
    assert_all_close(autograd(twin, ours, dy), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("sizes", [(2, 3, 5), (7, 5, 8), (1, 1, 1), (0, 3, 2)])
@torch_kinds
def test_cell_equals_torch(kind, sizes, bias, rng):
    name, options = kind
    args = cell_args(name, rng, *sizes, bias=bias)
    theirs, ours = as_tensors(args, grad=True), as_tensors(args, grad=True)
    _, *expected = torch_layer(name, theirs[0][:, None], *theirs[1:])
    as_tuple = (lambda y: y) if name == "lstm" else (lambda y: (y,))
    cell = as_tuple(call(snp, f"{name}_cell", args, **options))
    twin = as_tuple(call(spt, f"{name}_cell", ours, **options))
    assert_all_close(cell, expected)
    assert_all_close(twin, expected)

    dy = random_dy(cell, rng)
    wanted = autograd(expected, theirs, dy)
    by_hand = numpy_gradients(f"{name}_cell", dy if name == "lstm" else dy[0], args, **options)
    assert_all_close(by_hand, wanted, rtol=1e-9, atol=1e-9)
    assert_all_close(autograd(twin, ours, dy), wanted, rtol=1e-9, atol=1e-9)


# --- Calculus


@pytest.mark.parametrize("scale", [0.5, 3.0])  # with 3 most gates are nearly closed or open
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("sizes", [(3, 7, 2, 5), (1, 1, 1, 1)])
@all_kinds
def test_backward_equals_differences(kind, sizes, padded, reverse, scale, rng):
    name, options = kind
    options = options | {"reverse": reverse}
    if padded:
        options["lengths"] = [0, 7, 4] if sizes[0] == 3 else [0]
    args = make_args(name, rng, *sizes, scale=scale)
    check_backward(
        getattr(snp, name), getattr(snp, f"{name}_backward"), args, rng, kwargs=options
    )


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("sizes", [(2, 3, 5), (1, 1, 1)])
@all_kinds
def test_cell_backward_equals_differences(kind, sizes, bias, rng):
    name, options = kind
    args = cell_args(name, rng, *sizes, bias=bias)
    forward, backward = getattr(snp, f"{name}_cell"), getattr(snp, f"{name}_cell_backward")
    check_backward(forward, backward, args, rng, kwargs=options)


# --- Edges


@pytest.mark.parametrize(("B", "T"), [(0, 5), (3, 0), (0, 0)])
@all_kinds
def test_empty_batch_and_no_steps(kind, B, T, rng):
    """Nothing to run: the state comes back, and gradients of the parameters are zero."""
    name, options = kind
    args = make_args(name, rng, B, T, 2, 7)
    y, *last = call(snp, name, args, **options)
    assert y.shape == (B, T, 7)
    assert_all_close(last, args[1:-4])
    assert_all_close(call(spt, name, as_tensors(args), **options), (y, *last))
    dy = random_dy((y, *last), rng)
    dx, *grads = numpy_gradients(name, dy, args, **options)
    assert dx.shape == args[0].shape
    assert_all_close(grads[:-4], dy[1:])
    assert_all_close(grads[-4:], [np.zeros_like(a) for a in args[-4:]])
    (fast, vjp) = call(snp, f"{name}_with_vjp", args, **options)
    assert_all_close(fast, (y, *last))
    assert_all_close(vjp(dy), (dx, *grads))


@pytest.mark.parametrize("backend", [snp, spt])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@all_kinds
def test_a_row_of_length_0_returns_its_initial_state(kind, reverse, backend, rng):
    name, options = kind
    args = make_args(name, rng, 3, 5, 2, 7)
    args = as_tensors(args) if backend is spt else args
    y, *last = call(backend, name, args, lengths=[5, 0, 2], reverse=reverse, **options)
    assert_array_equal(y[1], np.zeros((5, 7)))
    for state, initial in zip(last, args[1:-4], strict=True):
        assert_array_equal(state[1], initial[1])


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@all_kinds
def test_what_stands_at_padded_steps_reaches_nothing(kind, reverse, rng):
    """Not even a NaN or an infinity, neither a value nor a gradient."""
    name, options = kind
    options = options | {"reverse": reverse, "lengths": np.array([2, 5, 0])}
    clean = make_args(name, rng, 3, 5, 2, 7)
    dirty = [clean[0].copy(), *clean[1:]]
    dirty[0][0, 2:], dirty[0][2] = np.nan, np.inf
    y = call(snp, name, clean, **options)
    dy = random_dy(y, rng)
    noisy_dy = (dy[0].copy(), *dy[1:])
    noisy_dy[0][0, 2:] = 1e3  # a loss on outputs that are constant has no gradient either
    grads = numpy_gradients(name, dy, clean, **options)

    assert_all_close(call(snp, name, dirty, **options), y)
    assert_all_close(numpy_gradients(name, noisy_dy, dirty, **options), grads)
    fast, vjp = call(snp, f"{name}_with_vjp", dirty, **options)
    assert_all_close(fast, y)
    assert_all_close(vjp(noisy_dy), grads)
    tensors = as_tensors(dirty, grad=True)
    twin = call(spt, name, tensors, **options)
    assert_all_close(twin, y)
    assert_all_close(autograd(twin, tensors, noisy_dy), grads)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@all_kinds
def test_dtype_is_kept(kind, dtype, rng):
    name, options = kind
    args = [a.astype(dtype) for a in make_args(name, rng, 3, 5, 2, 7)]
    options = options | {"lengths": np.array([5, 2, 0])}
    y = call(snp, name, args, **options)
    dy = tuple(d.astype(dtype) for d in random_dy(y, rng))
    fast, vjp = call(snp, f"{name}_with_vjp", args, **options)
    results = [*y, *numpy_gradients(name, dy, args, **options), *fast, *vjp(dy)]
    assert {str(array.dtype) for array in results} == {dtype}
    twin = call(spt, name, as_tensors(args), **options)
    assert {str(tensor.dtype) for tensor in twin} == {f"torch.{dtype}"}
    assert_all_close(twin, y, rtol=1e-5, atol=1e-5)


@all_kinds
def test_huge_inputs_saturate_without_a_warning(kind, rng):
    name, options = kind
    x, *rest = make_args(name, rng, 3, 5, 2, 7)
    for dtype, factor in (("float32", 1e4), ("float64", 1e5)):
        args = [a.astype(dtype) for a in (x * factor, *rest)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            y = call(snp, name, args, **options)
            dy = tuple(np.ones_like(a) for a in y)
            grads = numpy_gradients(name, dy, args, **options)
            fast, vjp = call(snp, f"{name}_with_vjp", args, **options)
            fast_grads = vjp(dy)
        assert all(np.isfinite(a).all() for a in (*y, *grads))
        assert_all_close(fast, y, rtol=1e-5, atol=1e-5)
        assert_all_close(fast_grads, grads, rtol=1e-4, atol=1e-4)


# --- Properties


@given(data=st.data())
@all_kinds
def test_a_split_sequence_is_the_whole_one(kind, data):
    name, options = kind
    T = data.draw(st.integers(0, 6))
    cut = data.draw(st.integers(0, T))
    reverse = data.draw(st.booleans())
    args = make_args(name, np.random.default_rng(T), 2, T, 3, 5)
    x, parameters = args[0], args[-4:]
    y, *last = call(snp, name, args, reverse=reverse, **options)
    first, second = (x[:, cut:], x[:, :cut]) if reverse else (x[:, :cut], x[:, cut:])
    states, outputs = args[1:-4], []
    for part in (first, second):
        piece, *states = call(
            snp, name, [part, *states, *parameters], reverse=reverse, **options
        )
        outputs.append(piece)
    outputs = outputs[::-1] if reverse else outputs
    assert_all_close((np.concatenate(outputs, axis=1), *states), (y, *last))


@given(data=st.data())
@all_kinds
def test_a_sequence_does_not_depend_on_its_batch_or_its_padding(kind, data):
    name, options = kind
    lengths = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    padding = data.draw(st.integers(0, 3))
    reverse = data.draw(st.booleans())
    B, T = len(lengths), max(lengths) + padding
    args = make_args(name, np.random.default_rng(B), B, T, 3, 5)
    batch = {"np": call(snp, name, args, lengths=lengths, reverse=reverse, **options)}
    batch["pt"] = call(spt, name, as_tensors(args), lengths=lengths, reverse=reverse, **options)
    for b, length in enumerate(lengths):
        alone = [args[0][b : b + 1, :length], *(s[b : b + 1] for s in args[1:-4]), *args[-4:]]
        y, *last = call(snp, name, alone, reverse=reverse, **options)
        for whole, *states in batch.values():
            assert_all_close(
                (whole[b : b + 1, :length], *(s[b : b + 1] for s in states)), (y, *last)
            )
            assert_array_equal(whole[b, length:], np.zeros((T - length, 5)))


@given(data=st.data())
@all_kinds
def test_an_output_depends_on_the_past_alone(kind, data):
    """And with ``reverse`` on the future alone."""
    name, options = kind
    t = data.draw(st.integers(0, 4))
    reverse = data.draw(st.booleans())
    args = make_args(name, np.random.default_rng(t), 2, 5, 3, 4)
    changed = [args[0].copy(), *args[1:]]
    changed[0][:, t] += 1
    y, *_ = call(snp, name, args, reverse=reverse, **options)
    z, *_ = call(snp, name, changed, reverse=reverse, **options)
    moved = np.abs(y - z).max(axis=(0, 2)) > 0
    assert_array_equal(moved, np.arange(5) <= t if reverse else np.arange(5) >= t)


# --- The fast form


@pytest.mark.parametrize("bias", ["both", "ih", "hh", "none"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("sizes", [*SIZES, (64, 13, 3, 5)])  # the last has several blocks
@all_kinds
def test_with_vjp_equals_the_plain_pair(kind, sizes, padded, reverse, bias, rng):
    name, options = kind
    args = make_args(name, rng, *sizes)
    args[-2] = args[-2] if bias in ("both", "ih") else None
    args[-1] = args[-1] if bias in ("both", "hh") else None
    options = options | {"reverse": reverse}
    if padded:
        options["lengths"] = rng.integers(0, sizes[1] + 1, size=sizes[0])
    y = call(snp, name, args, **options)
    fast, vjp = call(snp, f"{name}_with_vjp", args, **options)
    assert_all_close(fast, y, rtol=1e-12, atol=1e-12)
    for _ in range(2):  # the function may be called again, with another dy
        dy = random_dy(y, rng)
        expected = numpy_gradients(name, dy, args, **options)
        assert_all_close(vjp(dy), expected, rtol=1e-11, atol=1e-11)


@all_kinds
def test_with_vjp_shares_no_memory_with_its_results_and_arguments(kind, rng):
    name, options = kind
    args = make_args(name, rng, 3, 5, 2, 7)
    before = [a.copy() for a in args]
    fast, vjp = call(snp, f"{name}_with_vjp", args, **options)
    dy = random_dy(fast, rng)
    dy_before = [d.copy() for d in dy]
    expected = [g.copy() for g in vjp(dy)]
    assert_all_close(args, before, rtol=0, atol=0)
    assert_all_close(dy, dy_before, rtol=0, atol=0)
    for array in (*fast, *vjp(dy)):
        array[:] = np.nan
    assert_all_close(vjp(dy), expected, rtol=0, atol=0)


# --- Bad input


WRONG = [
    ("x", lambda a: a[:, :, 0], "x must have shape (B, T, 2), got (3, 5); a batch of"),
    ("x", lambda a: a[:, :, :1], "x must have shape (B, T, 2), got (3, 5, 1); a batch of"),
    ("h0", lambda a: a[:2], "h0 must have shape (3, 7), got (2, 7); one state of H = 7"),
    ("h0", lambda a: a[:, :6], "h0 must have shape (3, 7), got (3, 6); one state of H = 7"),
    ("weight_ih", lambda a: a[:-1], "weight_ih must have shape ({rows}, D), got ({rows_1}, 2)"),
    ("weight_hh", lambda a: a.T[:, :6], "weight_hh must have shape ({few}, 6), got (7, 6)"),
    ("bias_ih", lambda a: a[:, None], "bias_ih must have shape ({rows},), got ({rows}, 1)"),
    ("bias_hh", lambda a: a[:-1], "bias_hh must have shape ({rows},), got ({rows_1},)"),
]


@pytest.mark.parametrize(("wrong", "change", "text"), WRONG, ids=[w[2][:24] for w in WRONG])
@all_kinds
def test_wrong_shapes_are_refused(kind, wrong, change, text, rng):
    name, options = kind
    args = make_args(name, rng, 3, 5, 2, 7)
    names = ["x", "h0", *(["c0"] if name == "lstm" else []), "weight_ih", "weight_hh"]
    names += ["bias_ih", "bias_hh"]
    i = names.index(wrong)
    args[i] = change(args[i])
    rows = {"rnn": 7, "lstm": 28, "gru": 21}[name]
    text = text.format(rows=rows, rows_1=rows - 1, few=rows // 7 * 6)
    assert error_text(name, *args, **options).startswith(text)
    with pytest.raises(ValueError, match="must have shape"):
        getattr(snp, f"{name}_with_vjp")(*args, **options)


@all_kinds
def test_the_error_says_how_gates_are_stacked(kind, rng):
    name, options = kind
    args = make_args(name, rng, 3, 5, 2, 7)
    args[-4] = args[-4][:-1]
    gates = {"rnn": "H outputs", "lstm": "gates i, f, g, o, H each", "gru": "gates r, z, n"}
    assert gates[name] in error_text(name, *args, **options)


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([1, 2], "lengths must have shape (3,), got (2,); one length per sequence"),
        ([1, 2, 6], "lengths must be less than 6 everywhere, got 6; x has T = 5 steps, so"),
        ([1, -2, 5], "lengths must be at least 0 everywhere, got -2; x has T = 5 steps, so"),
        ([1.0, 2.0, 5.0], "lengths must have an integer dtype, got float64; x has T"),
    ],
)
@all_kinds
def test_wrong_lengths_are_refused(kind, lengths, text, rng):
    name, options = kind
    args = make_args(name, rng, 3, 5, 2, 7)
    assert error_text(name, *args, lengths=np.array(lengths), **options).startswith(text)


@all_kinds
def test_wrong_shapes_of_a_cell_are_refused(kind, rng):
    name, options = kind
    args = cell_args(name, rng, 3, 2, 7)
    text = error_text(f"{name}_cell", args[0][:, None], *args[1:], **options)
    assert text.startswith("x must have shape (B, 2), got (3, 1, 2); one step is (B, D)")
    text = error_text(f"{name}_cell", args[0], args[1][:2], *args[2:], **options)
    assert text.startswith("h must have shape (3, 7), got (2, 7); one state of H = 7")


# --- Modules


MODULES = {
    "rnn": (spt.RNN, torch.nn.RNN),
    "lstm": (spt.LSTM, torch.nn.LSTM),
    "gru": (spt.GRU, torch.nn.GRU),
}


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_modules_load_the_state_dict_of_torch(name, num_layers, bias, rng):
    ours, theirs = MODULES[name]
    reference = theirs(3, 5, num_layers, bias=bias, batch_first=True).double()
    module = ours(3, 5, num_layers, bias=bias).double()
    module.load_state_dict(reference.state_dict())
    x = torch.tensor(rng.standard_normal((2, 7, 3)))
    h = torch.tensor(rng.standard_normal((num_layers, 2, 5)))
    state = (h, h.flip(0) + 1) if name == "lstm" else h
    for given_state in (None, state):
        y, last = module(x, given_state)
        expected, expected_last = reference(x, given_state)
        assert_all_close([y], [expected])
        if name != "lstm":
            last, expected_last = [last], [expected_last]
        assert_all_close(last, expected_last)


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_modules_start_from_the_same_numbers_as_torch(name):
    ours, theirs = MODULES[name]
    torch.manual_seed(5)
    expected = list(theirs(3, 5, 2).parameters())
    torch.manual_seed(5)
    assert_all_close(list(ours(3, 5, 2).parameters()), expected, rtol=0, atol=0)


@pytest.mark.parametrize("reset_after", [False, True])
def test_gru_module_is_a_stack_of_the_function(reset_after, rng):
    torch.manual_seed(0)
    module = spt.GRU(3, 5, 2, reset_after=reset_after).double()
    x = torch.tensor(rng.standard_normal((2, 7, 3)))
    h0 = torch.tensor(rng.standard_normal((2, 2, 5)))
    options = {"lengths": np.array([7, 4]), "reverse": True}
    y, h_n = module(x, h0, **options)
    options["reset_after"] = reset_after
    first, h_first = spt.gru(x, h0[0], *list(module.parameters())[:4], **options)
    second, h_second = spt.gru(first, h0[1], *list(module.parameters())[4:], **options)
    assert_all_close([y, h_n], [second, torch.stack([h_first, h_second])])


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_modules_pass_lengths_and_direction_on(name, rng):
    module = MODULES[name][0](3, 5).double()
    x = torch.tensor(rng.standard_normal((2, 7, 3)))
    options = {"lengths": [7, 4], "reverse": True}
    zeros = [torch.zeros(2, 5, dtype=x.dtype)] * (2 if name == "lstm" else 1)
    expected = call(spt, name, [x, *zeros, *module.parameters()], **options)
    y, last = module(x, **options)
    last = last if name == "lstm" else [last]
    assert_all_close([y, *(state[0] for state in last)], expected)


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_modules_refuse_wrong_sizes(name):
    module = MODULES[name][0](3, 5, 2)
    assert "3, 5, num_layers=2" in repr(module)
    with pytest.raises(ValueError, match=r"^x must have shape \(B, T, 3\), got \(2, 7, 4\)"):
        module(torch.zeros(2, 7, 4))
    state = torch.zeros(1, 2, 5)
    state = (state, state) if name == "lstm" else state
    message = r"^h0 must have shape \(2, 2, 5\), got \(1, 2, 5\); one state per layer"
    with pytest.raises(ValueError, match=message):
        module(torch.zeros(2, 7, 3), state)
    for sizes, argument in (((0, 5), "input"), ((3, 0), "hidden"), ((3, 5, 0), "num_layers")):
        with pytest.raises(ValueError, match=rf"^{argument}\w* must be a positive integer"):
            MODULES[name][0](*sizes)
