"""How seqlib.grading is divided: what imports what, and that a wheel would hold all of it."""

import ast
import graphlib
import tomllib

import pytest
from course_book import data

LIBRARY = data.ROOT / "seqlib"
GRADING = LIBRARY / "grading"
INSIDE = GRADING / "sandbox" / "inside"
PACKAGES = sorted(path.parent for path in GRADING.rglob("__init__.py"))


def dotted(path):
    """Return the name of the module in a file."""
    return ".".join(path.relative_to(data.ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {dotted(path): path for path in LIBRARY.rglob("*.py")}


def imports(name):
    """Return the modules of the library that a module imports anywhere, also in a function."""
    path, found = MODULES[name], set()
    package = dotted(path.parent / "__init__.py").split(".")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            found |= {f"{source}.{alias.name}" for alias in node.names} | {source}
    found &= MODULES.keys()
    # `from package import module` takes nothing from the package itself.
    packages = {n for n in found if any(other.startswith(f"{n}.") for other in found)}
    return found - packages


def in_grading(names):
    return {name for name in names if name.startswith("seqlib.grading.")}


def package(name):
    """Return the package of a module, or the module itself where it joins the packages."""
    return dotted(MODULES[name].parent / "__init__.py")


def test_no_module_imports_itself_by_way_of_others():
    order = graphlib.TopologicalSorter(
        {name: in_grading(imports(name)) for name in in_grading(MODULES)}
    )
    assert len(list(order.static_order())) == len(in_grading(MODULES))


def test_packages_import_each_other_in_one_direction():
    graph = {}
    for name in in_grading(MODULES):
        own = name if package(name) == "seqlib.grading" else package(name)
        others = {
            n if package(n) == "seqlib.grading" else package(n)
            for n in in_grading(imports(name))
        }
        graph.setdefault(own, set()).update(others - {own})
    order = list(graphlib.TopologicalSorter(graph).static_order())
    places = [
        order.index(f"seqlib.grading.{name}")
        for name in ("sandbox.inside", "sandbox", "notebook", "gradebook", "late", "export")
    ]
    assert places == sorted(places)


def test_what_is_copied_into_the_sandbox_imports_only_what_is_copied_too():
    for path in INSIDE.glob("*.py"):
        own = imports(dotted(path))
        assert own == {
            name for name in own if package(name) in (dotted(INSIDE), "seqlib.subject")
        }, path.name
        # By its full name it would be sought in the library, which is not there.
        text = path.read_text(encoding="utf-8")
        assert "import seqlib" not in text, path.name
        assert "from seqlib" not in text, path.name


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_a_package_says_what_it_is_for_and_imports_nothing(folder):
    """Workers start before nbgrader is imported, and a student's check without any of it."""
    (docstring,) = ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body
    assert isinstance(docstring.value.value, str)


def test_a_wheel_holds_every_file_of_the_library():
    """setuptools takes folders with an ``__init__.py``, and other files by pattern."""
    settings = tomllib.loads((data.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = settings["tool"]["setuptools"]["package-data"]
    left_out = []
    for path in LIBRARY.rglob("*"):
        if path.is_dir() or "__pycache__" in path.parts:
            continue
        if path.suffix == ".py":
            taken = all(
                (folder / "__init__.py").exists()
                for folder in path.parents
                if folder.is_relative_to(LIBRARY)
            )
        else:
            taken = any(
                path in set(LIBRARY.joinpath(*name.split(".")[1:]).glob(pattern))
                for name, patterns in listed.items()
                for pattern in patterns
            )
        left_out += [] if taken else [str(path.relative_to(LIBRARY))]
    assert left_out == []
