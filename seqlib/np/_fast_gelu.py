"""GELU and its slope in one pass, for training steps and generation."""

import math

import numpy as np

from seqlib.np.activation import gelu, gelu_backward

__all__ = []

_BLOCK = 2**15  # entries: small enough for a cache, large enough that calls cost little
_SIGN = np.uint32(1 << 31)  # the sign bit of a float32


def gelu_and_slope(x, approximate):
    """Return ``gelu(x)`` and its derivative, which share their costly part.

    In float32 the exact form uses formula 7.1.26 of Abramowitz and Stegun (1964), "Handbook of
    Mathematical Functions", whose error of 1.5e-7 is that of float32 itself.
    """
    # Entries below 1e10 cannot overflow in a cube; NaN and larger ones take the plain way.
    if x.dtype != np.float32 or not np.vdot(x, x) < 1e20:
        y = gelu(x, approximate=approximate)
        return y, gelu_backward(np.ones_like(x), x, approximate=approximate)
    y, slope = np.empty_like(x), np.empty_like(x)
    block = _tanh_block if approximate == "tanh" else _exact_block
    flat = [a.reshape(-1) for a in (x, y, slope)]
    for start in range(0, x.size, _BLOCK):
        block(*[a[start : start + _BLOCK] for a in flat])
    return y, slope


def _tanh_block(x, y, slope):
    """Fill y = x (1 + t) / 2 and (1 + t) / 2 + x (1 - t^2) s' / 2 with t = tanh(s(x))."""
    root, cubic = math.sqrt(2 / math.pi), 0.044715
    square = x * x
    t = square * (root * cubic)
    t += root
    t *= x
    np.tanh(t, out=t)
    np.multiply(t, t, out=slope)
    np.subtract(1, slope, out=slope)
    square *= 1.5 * root * cubic
    square += 0.5 * root
    slope *= square
    slope *= x
    t += 1
    t *= 0.5
    slope += t
    np.multiply(x, t, out=y)


def _exact_block(x, y, slope):
    """Fill y = x Phi(x) and Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi)."""
    density = x * x
    density *= -0.5
    np.exp(density, out=density)  # sqrt(2 pi) times the normal density
    # Phi(-|x|) = exp(-x^2 / 2) * (a1 t + ... + a5 t^5) / 2 with t = 1 / (1 + p |x| / sqrt(2)).
    t = np.abs(x)
    t *= 0.3275911 / math.sqrt(2)
    t += 1
    np.divide(1, t, out=t)
    phi = t * (1.061405429 / 2)
    for a in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        phi += a / 2
        phi *= t
    phi *= density
    # Phi(x) = 1/2 + sign(x) * (1/2 - Phi(-|x|)): flip the sign bit where x has one.
    np.subtract(0.5, phi, out=phi)
    bits = phi.view(np.uint32)
    bits ^= x.view(np.uint32) & _SIGN
    phi += 0.5
    np.multiply(x, phi, out=y)
    density *= 1 / math.sqrt(2 * math.pi)
    np.multiply(x, density, out=slope)
    slope += phi
