"""Grading of one submission: scores, states, records, and what they depend on."""

import copy
import dataclasses
import json
import time

import pytest
import tiny_course
from tiny_course import as_bytes, cell_of, extra, solved, submit

from seqlib.grading import grader
from seqlib.grading import judging as judging_module
from seqlib.grading.grader import Grader
from seqlib.grading.notebook.execution import run_notebook
from seqlib.grading.notebook.magics import runnable
from seqlib.grading.notebook.trusted import CellResult, TrustedSubmission
from seqlib.grading.records import Store, recorded
from seqlib.judge.judge import judge


@pytest.fixture
def course(tmp_path, monkeypatch):
    tiny_course.register(monkeypatch)
    return tiny_course.make_course(tmp_path)


@pytest.fixture
def judged(monkeypatch):
    """Return the list of the tasks that are judged."""
    tasks = []

    def counting(task, *args, **options):
        tasks.append(task.id)
        return judge(task, *args, **options)

    monkeypatch.setattr(judging_module, "judge", counting)
    return tasks


def grade(course, notebook, student="s001", **options):
    submit(course, student, notebook)
    with Grader(course, "tiny", trust_students=True) as grader:
        return grader.grade(student, **options)


def shown(course, record):
    store = Store(course.records, "tiny", record["student"])
    return json.loads(store.notebook(record["submission"]))


def scores(record):
    return {task: entry["score"] for task, entry in record["tasks"].items()}


def test_a_right_submission_gets_all_points(course):
    record = grade(course, solved())
    assert record["state"] == "graded"
    assert scores(record) == {"tiny.double": 40.0, "tiny.add": 40.0}
    assert (record["score"], record["points"], record["written_points"]) == (80.0, 80.0, 20.0)


def test_a_named_mistake_is_recorded(course):
    record = grade(course, solved(double="def double(x):\n    return 2 * x + 1"))
    assert scores(record) == {"tiny.double": 0.0, "tiny.add": 40.0}
    entry = record["tasks"]["tiny.double"]
    assert entry["failed"] == ["values"]
    assert entry["diagnosis"]["names"] == ["one_more"]


def test_a_test_cell_prints_the_verdict_and_ends_in_a_plain_float(course):
    record = grade(course, solved(add="def add(x, y):\n    return x - y"))
    cell = cell_of(shown(course, record), "test-add")
    printed, value = cell["outputs"]
    assert printed["name"] == "stdout"
    assert printed["text"].startswith("tiny.add: 0 of 40 points\n")
    assert value["data"] == {"text/plain": "0.0"}
    assert value["execution_count"] == cell["execution_count"] > 0


@pytest.mark.parametrize(
    "notebook",
    [
        tiny_course.released(),
        solved(double="raise ValueError", add="def add(x, y):\n    raise SystemExit"),
        solved(double="double = None", add="add = 3"),
        solved(double="def double(x): return x", add="def add(x, y): return x * 0"),
    ],
)
def test_what_is_not_done_gets_nothing(course, notebook):
    record = grade(course, notebook)
    assert record["score"] == 0.0
    assert record["state"] == "graded"


def test_outputs_that_came_with_the_file_count_for_nothing(course):
    notebook = tiny_course.released()
    for key in ("test-double", "test-add"):
        result = {"output_type": "execute_result", "data": {"text/plain": "40.0"}}
        cell_of(notebook, key)["outputs"] = [result | {"metadata": {}, "execution_count": 1}]
    record = grade(course, notebook)
    assert record["score"] == 0.0
    assert (
        cell_of(shown(course, record), "test-add")["outputs"][1]["data"]["text/plain"] == "0.0"
    )


def test_cells_that_fail_do_not_stop_the_notebook(course):
    notebook = solved()
    notebook["cells"].insert(1, extra("1 / 0"))
    record = grade(course, notebook)
    assert record["score"] == 80.0
    (output,) = cell_of(shown(course, record), "mine")["outputs"]
    assert output["ename"] == "ZeroDivisionError"


def test_what_a_student_writes_later_does_not_change_an_earlier_verdict(course):
    notebook = solved()
    notebook["cells"].append(extra("def double(x):\n    return 0 * x"))
    assert grade(course, notebook)["score"] == 80.0


