"""What the recurrent layers of both backends share: checks of arguments, order of the steps.

Like ``seqlib._check`` this imports neither NumPy nor PyTorch.
"""

from seqlib._check import check_integers, check_shape


def check_weights(weight_ih, weight_hh, bias_ih, bias_hh, *, gates):
    """Raise ``ValueError`` unless the parameters fit together; return the sizes D and H."""
    blocks = gates.count(",") + 1
    fix = f"the rows are the gates {gates}, H each" if gates else "the rows are the H outputs"
    _check("weight_hh", weight_hh, ("rows", "H"), fix)
    H = weight_hh.shape[1]
    _check("weight_hh", weight_hh, (blocks * H, H), fix)
    _check("weight_ih", weight_ih, (blocks * H, "D"), fix)
    for name, bias in (("bias_ih", bias_ih), ("bias_hh", bias_hh)):
        if bias is not None:
            _check(name, bias, (blocks * H,), fix)
    return weight_ih.shape[1], H


def check_cell(x, states, weight_ih, weight_hh, bias_ih, bias_hh, *, gates):
    """Raise ``ValueError`` unless the arguments of one step fit together.

    ``states`` maps the names of the states to their arrays; ``gates`` names the blocks of H
    rows in the weights, such as ``"i, f, g, o"``, or is empty for a layer without gates.
    """
    D, H = check_weights(weight_ih, weight_hh, bias_ih, bias_hh, gates=gates)
    _check("x", x, ("B", D), "one step is (B, D): rows are sequences")
    _check_states(states, x.shape[0], H)


def check_sequence(x, states, weight_ih, weight_hh, bias_ih, bias_hh, *, gates):
    """Raise ``ValueError`` unless the arguments of a whole sequence fit together."""
    D, H = check_weights(weight_ih, weight_hh, bias_ih, bias_hh, gates=gates)
    _check("x", x, ("B", "T", D), "a batch of sequences is (B, T, D), batch first")
    _check_states(states, x.shape[0], H)


def check_lengths(lengths, x):
    """Raise ``ValueError`` unless ``lengths`` holds one length of at most T per sequence."""
    B, T = x.shape[:2]
    check_shape("lengths", lengths, (B,), fix="one length per sequence of the batch")
    fix = f"x has T = {T} steps, so a length lies between 0 and {T}"
    check_integers("lengths", lengths, low=0, high=T + 1, fix=fix)


def time_order(T, reverse):
    """Return the steps in the order in which the layer runs through them."""
    return range(T - 1, -1, -1) if reverse else range(T)


def _check_states(states, B, H):
    for name, state in states.items():
        _check(name, state, (B, H), f"one state of H = {H} numbers per sequence")


def _check(name, array, expected, fix):
    # The usual case is decided by one comparison, as a cell is called at every step.
    if getattr(array, "shape", None) != expected:
        check_shape(name, array, expected, fix=fix)
