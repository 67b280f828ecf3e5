"""nbgrader for this course: solutions/ -> assignments/, and the rest under grading/."""

import importlib.util
import os
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
GRADING = ROOT / "grading"
# SQLite opens no file in a folder that is not there, as in a fresh clone.
GRADING.mkdir(exist_ok=True)
# nbgrader calls `alembic` by its bare name when it makes a gradebook.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

c = get_config()  # noqa: F821

c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "assignments"
for step in ("submitted", "autograded", "feedback", "solution", "source_with_tests"):
    setattr(c.CourseDirectory, f"{step}_directory", f"grading/{step}")
# Several people grade at once: an address of PostgreSQL here, postgresql+psycopg://...
c.CourseDirectory.db_url = f"sqlite:///{GRADING / 'gradebook.db'}"
c.NbGrader.logfile = str(GRADING / "nbgrader.log")

# Files beside a notebook go along into the release, or from a submission into what an
# instructor opens: no text twin of a solution, no module, nothing that a browser runs.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "__pycache__",
    "feedback",
    *("*.pyc", "*.py", "*.md", "*.Rmd", "*.qmd", "*.txt~", "*.bak"),
    *("*.htm", "*.html", "*.xhtml", "*.svg", "*.js", "*.zip"),
]

c.ClearSolutions.code_stub = {
    "python": "# YOUR CODE HERE, in place of the next line\nraise NotImplementedError()"
}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"

# Cells with these tags are not run, which a student must not be able to ask for.
c.ExecutePreprocessor.skip_cells_with_tag = secrets.token_hex(16)
c.OverwriteCells.add_missing_cells = True
# nbgrader's own limit for output, 4 s, fails good notebooks on a busy machine.
c.ExecutePreprocessor.iopub_timeout = 60
c.ExecutePreprocessor.timeout = 120

# The course's grader: reads damaged notebooks, runs students' code in a sandbox and judges
# outside of it. Without it, nbgrader runs the same notebooks as it always does.
PLUGINS = "seqlib.grading.nbgrader_plugins"
try:
    found = importlib.util.find_spec(PLUGINS) is not None
except ModuleNotFoundError:
    found = False
if found:
    # What a late submission costs: nothing, until the numbers say so.
    # What they mean: seqlib/grading/late/policy.py.
    c.AssignLatePenalties.plugin_class = "seqlib.grading.late.policy.LatePolicy"
    c.LatePolicy.percent_per_day = 0
    c.LatePolicy.max_percent = 100
    c.LatePolicy.grace_minutes = 0
    c.LatePolicy.timezone = "UTC"
    c.LatePolicy.extensions = ""
    # A feedback page that loads nothing from another host.
    c.GenerateFeedback.exporter_class = "seqlib.grading.feedback.page.FeedbackExporter"
if found and sys.platform == "linux":
    c.Autograde.pre_convert_hook = f"{PLUGINS}.substitute"
    c.Autograde.exporter_class = f"{PLUGINS}.RepairExporter"
    c.Autograde.sanitize_preprocessors = [
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.OverwriteKernelspec",
        "nbgrader.preprocessors.OverwriteCells",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.Autograde.autograde_preprocessors = [
        f"{PLUGINS}.JudgeExecute",
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.ExportApp.plugin_class = "seqlib.grading.export.plugins.CsvPlugin"
