"""Right work that arrives damaged, noisy or written in an unusual way: it loses nothing."""

import copy
import random

from submissions import FILE, FULL, TASKS, Attack, changed, function, one, tests, text

from seqlib.grading.samples import answers, damage
from seqlib.grading.samples.damage import cell_of, to_bytes

ATTACKS = []
REPAIRED = ("graded_with_repairs",)


def add(name, *threats, make, states=("graded",), **options):
    """Register a submission that deserves all points."""

    def files(kit):
        made = make(kit)
        return made if isinstance(made, dict) and "nbformat" not in made else one(made)

    ATTACKS.append(Attack(name, threats, files, FULL, states, **options))


# 29 to 32: cells

add(
    "tests deleted",
    29,
    make=lambda k: damage.without(k.right(), *tests(k.blank())),
    states=REPAIRED,
)
add(
    "everything deleted but the answers",
    29,
    make=lambda k: {
        **k.right(),
        "cells": [c for c in k.right()["cells"] if c["id"] in k.solutions],
    },
    states=REPAIRED,
)
add(
    "every cell twice",
    30,
    make=lambda k: damage.with_copies(k.right(), *[c["id"] for c in k.blank()["cells"]]),
    states=REPAIRED,
)


def stub_copied(kit):
    """The released answer, with its id, behind the written one."""
    notebook = kit.right()
    for stub in [cell_of(kit.blank(), name) for name in TASKS]:
        notebook["cells"].append(copy.deepcopy(stub))
    return notebook


add("empty answers behind the written ones", 30, make=stub_copied, states=REPAIRED)


def split(kit):
    """An answer split in two cells, as the editor's command does it: both have the metadata."""
    notebook = kit.right()
    cell = cell_of(notebook, "split_heads")
    helper = "def _shape(X, H):\n    return (*X.shape[:2], H, X.shape[2] // H)"
    rest = "def split_heads(X, H):\n    return np.moveaxis(X.reshape(_shape(X, H)), 2, 0)"
    place = notebook["cells"].index(cell)
    first = copy.deepcopy(cell) | {"source": helper, "id": "0f1e2d"}
    cell["source"] = rest
    notebook["cells"].insert(place, first)
    return notebook


add("an answer split into two cells", 30, make=split, states=REPAIRED)


def merged(kit):
    """Two answers and a test merged into one cell."""
    notebook = kit.right()
    first, second = cell_of(notebook, "split_heads"), cell_of(notebook, "merge_heads")
    first["source"] += "\n\n\n" + second["source"]
    return damage.without(notebook, "merge_heads", "test_split_heads")


add("two answers merged into one cell", 30, make=merged, states=REPAIRED)


def merged_with_test(kit):
    notebook = kit.right()
    cell_of(notebook, "split_heads")["source"] += (
        "\n" + cell_of(notebook, "test_split_heads")["source"]
    )
    return damage.without(notebook, "test_split_heads")


add("an answer merged with its test", 30, make=merged_with_test, states=REPAIRED)
add(
    "answers and tests turned into text",
    31,
    make=lambda k: damage.retyped(k.right(), *TASKS, *tests(k.blank())),
    states=REPAIRED,
)
add(
    "answers moved to raw cells",
    31,
    make=lambda k: changed(k.right(), "split_heads", cell_type="raw"),
    states=REPAIRED,
)
add(
    "locked cells unlocked and edited",
    31,
    make=lambda k: changed(
        k.right(),
        "setup",
        metadata={},
        source=cell_of(k.blank(), "setup")["source"] + "\nimport math",
    ),
    states=REPAIRED,
)
add("grading data gone", 31, make=lambda k: damage.without_metadata(k.right()), states=REPAIRED)
for label, data in {
    "a schema of the future": {"schema_version": 99, "cell_type": "quantum"},
    "texts in place of values": {"grade": "yes", "points": "many", "locked": None},
}.items():
    add(
        f"grading data with {label}",
        31,
        make=lambda k, data=data: damage.with_metadata(
            k.right(), [*TASKS, *tests(k.blank())], data
        ),
        states=("graded", "graded_with_repairs"),
    )


def edited_test(kit):
    return changed(
        kit.right(),
        "test_split_heads",
        source='print("let me see")\ncheck("attention.split_heads", split_heads)',
    )


add("a test with a line of one's own", 31, make=edited_test, states=REPAIRED)
add(
    "cells in reversed order",
    32,
    make=lambda k: damage.reversed_order(k.right()),
    states=REPAIRED,
)


