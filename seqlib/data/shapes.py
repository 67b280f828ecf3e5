"""Pictures of two shapes, each with the one caption that describes it."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from seqlib._check import check_positive

__all__ = ["COLOURS", "RELATIONS", "SHAPES", "Scene", "render", "scenes"]

COLOURS = {
    "red": (0.9, 0.1, 0.1),
    "green": (0.1, 0.7, 0.2),
    "blue": (0.2, 0.3, 0.95),
    "yellow": (0.95, 0.9, 0.1),
}
SHAPES = ("circle", "square", "triangle")
RELATIONS = ("left of", "above")


@dataclass(frozen=True)
class Scene:
    """Two coloured shapes, one left of the other or one above the other.

    Only two relations are needed, since the caption names the left or upper shape first: no
    picture has two captions.

    Attributes
    ----------
    objects : tuple of two (str, str)
        Colour and shape of the left or upper object, then of the other.
    relation : {"left of", "above"}
        How the first lies to the second.
    centres : tuple of two (int, int)
        Row and column of each centre, in pixels.
    radii : tuple of two int
        Half the height and width of each object, in pixels.
    """

    objects: tuple
    relation: str
    centres: tuple
    radii: tuple

    @property
    def caption(self):
        """The canonical caption: ``"a red circle left of a blue square"``."""
        (colour, shape), (colour2, shape2) = self.objects
        return f"a {colour} {shape} {self.relation} a {colour2} {shape2}"

    @property
    def triple(self):
        """Colour and shape of the first object, and the relation."""
        return (*self.objects[0], self.relation)

    @property
    def boxes(self):
        """For each object (top, left, bottom, right): the rows and columns that it fills."""
        return tuple(
            (row - r, column - r, row + r + 1, column + r + 1)
            for (row, column), r in zip(self.centres, self.radii, strict=True)
        )


def scenes(n, rng, *, size=32, held_out=(), test=False):
    """Draw scenes and their pictures.

    ``held_out`` names triples of the first object: with ``[("red", "circle", "above")]`` no
    red circle stands above anything in training, and one does in every scene drawn with
    ``test=True``. Red circles, and things above others, still occur.

    Parameters
    ----------
    n : int
        Number of scenes.
    rng : numpy.random.Generator
        Source of the scenes: triples, second objects, places and sizes are equally likely.
    size : int, default=32
        Height and width of the pictures in pixels, at least 24.
    held_out : collection of (str, str, str), default=()
        Triples of colour, shape and relation.
    test : bool, default=False
        Draw the triples that are held out instead of the others.

    Returns
    -------
    images : ndarray of shape (n, size, size, 3)
        The pictures, red, green and blue from 0 to 1, in float32, on black.
    found : list of Scene
        What they show; ``scene.caption`` is the caption.

    Raises
    ------
    ValueError
        If a triple is not one of the 24, or none is left to draw from.
    """
    check_positive("n", n)
    check_positive("size", size)
    if size < 24:
        raise ValueError(f"size must be at least 24 to hold two shapes apart, got {size}")
    triples = list(product(COLOURS, SHAPES, RELATIONS))
    unknown = [triple for triple in held_out if tuple(triple) not in triples]
    if unknown:
        raise ValueError(
            f"held_out must hold triples of a colour ({', '.join(COLOURS)}), a shape "
            f"({', '.join(SHAPES)}) and a relation ({', '.join(RELATIONS)}), got {unknown[0]}"
        )
    held_out = {tuple(triple) for triple in held_out}
    allowed = [triple for triple in triples if (triple in held_out) == test]
    if not allowed:
        raise ValueError(
            f"held_out must leave a triple to draw with test={test}, got {len(held_out)} of "
            f"{len(triples)}"
        )
    found = [_scene(rng, allowed[rng.integers(len(allowed))], size) for _ in range(n)]
    return np.stack([render(scene, size) for scene in found]), found


def render(scene, size=32):
    """Draw a scene.

    Parameters
    ----------
    scene : Scene
        What to draw.
    size : int, default=32
        Height and width in pixels.

    Returns
    -------
    ndarray of shape (size, size, 3)
        The picture, red, green and blue from 0 to 1, in float32, on black.
    """
    image = np.zeros((size, size, 3), np.float32)
    rows, columns = np.mgrid[:size, :size]
    for (colour, shape), (row, column), r in zip(
        scene.objects, scene.centres, scene.radii, strict=True
    ):
        y, x = rows - row, columns - column
        inside = np.maximum(abs(x), abs(y)) <= r
        if shape == "circle":
            inside = x**2 + y**2 <= (r + 0.5) ** 2
        elif shape == "triangle":
            inside &= 2 * abs(x) <= y + r  # one pixel wide at the top, 2 r + 1 at the bottom
        image[inside] = COLOURS[colour]
    return image


def _scene(rng, triple, size):
    colour, shape, relation = triple
    second = (list(COLOURS)[rng.integers(len(COLOURS))], SHAPES[rng.integers(len(SHAPES))])
    radii = rng.integers(3, 6, size=2)
    # Along the relation each object keeps to its half; across, the centres differ by little.
    half = size // 2
    along = [
        rng.integers(r, half - r) + start for r, start in zip(radii, (0, half), strict=True)
    ]
    middle = rng.integers(6, size - 6)
    across = [min(max(middle + rng.integers(-1, 2), r), size - 1 - r) for r in radii]
    pairs = zip(across, along) if relation == "left of" else zip(along, across)  # noqa: B905
    centres = tuple((int(row), int(column)) for row, column in pairs)
    return Scene(((colour, shape), second), relation, centres, tuple(int(r) for r in radii))