def test_repairs_show_in_state_record_and_notebook(course):
    notebook = solved()
    notebook["cells"].remove(cell_of(notebook, "test-add"))
    record = grade(course, notebook)
    assert record["state"] == "graded_with_repairs"
    assert record["score"] == 80.0
    assert record["mends"] == ['The cell "test-add" was missing and was put back.']
    note = shown(course, record)["cells"][0]
    assert note["cell_type"] == "markdown"
    assert record["mends"][0] in note["source"]


def test_a_truncated_file_is_graded_in_part(course):
    data = as_bytes(solved())
    record = grade(course, data[: data.index(b'"Add them."')])
    assert record["state"] == "partly_graded"
    assert scores(record) == {"tiny.double": 40.0, "tiny.add": 0.0}


def test_what_cannot_be_read_gets_nothing_and_a_reason(course, judged):
    record = grade(course, b"<html>")
    assert record["state"] == "unreadable"
    assert record["score"] == 0.0
    assert judged == []
    outputs = cell_of(shown(course, record), "test-add")["outputs"]
    assert "web page" in outputs[0]["text"]
    assert outputs[1]["data"]["text/plain"] == "0.0"
    with pytest.raises(ValueError, match="submission must have been read, got: The file is a"):
        recorded(course, "tiny", "s001", "tiny.add")


def test_a_test_cell_of_another_form_fails(course):
    notebook = tiny_course.released()
    cell_of(notebook, "test-add")["source"] = 'check("tiny.add", add)\n40.0'
    cell_of(notebook, "test-double")["source"] = 'check("tiny.unknown", double)'
    tiny_course.write(course.release_file("tiny"), notebook)
    record = grade(course, solved())
    assert record["score"] == 0.0
    for key in ("test-add", "test-double"):
        (output,) = cell_of(shown(course, record), key)["outputs"]
        assert output["output_type"] == "error"


def test_a_submission_is_not_graded_twice(course, judged):
    first = grade(course, solved())
    second = grade(course, solved())
    assert (first.pop("reused"), second.pop("reused")) == (False, True)
    second.pop("format")
    assert first == second
    assert judged == ["tiny.double", "tiny.add"]
    assert grade(course, solved(), force=True)["graded_at"] >= first["graded_at"]
    assert len(judged) == 4


def test_a_new_version_of_an_exercise_judges_only_its_task(course, judged, monkeypatch):
    grade(course, solved())
    double, add = tiny_course.ASSIGNMENT.tasks
    newer = dataclasses.replace(add, version=2)
    changed = dataclasses.replace(tiny_course.ASSIGNMENT, tasks=(double, newer))
    monkeypatch.setattr(tiny_course, "ASSIGNMENT", changed)
    tiny_course.register(monkeypatch)
    record = grade(course, solved())
    assert judged == ["tiny.double", "tiny.add", "tiny.add"]
    assert record["tasks"]["tiny.add"]["key"]["exercise_version"] == 2


def test_a_new_submission_is_graded_and_the_old_one_is_not_forgotten(course, judged):
    first = grade(course, solved())
    grade(course, solved(add="def add(x, y):\n    return y + x"))
    assert len(judged) == 4
    again = grade(course, solved())
    assert len(judged) == 4
    assert scores(again) == scores(first)


def test_a_submission_in_which_a_run_is_killed_has_not_been_graded(course, judged, monkeypatch):
    def dies(task, *args, **options):
        if task.id == "tiny.add":
            raise KeyboardInterrupt
        return judge(task, *args, **options)

    counting = judging_module.judge
    monkeypatch.setattr(judging_module, "judge", dies)
    with pytest.raises(KeyboardInterrupt):
        grade(course, solved())
    assert Store(course.records, "tiny", "s001").submission() is None
    monkeypatch.setattr(judging_module, "judge", counting)
    assert grade(course, solved())["score"] == 80.0
    # A record is kept once its answers are confirmed, at the end of the notebook.
    assert judged == ["tiny.double", "tiny.add"]


