"""The exporters for ``nbgrader export --exporter=...``.

They write what ``seqlib export`` writes; ``nbgrader_config.py`` names the one that is taken
where none is asked for.
"""

from pathlib import Path

from nbgrader.plugins import ExportPlugin
from traitlets import Bool, Dict, Unicode

from seqlib.grading.course import Course
from seqlib.grading.export.run import export


class CsvPlugin(ExportPlugin):
    """The general table for ``nbgrader export``."""

    def export(self, gradebook):
        """Write the grades to ``--to``, by default ``grades.csv``."""
        said = export(
            gradebook,
            _course(self),
            out=self.to or None,
            assignments=[str(name) for name in self.assignment],
            students=[str(student) for student in self.student],
            config=getattr(self.parent, "config", None),
        )
        for line in said:
            self.log.info("%s", line)


class _PlatformPlugin(ExportPlugin):
    """A file of a platform for ``nbgrader export --exporter=...``."""

    platform = ""

    template = Unicode("", help="the platform's own file, which is filled").tag(config=True)
    columns = Dict(help="name of the column of each assignment").tag(config=True)
    match = Unicode("", help="column by which students are found").tag(config=True)
    provisional = Bool(False, help="also export marks that are not final").tag(config=True)
    rescale = Bool(False, help="convert marks to the points of the column").tag(config=True)

    def export(self, gradebook):
        """Write the marks to ``--to``, by default ``canvas.csv`` and the like."""
        said = export(
            gradebook,
            _course(self),
            self.platform,
            out=self.to or None,
            template=self.template or None,
            assignments=[str(name) for name in self.assignment],
            students=[str(student) for student in self.student],
            config=getattr(self.parent, "config", None),
            columns=self.columns,
            match=self.match or None,
            provisional=self.provisional,
            rescale=self.rescale,
        )
        for line in said:
            self.log.info("%s", line)


class CanvasPlugin(_PlatformPlugin):
    """The gradebook of Canvas."""

    platform = "canvas"


class MoodlePlugin(_PlatformPlugin):
    """The grading worksheet of Moodle."""

    platform = "moodle"


class BlackboardPlugin(_PlatformPlugin):
    """The Grade Center of Blackboard."""

    platform = "blackboard"


def _course(plugin):
    """Return the course of a plug-in of nbgrader, from the application that runs it."""
    root = getattr(getattr(plugin.parent, "coursedir", None), "root", "")
    return Course(Path(root or ".").resolve())
