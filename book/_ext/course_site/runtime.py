"""The folder of Pyodide as the kernel loads it, with a lock that leads to no other host.

The lock of the npm package names some 300 packages on a server of Pyodide's. Kept are those
that lie in the folder; whoever imports another one gets the usual ``ModuleNotFoundError``.
"""

import email
import json
import re
import zipfile
from io import BytesIO

from packaging.requirements import Requirement

from course_site.pins import SiteError, sha256

# Of the npm package; the rest is for other uses than a page.
CORE = (
    "pyodide.js",
    "pyodide.mjs",
    "pyodide.asm.js",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
)


def normal(name):
    """Return a distribution's name as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(names, packages):
    """Return the names with everything that they depend on, sorted.

    Raises
    ------
    SiteError
        If the lock does not know one of them.
    """
    found, waiting = set(), list(names)
    while waiting:
        name = normal(waiting.pop())
        if name in found:
            continue
        if name not in packages:
            raise SiteError(f"pyodide-lock.json must hold {name}, which is needed")
        found.add(name)
        waiting += packages[name]["depends"]
    return sorted(found)


def described(filename, content, info):
    """Return the entry of the lock for a wheel in Python alone, and its name.

    Parameters
    ----------
    filename : str
    content : bytes
    info : dict
        ``info`` of the lock, whose Python version the wheel's requirements are read for.
    """
    if not filename.endswith("-none-any.whl"):
        raise SiteError(f"{filename} must be a wheel in Python alone, since no lock vouches")
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names = archive.namelist()
        place = next(n for n in names if n.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(place))
    tops = {n.split("/")[0].removesuffix(".py") for n in names if n.endswith(".py")}
    environment = {
        "sys_platform": "emscripten",
        "platform_system": "Emscripten",
        "platform_machine": "wasm32",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_full_version": info["python"],
        "python_version": info["python"].rpartition(".")[0],
        "extra": "",
    }
    wanted = map(Requirement, metadata.get_all("Requires-Dist") or [])
    return normal(metadata["Name"]), {
        "name": metadata["Name"],
        "version": metadata["Version"],
        "file_name": filename,
        "install_dir": "site",
        "sha256": sha256(content),
        "package_type": "package",
        "imports": sorted(tops),
        "depends": [
            normal(r.name) for r in wanted if r.marker is None or r.marker.evaluate(environment)
        ],
        "unvendored_tests": False,
    }


def assemble(target, core, official, pure):
    """Write the folder of Pyodide.

    Parameters
    ----------
    target : Path
        Folder that is made.
    core : dict
        Files of the npm package, name to content.
    official : dict
        Official packages, name to the content of its file in the lock.
    pure : dict
        Further wheels, file name to content.
    """
    lock = json.loads(core["pyodide-lock.json"])
    packages = {name: lock["packages"][name] for name in official}
    for filename, content in pure.items():
        name, entry = described(filename, content, lock["info"])
        packages[name] = entry
    closure(packages, packages)  # each dependency is in the folder too
    target.mkdir(parents=True)
    for name in CORE:
        (target / name).write_bytes(core[name])
    for name, content in official.items():
        (target / packages[name]["file_name"]).write_bytes(content)
    for filename, content in pure.items():
        (target / filename).write_bytes(content)
    lock["packages"] = packages
    text = json.dumps(lock, indent=1, sort_keys=True)
    (target / "pyodide-lock.json").write_text(text, encoding="utf-8")
