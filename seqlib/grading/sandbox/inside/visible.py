"""What of the machine a submission may read: the interpreter, its packages, their libraries.

Everything that is not on this list does not exist in the sandbox, so the list is short and
made from what the fork server itself uses. The course's own package is taken out of it again.
"""

import os
import sys
import sysconfig

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SYSTEM = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def package_folders(path):
    """Return the folders on a module search path that hold installed packages."""
    return [p for p in path if os.path.basename(os.path.normpath(p)) in _PACKAGE_FOLDERS]


def visible(packages):
    """Return the outermost files and folders that may be read, without links in their paths.

    Parameters
    ----------
    packages : list of str
        Folders of installed packages.
    """
    found = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), *packages}
    found |= {p for p in sys.path if p.endswith("lib-dynload")}
    found |= _library_folders()
    found |= set(_SYSTEM)
    real = {os.path.realpath(path) for path in found if path and os.path.exists(path)}
    return sorted(p for p in real if not any(_inside(p, other) for other in real - {p}))


def links():
    """Return the links at the root through which libraries are found: ``("/lib", target)``."""
    return [
        (path, os.readlink(path))
        for path in ("/lib", "/lib64", "/lib32")
        if os.path.islink(path)
    ]


def course_files(package, shown):
    """Return what belongs to the course within the shown folders.

    Parameters
    ----------
    package : str
        Folder of the course's package, wherever it is installed.
    shown : list of str
        What :func:`visible` returned.

    Returns
    -------
    list of str
        The package, and beside any copy of it the records of its installation, editable or
        not (``__editable___..._finder.py`` names the source tree).
    """
    name = os.path.basename(package)
    candidates = [os.path.realpath(package)]
    for folder in shown:
        for root, folders, _ in os.walk(folder):
            if os.path.basename(root) not in (*_PACKAGE_FOLDERS, "__pycache__"):
                # Packages do not lie in packages; only the levels above them are searched.
                depth = root[len(folder) :].count(os.sep)
                folders[:] = folders if depth < 2 else []
                continue
            candidates += [e.path for e in os.scandir(root) if name in e.name.lower()]
            folders[:] = ["__pycache__"] if "__pycache__" in folders else []
    return sorted({p for p in candidates if any(_inside(p, folder) for folder in shown)})


def without(shown, hidden):
    """Split what is shown so that nothing hidden lies beneath any part.

    Landlock can allow what lies beneath a folder, but not take a part away, so a folder with
    something hidden in it is replaced by its entries, again and again.

    Returns
    -------
    readable : list of str
        Files and folders that hold all that is shown except what is hidden.
    split : list of str
        The folders that were replaced. Imports list them.
    """
    readable, split = [], []
    for path in shown:
        if any(_inside(h, path) for h in hidden):
            inner = without(sorted(e.path for e in os.scandir(path)), hidden)
            readable += inner[0]
            split += [path, *inner[1]]
        elif path not in hidden:
            readable.append(path)
    return readable, split


def _inside(path, folder):
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _library_folders():
    """Return the folders of the shared objects of this process, and where others lie."""
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    folders = {"/usr/lib64", "/lib64", f"/usr/lib/{multiarch}", f"/lib/{multiarch}"}
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line[line.find("/") :].strip() if "/" in line else ""
            if ".so" in os.path.basename(path):
                folders.add(os.path.dirname(path))
    # A folder at the root, or of programs, is more than libraries.
    return {f for f in folders if os.path.realpath(f).count(os.sep) > 1 and "/lib" in f}