def test_an_error_of_the_judge_is_no_grade(course, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("the reference fails")

    monkeypatch.setattr(judging_module, "judge", broken)
    with pytest.raises(RuntimeError, match="the reference fails"):
        grade(course, solved())
    assert Store(course.records, "tiny", "s001").submission() is None


def test_seeds_differ_by_student_and_task_and_stay(course):
    grade(course, solved())
    grade(course, solved(), student="s002")
    tasks = ("tiny.double", "tiny.add")
    seeds = {
        (student, task): recorded(course, "tiny", student, task)[1]["seed"]
        for student in ("s001", "s002")
        for task in tasks
    }
    assert len(set(seeds.values())) == 4
    grade(course, solved(), force=True)
    assert recorded(course, "tiny", "s001", "tiny.add")[1]["seed"] == seeds["s001", "tiny.add"]


@pytest.mark.parametrize("answer", ["return 2 * x", "return 2 * x + 1", "return x / 0"])
def test_a_score_can_be_replayed(course, answer):
    grade(course, solved(double=f"def double(x):\n    {answer}"))
    with Grader(course, "tiny", trust_students=True) as grader:
        was, now = grader.replay("s001", "tiny.double")
    assert was.to_dict() == now.to_dict()


def test_a_replay_of_code_that_changes_its_mind_differs(course, monkeypatch):
    answer = "import os\n\ndef double(x):\n    return 2 * x if os.environ['MOOD'] else x"
    monkeypatch.setenv("MOOD", "good")
    assert grade(course, solved(double=answer))["score"] == 80.0
    monkeypatch.setenv("MOOD", "")
    with Grader(course, "tiny", trust_students=True) as grader:
        was, now = grader.replay("s001", "tiny.double")
    assert (was.score, now.score) == (40.0, 0.0)


def test_a_replay_needs_the_graded_submission(course):
    grade(course, solved())
    submit(course, "s001", tiny_course.released())
    with Grader(course, "tiny", trust_students=True) as grader:
        with pytest.raises(ValueError, match="got a newer one; grade it first"):
            grader.replay("s001", "tiny.double")
        with pytest.raises(ValueError, match=r"task must be one of tiny\.add, tiny\.double"):
            grader.replay("s001", "tiny.none")
        with pytest.raises(ValueError, match="must have a graded submission of tiny, got 's9'"):
            grader.replay("s9", "tiny.double")


def test_the_submission_folder_is_not_changed(course):
    submit(course, "s001", as_bytes(solved())[:-300])
    folder = course.submission("s001", "tiny")
    before = [(p.name, p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()]
    with Grader(course, "tiny", trust_students=True) as grader:
        grader.grade("s001")
    assert [(p.name, p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()] == before


# The pass over the cells


class Session:
    """A session that fails as the sandbox reports it."""

    def __init__(self, fault=None, given_up=None):
        self.fault, self.given_up = fault, given_up
        self.sources = []

    def run_cell(self, source):
        self.sources.append(source)
        return CellResult([], self.fault is None, 0.0, self.fault)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("timeout", "it did not end in time"), ("crash", "it ended the Python process")],
)
def test_a_cell_that_is_left_out_is_named(fault, reason):
    notebook = {"cells": [extra("x"), extra("y", "markdown", id="text")]}
    done = run_notebook(notebook, Session(fault), None)
    assert done.left_out == [f'The cell "mine" took no part: {reason}.']


def test_many_lines_that_are_not_run_are_counted():
    cells = [extra("!\n" * 70, id=f"c{i}") for i in range(3)]
    done = run_notebook({"cells": cells}, Session(), None)
    texts = [cell["outputs"][0]["text"].splitlines() for cell in done.cells]
    assert [len(lines) for lines in texts] == [70, 31, 1]
    assert [lines[-1] for lines in texts[1:]] == [
        "[not run while grading: 40 lines more]",
        "[not run while grading: 70 lines more]",
    ]


@pytest.mark.parametrize(
    ("source", "loaded"),
    [
        ("import torch", {"torch"}),
        ("if a:\n    from torch import nn", {"torch"}),
        ("%matplotlib inline", {"plots"}),
        ("x = 1\n\n\timport  matplotlib.pyplot as plt\nimport torch.nn", {"plots", "torch"}),
        ("# import torch\nimport torchvision\nx = 'from matplotlib'\nfrom\ntorch", set()),
    ],
)
def test_what_a_notebook_imports_is_seen(source, loaded):
    assert {name for name, says in grader._LOADED.items() if says.search(source)} == loaded


@pytest.mark.parametrize("line", ["\n", " \n", "import\n", "%\n", "\t"])
def test_to_look_for_imports_takes_as_long_as_the_source(line):
    source = line * (500_000 // len(line))
    start = time.process_time()
    assert not any(says.search(source) for says in grader._LOADED.values())
    assert time.process_time() - start < 5


def test_a_notebook_that_is_given_up_says_so():
    done = run_notebook({"cells": []}, Session(given_up="it took too long"), None)
    assert done.left_out == ["The notebook was given up: it took too long."]


def test_lines_that_are_not_run_are_named():
    session = Session()
    cell = extra("%pip install torch\n!ls\nx = 1")
    done = run_notebook({"cells": [copy.deepcopy(cell)]}, session, None)
    assert session.sources[0].splitlines()[2] == "x = 1"
    assert done.cells[0]["source"] == cell["source"]
    assert done.cells[0]["outputs"][0]["text"] == (
        "[not run while grading: %pip install torch]\n[not run while grading: !ls]\n"
    )


@pytest.mark.parametrize(
    ("source", "run"),
    [
        ("x = 5 % y\nz = !ls", "x = 5 % y\nz = !ls"),
        ("if a:\n    %pip install x\ny = 1", "if a:\n    pass  # not run while grading\ny = 1"),
        ("%matplotlib inline\nx = 1", "pass  # not run while grading\nx = 1"),
        ("%%time\nx = 1", "# %%time\nx = 1"),
        ("%%bash\nrm -rf /", ""),
        ("%time f()", "%time f()"),
        ("a = '''\n%s\n'''", "a = '''\n%s\n'''"),
    ],
)
def test_magics(source, run):
    assert runnable(source)[0] == run


def test_without_ipython_all_magics_are_taken_out():
    source, left_out = runnable("%time x = f()\n%who\nb = 7 %a", plain=True)
    assert source == "x = f()\npass  # not run while grading\nb = 7 %a"
    assert left_out == ["%who"]


# The trusted session


def run(*sources):
    with TrustedSubmission() as session:
        return [session.run_cell(source) for source in sources]


def test_a_trusted_cell_shows_what_it_prints_and_its_value():
    (result,) = run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n1 + 1")
    assert [(o["output_type"], o.get("name")) for o in result.outputs] == [
        ("stream", "stdout"),
        ("stream", "stderr"),
        ("execute_result", None),
    ]
    assert result.outputs[2]["data"] == {"text/plain": "2"}
    assert result.ok


def test_a_trusted_cell_that_fails_shows_its_own_lines_only():
    for source in ("def f():\n    return 1 / 0\nf()", "exit()", "x = (", "input()"):
        (result,) = run(source)
        assert not result.ok
        assert not any("trusted.py" in line for line in result.outputs[-1]["traceback"])
    assert "return 1 / 0" in "\n".join(
        run("def f():\n    return 1 / 0\nf()")[0].outputs[0]["traceback"]
    )


def test_a_trusted_session_keeps_names_between_cells_and_not_between_notebooks():
    assert run("x = 3", "x")[1].outputs[0]["data"] == {"text/plain": "3"}
    assert run("x")[0].outputs[0]["ename"] == "NameError"


@pytest.mark.sandbox
def test_what_a_notebook_imports_is_loaded_before_it_and_nothing_else(course):
    asks = "import sys\nprint('torch' in sys.modules, 'matplotlib' in sys.modules)"
    torch = asks + "\nimport resource\nprint(resource.getrlimit(resource.RLIMIT_AS)[0])"
    for student, *cells in (("s001", torch), ("s002", torch, "from torch import nn")):
        notebook = solved()
        notebook["cells"] += [extra(c, id=f"own{i}") for i, c in enumerate(cells)]
        submit(course, student, notebook)
    with Grader(course, "tiny") as grader:
        plain, loaded = (shown(course, grader.grade(s)) for s in ("s001", "s002"))
    (without, bytes_without), (with_it, bytes_with) = (
        cell_of(notebook, "own0")["outputs"][0]["text"].splitlines()
        for notebook in (plain, loaded)
    )
    assert (without, with_it) == ("False False", "True False")
    assert bytes_without == bytes_with