def shuffled(kit):
    notebook = kit.right(last=["'my notes'"])
    random.Random(7).shuffle(notebook["cells"])
    return notebook


add("cells in any order", 32, make=shuffled, states=REPAIRED)

# 33 and 34: files


def beside(kit, name):
    return {name: to_bytes(kit.right())}


for name in (
    "attention (1).ipynb",
    "attention-Copy1.ipynb",
    "Ada's homework.ipynb.txt",
    "work/week 3/hw.ipynb",
):
    add(f"renamed to {name}", 33, make=lambda k, name=name: beside(k, name), states=REPAIRED)
add(
    "an untouched file beside the work",
    33,
    make=lambda k: {FILE: to_bytes(k.blank()), "final.ipynb": to_bytes(k.right())},
    states=REPAIRED,
)
add(
    "fourteen other notebooks beside the work",
    33,
    make=lambda k: {**{f"{n}.ipynb": b"{}" for n in range(14)}, FILE: to_bytes(k.right())},
    states=("graded", "graded_with_repairs"),
)


def zip_in_zip(kit):
    from breakers import zipped

    return {"a.zip": zipped({"b.zip": zipped({f"deep/{FILE}": to_bytes(kit.right())})})}


add("an archive in an archive", 33, make=zip_in_zip, states=REPAIRED)
FILES = {
    "a byte-order mark": lambda data: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "Windows-1252": lambda data: data.replace(b"# ", "# gel\u00f6st ".encode("cp1252"), 1),
    "zero bytes": lambda data: data.replace(b"\n", b"\0\n"),
    "Windows' line ends": lambda data: data.replace(b"\n", b"\r\n"),
    "text behind the end": lambda data: data + b"\n<!-- uploaded -->\n",
    "a missing bracket": lambda data: data.rstrip()[:-1],
    "NaN in its metadata": lambda data: data.replace(
        b'"nbformat": 4', b'"x": NaN, "nbformat": 4'
    ),
}
for label, spoil in FILES.items():
    add(
        f"a file with {label}",
        34,
        make=lambda k, spoil=spoil: spoil(to_bytes(k.right())),
        states=("graded", "graded_with_repairs"),
    )
add("an unfinished merge", 34, make=lambda k: damage.conflicted(k.right()), states=REPAIRED)
add("notebook format 3", 34, make=lambda k: damage.in_format_3(k.right()), states=REPAIRED)

# 35 to 38: how notebooks are used

add(
    "another kernel and language",
    35,
    make=lambda k: {
        **k.right(),
        "metadata": {
            "kernelspec": {"name": "r-4", "display_name": "R", "language": "R"},
            "language_info": {"name": "R"},
        },
    },
)
MAGICS = """
    %matplotlib qt
    %pip install numpy
    !rm -rf /
    %load_ext autoreload
    %autoreload 2
    %cd /tmp
    %config InlineBackend.figure_format = "retina"
    x = 1
    """
add(
    "magics and commands of the shell",
    35,
    make=lambda k: k.right(
        first=[
            MAGICS,
            "%%bash\nrm -rf / &",
            "%%time\ny = 2",
            "%%javascript\nalert(1)",
            "%who",
            "?np.sum",
        ]
    ),
)
add(
    "magics within an answer",
    35,
    make=lambda k: k.right(
        {"merge_heads": "%pip install einops\n" + k.solutions["merge_heads"]}
    ),
)
add(
    "a question to the user",
    35,
    make=lambda k: k.right(
        first=["name = input('name? ')", "import sys\nsys.stdin.read()", "breakpoint()"]
    ),
)
add(
    "a window",
    35,
    make=lambda k: k.right(
        first=[
            "import matplotlib\nmatplotlib.use('TkAgg')",
            "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()",
        ]
    ),
)
NOISE = """
    import logging, sys, warnings
    def trick(function, name):
        def noisy(*args, **kwargs):
            warnings.warn("old", DeprecationWarning)
            warnings.warn("slow", RuntimeWarning)
            print("step 1", file=sys.stderr)
            print(args)
            logging.getLogger().error("all is well")
            sys.stderr.write("\\r 100%|##########|")
            np.log(np.zeros(1))
            return function(*args, **kwargs)
        return noisy
    """


