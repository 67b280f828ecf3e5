"""README, Makefile, requirements and settings keep their promises."""

import ast
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib.metadata import packages_distributions

import pytest
from course_book import data

ROOT = data.ROOT
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


PRODUCTS = {
    ".site",
    "_build",
    "build",
    "dist",
    "grading",
    ".venv",
    "__pycache__",
    ".ipynb_checkpoints",
}


def tracked(*patterns):
    """Return the files under version control that match the patterns.

    In a copy without its history: all files but the products of the commands.
    """
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", *patterns]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        paths = [ROOT / name for name in done.stdout.splitlines()]
    else:
        paths = [
            path
            for path in ROOT.rglob("*")
            if not is_product(path)
            # As in git, a star goes across folders and a bare name is found in each.
            and any(
                fnmatch(path.relative_to(ROOT).as_posix(), pattern)
                for pattern in patterns or "*"
            )
        ]
    return [path for path in paths if path.is_file()]


def is_product(path):
    folders = path.relative_to(ROOT).parts[:-1]
    return bool(PRODUCTS & set(folders)) and folders[:2] != ("seqlib", "grading")


def pins(name):
    """Return the exact versions in a requirements file; every line must be one."""
    found = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        line = line.partition("#")[0].strip()
        if line:
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)", line)
            assert match, f"{name}: {line!r} is not of the form name==version"
            found[normal(match[1])] = match[2]
    return found


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


# ---------------------------------------------------------------- requirements


def test_constraints_fix_every_requirement_at_the_same_version():
    required, fixed = pins("requirements.txt"), pins("constraints.txt")
    assert {name: fixed.get(name) for name in required} == required
    assert fixed["torch"] == "2.13.0"
    assert fixed["jupyter-book"] == "1.0.4.post1"
    assert len(fixed) > 100


def test_extras_and_requirements_name_the_same_versions():
    required = pins("requirements.txt")
    project = SETTINGS["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for line in (line for group in groups for line in group):
        name = normal(re.match(r"[A-Za-z0-9._-]+", line)[0])
        exact = re.search(r"==([0-9a-z.]+)", line)
        if exact and name in required:
            assert exact[1] == required[name]


def imports(path):
    """Return the top-level names that a Python file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


# Comes with a pinned package that says so in its own requirements, or in those of one of them.
COMES_WITH = {
    "IPython": "nbclient",
    "alembic": "nbgrader",
    "bs4": "nbgrader",
    "docutils": "jupyter-book",
    "jinja2": "nbgrader",
    "jupyter_cache": "jupyter-book",
    "markupsafe": "nbgrader",
    "matplotlib_inline": "nbclient",
    "myst_nb": "jupyter-book",
    "nbconvert": "nbgrader",
    "packaging": "jupyter-book",
    "pybtex": "sphinxcontrib-bibtex",
    "sphinx": "jupyter-book",
    "sqlalchemy": "nbgrader",
    "traitlets": "nbclient",
    "yaml": "jupyter-book",
}


def test_every_import_is_a_requirement():
    files = tracked("seqlib/*.py", "tests/*.py", "book/_ext/*.py", "benchmarks/*.py")
    assert len(files) > 50
    own = {"seqlib", "course_book", "course_site"} | {path.stem for path in files}
    own |= {path.parent.name for path in files}
    known = packages_distributions()
    required = pins("requirements.txt")
    missing = {
        name: path.relative_to(ROOT).as_posix()
        for path in files
        for name in imports(path) - own - set(sys.stdlib_module_names)
        if not {normal(dist) for dist in known.get(name, [])} & set(required)
        and COMES_WITH.get(name) not in required
    }
    assert missing == {}


# ---------------------------------------------------------------- README and Makefile


def make_targets():
    return set(re.findall(r"^([a-z]+):.*## ", MAKEFILE, re.M))


def test_makefile_has_the_promised_targets():
    promised = {"course", "test", "book", "site", "bench", "experiments", "lint", "wheel"}
    assert promised <= make_targets()
    phony = set(re.search(r"\.PHONY: (.*)", MAKEFILE)[1].split())
    assert phony == make_targets() | {"sample-class"}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_named_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.M))
    assert len(named) > 2
    assert named <= make_targets()


# Each command in a block of README, and the line of .ci/run or the Makefile that runs it.
RUN_BY = {
    "make course": "make course",
    "make test": "make test",
    "python -m venv .venv": "$(PYTHON) -m venv .venv",
    r".venv\Scripts\activate": None,  # in the words of Windows; there is none to test on
    "pip install -r requirements.txt -c constraints.txt -e .": "-m $(INSTALL)",
    "jupyter-book build . -W -n --keep-going": "$(BIN)/jupyter-book build . -W -n --keep-going",
    "pytest": "$(BIN)/pytest",
    "seqlib grade attention": "$(BIN)/seqlib grade attention",
    "seqlib report attention": "$(BIN)/seqlib report attention",
}


def test_every_command_of_readme_is_run():
    blocks = re.findall(r"^```\n(.*?)^```", README, re.M | re.S)
    commands = [line for block in blocks for line in block.splitlines() if line]
    assert sorted(commands) == sorted(RUN_BY)
    for command, runs in RUN_BY.items():
        assert runs is None or runs in CI or runs in MAKEFILE, command
    install = re.search(r"^INSTALL := (.*)$", MAKEFILE, re.M)[1]
    assert install in RUN_BY


def test_ci_ends_with_the_tests():
    assert "set -euo pipefail" in CI
    assert CI.strip().splitlines()[-1] == "make test"


def test_links_of_readme_and_contributing_lead_somewhere():
    checked = 0
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (ROOT / target).exists(), f"{name}: {target}"
            checked += 1
    assert checked > 20


def test_paths_that_readme_names_exist():
    for path in re.findall(r"`((?:book|seqlib|tests|solutions|assignments)/[a-z_/]*)`", README):
        assert (ROOT / path).exists(), path


def test_contributing_fits_one_screen_or_two():
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 60


# ---------------------------------------------------------------- what must not be committed


def test_no_path_of_a_machine_is_committed():
    pattern = re.compile(r"(?<![\w.])/(?:work|root)/\w+")
    for path in tracked("*.py", "*.md", "*.toml", "*.yml", "*.ipynb", "Makefile", ".ci/run"):
        if path != ROOT / "tests" / "test_project.py":
            text = path.read_text(encoding="utf-8")
            assert not pattern.search(text), f"{path}: {pattern.search(text)[0]}"


def test_no_build_product_is_committed():
    assert [path for path in tracked() if is_product(path)] == []


def test_the_wheel_carries_every_file_of_the_package():
    """Python files by themselves, all others by a pattern in pyproject.toml."""
    package_data = SETTINGS["tool"]["setuptools"]["package-data"]
    carried = {
        path
        for package, patterns in package_data.items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    others = {path for path in tracked("seqlib/*") if path.suffix != ".py"}
    assert others
    assert others <= carried


def test_names_of_the_distribution():
    project = SETTINGS["project"]
    assert project["name"] == "seqlib-course"
    assert project["requires-python"] == ">=3.11"
    for path in tracked("*.md", "*.py", "*.ipynb", "Makefile"):
        if path != ROOT / "tests" / "test_project.py":
            assert "pip install seqlib\n" not in path.read_text(encoding="utf-8"), path
