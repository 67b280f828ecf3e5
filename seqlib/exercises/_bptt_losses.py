"""Losses with known gradients, right and wrong, on which a gradient checker is tried."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Loss:
    """A scalar function, a point, and the gradient there.

    Attributes
    ----------
    E : callable
        Takes an array of the shape of ``theta`` and returns a float, computed in the
        precision of the array.
    theta, gradient : ndarray
        The point, and the right gradient.
    """

    E: object
    theta: np.ndarray
    gradient: np.ndarray

    @property
    def largest(self):
        """Size of the largest entry of the gradient."""
        return float(np.abs(self.gradient).max())

    def off_at(self, *offsets):
        """Return the gradient with ``(index, share of the largest entry)`` added."""
        wrong = np.array(self.gradient)
        for index, share in offsets:
            wrong.flat[index] += share * self.largest
        return wrong


def smooth_loss(rng, n, *, size=1.0, constant=0.0, dtype=np.float64):
    """Return ``size * (sum of sin(a_i theta_i) + (w . theta)^2 / 2) + constant``."""
    a = rng.uniform(0.5, 1.5, n) * np.where(rng.random(n) < 0.5, -1, 1)
    w = rng.uniform(0.2, 0.6, n)
    theta = rng.uniform(0.2, 0.9, n).astype(dtype)

    def E(point):
        point = checked(point, theta)
        waves = np.sin(a.astype(point.dtype) * point).sum()
        square = (w.astype(point.dtype) * point).sum() ** 2 / 2
        kind = point.dtype.type
        return float(kind(size) * (waves + square) + kind(constant))

    at = theta.astype(np.float64)
    gradient = size * (a * np.cos(a * at) + (w @ at) * w)
    return Loss(E, theta, gradient.astype(dtype))


def flat_entry_loss(rng, n):
    """Return a loss whose last parameter has next to no influence."""
    rest = smooth_loss(rng, n - 1)
    theta = np.append(rest.theta, 0.5)

    def E(point):
        point = checked(point, theta)
        return rest.E(point[:-1]) + 1e-12 * float(point[-1])

    return Loss(E, theta, np.append(rest.gradient, 1e-12))


def bowl_loss(rng, n):
    """Return a quadratic loss at a point 1e-4 away from its minimum."""
    c = rng.uniform(1000, 3000, n)
    theta = rng.uniform(0.3e-4, 1e-4, n)

    def E(point):
        point = checked(point, theta)
        return float((c * point**2).sum() / 2)

    return Loss(E, theta, c * theta)


def recurrent_loss(rng, m=3, T=4):
    """Return the loss of a recurrent network as a function of ``W_hh``."""
    inputs = rng.standard_normal((T, m))
    h0, targets = rng.standard_normal(m), rng.standard_normal((T, m))
    W_hh = 0.7 * rng.standard_normal((m, m))

    def states(W):
        h, found = h0, []
        for a in inputs:
            h = np.tanh(W @ h + a)
            found.append(h)
        return np.array(found)

    def E(W):
        return float((targets * states(checked(W, W_hh))).sum() / T)

    H = states(W_hh)
    before = np.concatenate([h0[None], H[:-1]])
    gradient, carry = np.zeros_like(W_hh), np.zeros(m)
    for t in reversed(range(T)):
        da = (targets[t] / T + carry) * (1 - H[t] ** 2)
        gradient += np.outer(da, before[t])
        carry = W_hh.T @ da
    return Loss(E, W_hh, gradient)


def checked(point, theta):
    """Return an argument of E as an array, if it has the right shape."""
    point = np.asarray(point)
    if point.shape != theta.shape:
        raise ValueError(f"theta must have shape {theta.shape}, got {point.shape}")
    return point if point.dtype == np.float32 else point.astype(np.float64)