def wrapped(kit, source):
    """Every answer wrapped by a function of the cell."""
    notebook = kit.right(first=[source])
    # Each answer is wrapped in its own cell, since its test comes next.
    for name in TASKS:
        cell_of(notebook, name)["source"] += f"\n\n\n{name} = trick({name}, {name!r})"
    return notebook


add("warnings, prints and logs in every answer", 36, make=lambda k: wrapped(k, NOISE))
add(
    "warnings made errors",
    19,
    36,
    make=lambda k: k.right(
        first=["import warnings\nwarnings.simplefilter('error')\nnp.seterr(all='raise')"]
    ),
)
FAILING = [
    "import a_package_that_is_not_there",
    "1 / 0",
    "def (:",
    "split_heads(np.ones(3))",
    "raise SystemExit",
    "open('/etc/passwd')",
]
add("cells that fail", 37, make=lambda k: k.right(first=FAILING, last=FAILING))
add(
    "an answer whose cell fails behind it",
    37,
    make=lambda k: k.right(
        {"split_heads": k.solutions["split_heads"] + "\n\n\nsplit_heads(None, None)"}
    ),
)
add(
    "helpers and constants in cells of their own",
    38,
    make=lambda k: k.right(
        {
            "split_heads": function(
                "split_heads",
                "X, H = args",
                "return helper(X.reshape(*X.shape[:2], H, -1), AXIS)",
            )
        },
        first=["AXIS = 2", "def helper(X, axis):\n    return np.moveaxis(X, axis, 0)"],
    ),
)
add(
    "names of the notebook used for other things",
    38,
    make=lambda k: k.right(
        first=["check = None\nX = Q = K = V = 'spoilt'\nlist_of = list\nsum = max = None"],
    ),
)

# 40 and the styles of an answer

add(
    "float32 throughout",
    40,
    make=lambda k: k.right(
        {name: answers.float32(task, k.solutions[name]) for name, task in TASKS.items()}
    ),
)
STYLES = {
    "lists in place of arrays": """
    def trick(function, name):
        def listed(*args, **kwargs):
            value = function(*args, **kwargs)
            if isinstance(value, tuple):
                return [part.tolist() for part in value]
            return value.tolist() if hasattr(value, "tolist") else value
        return listed
    """,
    "objects that are called": """
    class trick:
        def __init__(self, function, name):
            self.function = function
        def __call__(self, *args, **kwargs):
            return self.function(*args, **kwargs)
    """,
    "partial functions of lambdas": """
    import functools
    def trick(function, name):
        return functools.partial(lambda f, *args, **kwargs: f(*args, **kwargs), function)
    """,
    "a cache by the bytes of the arguments": """
    def trick(function, name, kept={}):
        def cached(*args, **kwargs):
            arrays = [(a.tobytes(), a.shape) if type(a) is np.ndarray else a for a in args]
            key = repr((name, arrays, kwargs))
            if key not in kept:
                kept[key] = function(*args, **kwargs)
            return kept[key]
        return cached
    """,
    "named tuples, matrices and big-endian numbers": """
    import collections
    def trick(function, name):
        def strange(*args, **kwargs):
            value = function(*args, **kwargs)
            if isinstance(value, tuple):
                kind = collections.namedtuple("Both", list("abcdefg"[:len(value)]))
                return kind(*[part.astype(">f8") for part in value])
            return np.ma.masked_array(value) if hasattr(value, "shape") else np.int64(value)
        return strange
    """,
    "arguments changed in place": """
    def trick(function, name):
        def careless(*args, **kwargs):
            value = function(*args, **kwargs)
            if isinstance(value, np.ndarray):
                value = value.copy()  # not a view of what is overwritten
            for a in args:
                if type(a) is np.ndarray and a.dtype == float:
                    a *= 0
            return value
        return careless
    """,
    "ten times the work": """
    def trick(function, name):
        def slow(*args, **kwargs):
            return [function(*args, **kwargs) for _ in range(10)][-1]
        return slow
    """,
}
for label, source in STYLES.items():
    add(label, 40, make=lambda k, source=source: wrapped(k, source))


# Copied work is a matter for a person, not of points.
add("the same words as another submission", 48, make=lambda k: k.right())
add("the solution", 50, make=lambda k: k.right())
add(
    "words around it",
    49,
    make=lambda k: {
        **k.right(),
        "cells": [*k.right()["cells"], text("Thank you for the course. $a<b$ & more.")],
    },
)
add(
    "a function of the wrong name beside it",
    37,
    make=lambda k: k.right(last=[function("split_head", "raise NotImplementedError")]),
)
