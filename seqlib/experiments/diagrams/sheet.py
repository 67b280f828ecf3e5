"""Boxes, arrows and symbols: the one visual language of the drawn diagrams.

Data flows upward, time to the right.
A value stands in a pale box, a map with learned parameters in a dark one, an operation without
parameters in an outline; a dot marks a line that branches, and lines that cross without a dot
do not meet.
Glyphs are drawn as outlines, so that the page needs no fonts.

A sheet also remembers what it connects.
So a test can read the drawn arrows as a computation and compare its result with the library.
"""

from dataclasses import dataclass

from seqlib.experiments import style

SYMBOL, WORD = 16, 14  # sizes in pixels, of formulas and of words
HEAD = 8  # length of an arrow's head
INK = {"value": "#000000", "norm": "#000000", "map": "#ffffff", "op": style.TEXT}
FILL = {"value": style.PALE, "norm": style.PALE, "map": style.DEEP, "op": "none"}
EDGE = {"value": style.TEXT, "norm": style.PURPLE, "map": style.BLUE, "op": style.TEXT}


@dataclass(frozen=True)
class Port:
    """A point where an arrow begins or ends, and the node that it belongs to."""

    node: "Node"
    x: float
    y: float
    branch: bool = False


@dataclass(frozen=True, eq=False)
class Node:
    """A box or circle around ``(x, y)`` with its text."""

    text: str
    kind: str
    x: float
    y: float
    width: float
    height: float

    def at(self, x, y):
        """Return a point on a line that leaves the node, where another line branches off."""
        return Port(self, x, y, branch=True)

    def left(self):
        """Return the middle of the left side."""
        return Port(self, self.x - self.width / 2, self.y)

    def right(self):
        """Return the middle of the right side."""
        return Port(self, self.x + self.width / 2, self.y)

    def top(self, shift=0):
        """Return the middle of the upper side, or a point beside it."""
        return Port(self, self.x + shift, self.y + self.height / 2)

    def bottom(self, shift=0):
        """Return the middle of the lower side, or a point beside it."""
        return Port(self, self.x + shift, self.y - self.height / 2)


class Sheet:
    """A drawing of ``width`` by ``height`` pixels; the origin is the lower left corner."""

    def __init__(self, width, height):
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / 96, height / 96), dpi=96, facecolor="none")
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(0, height))
        self.axes.set_axis_off()
        self.nodes, self.links, self.lines, self.labels, self.texts = [], [], [], [], {}

    def value(self, x, y, text, width=36, color=style.TEXT):
        """Draw a value, a vector or matrix, and return its node."""
        return self._box(Node(text, "value", x, y, width, 28), color, radius=13)

    def map(self, x, y, text, width=40, height=34):
        """Draw a map with learned parameters and return its node."""
        return self._box(Node(text, "map", x, y, width, height), EDGE["map"], radius=4)

    def norm(self, x, y, text, width=76):
        """Draw a normalisation, which has parameters too, and return its node."""
        return self._box(Node(text, "norm", x, y, width, 30), EDGE["norm"], radius=4)

    def op(self, x, y, text, width=26, height=26):
        """Draw an operation without parameters and return its node."""
        return self._box(Node(text, "op", x, y, width, height), EDGE["op"], radius=13)

    def arrow(self, start, *corners, end, color=style.TEXT, dashed=False, thick=False):
        """Draw an arrow from a port to a port, around the corners, and record the link."""
        if start.branch:
            self._dot(start.x, start.y, color)
        points = [(start.x, start.y), *corners, (end.x, end.y)]
        self.links.append((start.node, end.node))
        self.line(points, color=color, dashed=dashed, thick=thick, head=True)

    def line(self, points, *, color=style.TEXT, dashed=False, thick=False, head=False):
        """Draw a line with rounded corners that links nothing."""
        from matplotlib.patches import PathPatch, Polygon

        self.lines.append(points)
        (x0, y0), (x1, y1) = points[-2:]
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        width = 2.4 if thick else 1.5
        if head:
            back, side = (x1 - HEAD * dx, y1 - HEAD * dy), HEAD * (0.6 if thick else 0.5)
            corners = [(x1, y1)] + [(back[0] + s * dy, back[1] - s * dx) for s in (side, -side)]
            self.axes.add_patch(Polygon(corners, facecolor=color, edgecolor="none", zorder=2))
            points = [*points[:-1], (back[0] + dx, back[1] + dy)]
        self.axes.add_patch(
            PathPatch(
                _rounded(points),
                facecolor="none",
                edgecolor=color,
                linewidth=0.75 * width,
                linestyle=(0, (4, 2.5)) if dashed else "solid",
                capstyle="butt",
                zorder=1,
            )
        )

    def frame(self, left, bottom, right, top, members=(), color=style.TEXT):
        """Draw a dotted frame; a node whose inputs are the members, in their order."""
        from matplotlib.patches import Rectangle

        corner, size = (left, bottom), (right - left, top - bottom)
        self.axes.add_patch(
            Rectangle(
                corner, *size, facecolor="none", edgecolor=color, linewidth=1, linestyle=":"
            )
        )
        node = Node("frame", "frame", left + size[0] / 2, bottom + size[1] / 2, *size)
        self.links.extend((member, node) for member in members)
        return node

    def label(self, x, y, text, *, size=WORD, color=style.TEXT, align="center"):
        """Write words or a symbol beside the boxes."""
        self.labels.append(self._write(x, y, text, color, size, align))

    def save(self, path):
        """Write the drawing as SVG; the same library gives the same bytes."""
        import matplotlib as mpl

        with mpl.rc_context({"svg.hashsalt": "seqlib", "svg.fonttype": "path"}):
            self.figure.savefig(path, format="svg", metadata={"Date": None}, facecolor="none")

    def _box(self, node, edge, radius):
        from matplotlib.patches import FancyBboxPatch

        radius = min(radius, node.width / 2, node.height / 2)
        self.axes.add_patch(
            FancyBboxPatch(
                (node.x - node.width / 2, node.y - node.height / 2),
                node.width,
                node.height,
                boxstyle=f"round,pad=0,rounding_size={radius}",
                facecolor=FILL[node.kind],
                edgecolor=edge,
                linewidth=1.2,
                zorder=3,
            )
        )
        self.nodes.append(node)
        size = SYMBOL if "$" in node.text else WORD
        self.texts[node] = self._write(node.x, node.y, node.text, INK[node.kind], size)
        return node

    def _dot(self, x, y, color):
        from matplotlib.patches import Circle

        self.axes.add_patch(Circle((x, y), 3, facecolor=color, edgecolor="none", zorder=2))

    def _write(self, x, y, text, color, size, align="center"):
        return self.axes.text(
            x,
            y,
            text,
            ha=align,
            va="center_baseline" if "\n" not in text else "center",
            color=color,
            fontsize=0.75 * size,
            fontfamily="DejaVu Sans",
            math_fontfamily="dejavusans",
            linespacing=1.1,
            zorder=4,
        )


def _rounded(points, radius=6):
    """Return a path through the points that turns each corner in an arc."""
    from matplotlib.path import Path

    vertices, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        for other in (before, after):
            dx, dy = other[0] - corner[0], other[1] - corner[1]
            length = (dx * dx + dy * dy) ** 0.5
            share = min(radius, length / 2) / length
            vertices.append((corner[0] + share * dx, corner[1] + share * dy))
            codes.append(Path.LINETO if other is before else Path.CURVE3)
        vertices.insert(-1, corner)
        codes.insert(-1, Path.CURVE3)
    return Path([*vertices, points[-1]], [*codes, Path.LINETO])
