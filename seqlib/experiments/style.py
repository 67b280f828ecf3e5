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

# From "no weight" to "all weight", readable on both pages.
WEIGHTS = "cividis"


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
