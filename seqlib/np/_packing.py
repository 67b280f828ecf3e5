"""How weights of gated layers are packed: here, in the notes and in PyTorch."""

import numpy as np

from seqlib._check import check_shape
from seqlib._recurrent import check_weights

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def split_notes(matrices):
    """Stack matrices on ``[h, x]`` and split off the columns of h."""
    first = next(iter(matrices))
    check_shape(first, matrices[first], ("H", "H + D"))
    H, columns = matrices[first].shape
    for name, matrix in matrices.items():
        check_shape(name, matrix, (H, columns), fix=f"all matrices are shaped like {first}")
    if columns <= H:
        raise ValueError(
            f"{first} must have more columns than rows, got shape ({H}, {columns}); "
            "it acts on [h, x], H + D columns"
        )
    stacked = np.concatenate(list(matrices.values()))
    return stacked[:, H:].copy(), stacked[:, :H].copy()


def join_notes(weight_ih, weight_hh):
    """Return one matrix on ``[h, x]`` per gate."""
    joined = np.concatenate([weight_hh, weight_ih], axis=1)
    return tuple(np.split(joined, len(joined) // weight_hh.shape[1]))


def read_torch(state, layer, gates, kind):
    """Return the four parameters of a layer of a ``state_dict`` as arrays."""
    parameters = []
    for name in NAMES:
        value = state.get(f"{name}_l{layer}")
        if value is None and name.startswith("weight"):
            raise ValueError(
                f"state must hold {name}_l{layer}, a parameter of torch.nn.{kind}, "
                f"got the keys {sorted(state)}"
            )
        if hasattr(value, "detach"):  # a tensor; PyTorch itself is not imported here
            value = value.detach().cpu().numpy()
        parameters.append(None if value is None else np.array(value))
    extra = sorted(key for key in state if key.endswith("_reverse") or "weight_hr" in key)
    if extra:
        raise ValueError(
            f"state must be that of a {kind} in one direction and without projection, "
            f"got {extra[0]}"
        )
    check_weights(*parameters, gates=gates)
    return tuple(parameters)


def write_torch(*parameters):
    """Return the four parameters under the names of a ``state_dict``."""
    named = zip(NAMES, parameters, strict=True)
    return {f"{name}_l0": p.copy() for name, p in named if p is not None}
