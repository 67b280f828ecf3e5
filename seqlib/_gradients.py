"""What clipping needs in both backends: containers of gradients, and checks of the limits."""

import math


def list_gradients(grads):
    """Return the gradients in a list, tuple or dict, without those that are None."""
    if not isinstance(grads, dict | list | tuple):
        raise ValueError(
            f"grads must be a list, a tuple or a dict, got a {type(grads).__name__}; "
            "put a single gradient into a list"
        )
    values = grads.values() if isinstance(grads, dict) else grads
    return [g for g in values if g is not None]


def map_gradients(function, grads):
    """Apply a function to each gradient and return the same container; None stays None."""
    list_gradients(grads)  # refuses other containers
    if isinstance(grads, dict):
        return {name: None if g is None else function(g) for name, g in grads.items()}
    return type(grads)(None if g is None else function(g) for g in grads)


def check_limit(name, value):
    """Raise ``ValueError`` unless ``value`` is a positive number; infinity is no limit."""
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value}")


def check_finite_norm(norm):
    """Raise ``ValueError`` if the joint norm of the gradients is infinite or NaN."""
    if not math.isfinite(norm):
        raise ValueError(
            f"grads must have a finite norm, got {norm}; skip this update and look for the "
            "first value that is not finite (a scale would spread it to every parameter)"
        )
