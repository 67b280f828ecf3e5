"""The notebook of the assignment ``decoder``: text, code and record agree."""

import inspect
import math
import re

import numpy as np
from exercise_tools import Exercises

from seqlib.exercises import _decoder_corpus as corpus
from seqlib.exercises import _decoder_train as training
from seqlib.experiments import load

EXERCISES = Exercises("decoder")
DECODER = EXERCISES.record
TASKS = EXERCISES.tasks
by_id = EXERCISES.by_id


def test_the_parameters_of_the_model_are_those_of_the_text():
    """Names, shapes and number; with a matrix of its own the head would have 4656 more."""
    text = by_id("solutions")["about_LanguageModel"]
    model = TASKS["LanguageModel"].reference(97, 32, 48, 2, 4)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert shapes["E"] == (97, 48)
    assert shapes["P"] == (32, 48)
    assert shapes["b"] == (97,)
    assert {name.split(".")[0] for name in shapes} == set(re.findall(r"\| `(\w+)` \|", text))
    assert f"has {sum(p.numel() for p in model.parameters())} parameters" in text


def test_the_numbers_of_the_training_task_are_those_of_the_record():
    text = by_id("solutions")["about_train_model"]
    tokens = training.STEPS * training.BATCH * training.T
    assert f"{training.STEPS} batches of {training.BATCH} windows" in text
    assert f"{tokens} tokens to predict" in text
    bounds = [
        np.log(len(training.vocabulary())),
        training.PAIRS,
        training.BEST_COUNTS,
        training.THRESHOLD,
        training.ENTROPY,
    ]
    assert re.findall(r"^\| (\d\.\d+) \|", text, re.MULTILINE) == [f"{b:.3f}" for b in bounds]
    assert f"it may take {TASKS['train_model'].seconds:g}" in text
    classes = len(training.vocabulary()), corpus.NAMES, corpus.COLOURS, corpus.TOYS
    assert (
        "there are {}: the stories have {} names, {} colours and {} toys".format(*classes)
        in text
    )
    assert f"= {math.prod(classes[1:])}$ of these triples" in text
    source = inspect.getsource(training.reference)
    for option in re.findall(r"`((?:dim|n_layer|n_head|lr)=[\de.-]+)`", text):
        assert option in source


def test_the_numbers_of_the_written_question():
    """The figures of the question, of its model answer and of the mark scheme."""
    cells = by_id("solutions")
    question, answer = cells["about_which_model"], cells["which_model"]
    rubric = " ".join(DECODER.written[0].rubric)
    rng = np.random.default_rng(0)

    def first_loss(std):
        """Return the mean loss of logits that are independent and normal."""
        logits = std * rng.standard_normal((20000, 168))
        return (np.log(np.exp(logits).sum(axis=1)) - logits[:, 0]).mean()

    stds = [np.sqrt(64) * 0.02, np.sqrt(64) * 1.0]
    assert [f"{std:g}" for std in stds] == ["0.16", "8"]
    a, b = map(float, re.search(r"A's is \$([\d.]+)\$, B's is \$([\d.]+)\$", question).groups())
    assert abs(first_loss(stds[0]) - a) < 0.005
    assert abs(first_loss(stds[1]) - b) < 0.1
    assert f"{np.log(len(training.vocabulary())):.2f}" == "5.12"
    c, d, e = map(
        float,
        re.search(
            r"of \$([\d.]+)\$, D one of \$([\d.]+)\$ and E one of \$([\d.]+)\$", question
        ).groups(),
    )
    assert round((training.ENTROPY - c) / training.STANDARD_ERROR) == 45
    found = load("decoder_threshold")["results"]
    assert abs(d - training.PAIRS) < 0.05
    assert abs(e - found["floor"] - found["counts"]["1"]) < 0.05
    for loss in (c, d, e):
        assert f"${loss}$" in answer
    for text in (answer, rubric):
        for figure in ("0.16", "5.12", "45", "0.651", "6950", "119"):
            assert figure in text, figure

    def softmax(z):
        return np.exp(z) / np.exp(z).sum()

    z = np.array([2.0, 1.0, 0.0])
    shown = {"right": softmax(z / 0.5), "wrong": softmax(z * 0.5)}
    as_text = {k: ", ".join(f"{p:.3f}" for p in v) for k, v in shown.items()}
    assert f"({as_text['wrong']})" in question
    assert f"({as_text['right']})" in answer
    assert as_text["right"] in rubric
    assert sum(range(20, 120)) == 6950
    assert 20 + len(range(21, 120)) == 119
