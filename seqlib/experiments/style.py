"""One look for all figures of the book: colours that hold on light and on dark pages.

Figures are SVG without a background.
Text and axes have a grey of middle lightness, lines the colours below: each has a contrast of
at least 3 to 1 both to white and to the dark page, and they stay apart for readers who do not
tell red from green.
Lines differ in dash or marker as well as in colour.
"""

TEXT = "#7b7b7b"
BLUE = "#2a7fbf"
ORANGE = "#c8690a"
GREEN = "#118a6b"
PURPLE = "#a8629c"
COLORS = (BLUE, ORANGE, GREEN, PURPLE)
DARK_PAGE = "#14181e"

# A tile of a heat map goes from the first to the second; its text is black or white.
PALE, DEEP = "#e3eef8", "#1f5f94"


def use():
    """Make the look that of all figures drawn after this call."""
    import matplotlib as mpl
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    mpl.rcParams.update(
        {
            "axes.edgecolor": TEXT,
            "axes.facecolor": "none",
            "axes.grid": True,
            "axes.labelcolor": TEXT,
            "axes.prop_cycle": mpl.cycler(color=COLORS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": TEXT,
            "axes.titlesize": "medium",
            "figure.facecolor": "none",
            "figure.figsize": (6.4, 3.4),
            "font.size": 10.5,
            "grid.alpha": 0.25,
            "grid.color": TEXT,
            "legend.frameon": False,
            "legend.labelcolor": TEXT,
            "lines.markersize": 4,
            "savefig.facecolor": "none",
            "svg.hashsalt": "seqlib",  # equal input, equal file
            "text.color": TEXT,
            "xtick.color": TEXT,
            "ytick.color": TEXT,
        }
    )


def heat_map(axis, values, rows, columns, *, shade=True, show="{:.2f}".format):
    """Draw a table of numbers between 0 and 1 as tiles; an exact 0 has no tile.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
        Where to draw.
    values : ndarray of shape (T, S)
        The numbers, weights of attention for example.
    rows, columns : sequence of str
        Names of the queries and of the keys.
    shade : bool, default=True
        Whether the tiles show the number by their colour; without, only the text is drawn.
    show : callable, optional
        Turns a number into its text.
    """
    import matplotlib as mpl

    fade = mpl.colors.LinearSegmentedColormap.from_list("fade", [PALE, DEEP])
    axis.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5), aspect="equal")
    for row in range(len(rows)):
        for column in range(len(columns)):
            value = float(values[row][column])
            ink = TEXT
            if shade and value > 0:
                tile = mpl.colors.to_hex(fade(value))
                ink = max("#000000", "#ffffff", key=lambda c: contrast(c, tile))
                corner = (column - 0.47, row - 0.47)
                axis.add_patch(mpl.patches.Rectangle(corner, 0.94, 0.94, color=tile, lw=0))
            text = show(value).replace("-", "−")
            axis.text(column, row, text, ha="center", va="center", size=9, color=ink)
    axis.set_xticks(range(len(columns)), columns, size=9)
    axis.set_yticks(range(len(rows)), rows, size=9)
    axis.tick_params(length=0)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)


def contrast(first, second):
    """Return the contrast ratio of two colours, 1 (equal) to 21 (black on white).

    WCAG 2.1, "relative luminance" and "contrast ratio".
    """
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
