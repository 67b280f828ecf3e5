"""The assignment ``tokens``: what the library may do, what is paid, and what a message says."""

import functools
import importlib
import sys
import unicodedata

import numpy as np
import pytest
import torch
from exercise_tools import Exercises, passed, pasted

import seqlib.np as snp
import seqlib.text
from seqlib.judge.diagnose import function_of

EXERCISES = Exercises("tokens")
TOKENS = EXERCISES.record
TASKS = EXERCISES.tasks
result_of = EXERCISES.result_of


# What the book shows of the library, and the task nearest to it
SHOWN = {
    "count_pairs": seqlib.text.pair_counts,
    "merge_pair": seqlib.text.merge_pair,
    "train_bpe": seqlib.text.bpe_train,
    "encode": seqlib.text.bpe_encode,
    "embed": snp.embedding,
    "embed_backward": snp.embedding_backward,
    "sinusoidal_positions": snp.sinusoidal_positions,
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_librarys_source_under_the_name_of_the_task_gets_less_than_half(name):
    assert result_of(name, pasted(SHOWN[name])).score < TASKS[name].points / 2


def test_the_librarys_training_with_the_smallest_change_loses_the_ties():
    """Its tokens are bytes, so its rule for ties is another one."""

    def train(words, times, n_merges):
        chunks = {}
        for word, n in zip(words, times, strict=True):
            chunks[word.encode()] = chunks.get(word.encode(), 0) + n
        ids = {bytes([i]): i for i in range(256)}
        merges = []
        for left, right in pasted(seqlib.text.bpe_train)(chunks, n_merges):
            merges.append((ids[left], ids[right]))
            ids[left + right] = 255 + len(merges)
        return merges

    result = result_of("train_bpe", train)
    assert passed(result) == {"values", "unicode", "runs", "edge"}
    assert result.diagnosis.names == ("tie_by_bytes",)


# Calls of the library


def whole_pairs(words, times):
    return dict(seqlib.text.pair_counts(list(zip(words, times, strict=True))))


def whole_merge(ids, pair, new):
    pieces = [bytes([i % 256]) for i in ids]
    return seqlib.text.merge_pair(pieces, tuple(bytes([i % 256]) for i in pair))


def whole_train(words, times, n_merges):
    chunks = {word.encode(): n for word, n in zip(words, times, strict=True)}
    return seqlib.text.bpe_train(chunks, n_merges)


def whole_tokenizer(text, merges):
    return seqlib.text.BPETokenizer([]).encode(text)


def whole_decode(ids, merges):
    data = seqlib.text.BPETokenizer([]).decode_bytes(ids)
    return data.decode(errors="replace"), len(data)


def whole_embed(ids, E, pad):
    return snp.embedding(np.where(ids == pad, 0, ids), E) * (ids != pad)[..., None]


def whole_embed_backward(dX, ids, E, pad):
    kept = ids != pad
    return snp.embedding_backward(dX * kept[..., None], np.where(kept, ids, 0), E)


def whole_positions(T, d, offsets, base):
    rows = [snp.sinusoidal_positions(T, d, base=base, offset=int(o)) for o in offsets]
    return np.stack(rows)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("count_pairs", whole_pairs),
        ("merge_pair", whole_merge),
        ("train_bpe", whole_train),
        ("encode", whole_tokenizer),
        ("decode", whole_decode),
        ("embed", whole_embed),
        ("embed_backward", whole_embed_backward),
        ("sinusoidal_positions", whole_positions),
    ],
)
def test_a_call_of_the_library_is_refused_where_it_is_the_answer(name, function):
    result = result_of(name, function)
    assert result.score == 0
    assert "is what this task asks you to write" in result.criteria[0].message


@pytest.mark.parametrize("name", sorted({s for task in TOKENS.tasks for s in task.shortcuts}))
def test_what_is_refused_exists(name):
    """The owner must be found as the refusal finds it: from attribute to attribute."""
    package, *path = name.split(".")
    importlib.import_module(package)
    found = sys.modules[package]
    for part in path:
        found = getattr(found, part)
    assert callable(found)


# A mistake in one task costs nothing in another


def test_wrong_helpers_of_tasks_1_and_2_cost_nothing_in_tasks_3_and_4():
    source = """
def count_pairs(words, times):
    return {(0, 0): 1}

def merge_pair(ids, pair, new):
    raise NotImplementedError()

def train_bpe(words, times, n_merges):
    texts, merges = [list(word.encode()) for word in words], []
    while len(merges) < n_merges and (counts := count_pairs(texts, times)):
        pair = min(counts, key=lambda p: (-counts[p], p))
        texts = [merge_pair(ids, pair, 256 + len(merges)) for ids in texts]
        merges.append(pair)
    return merges

def encode(text, merges):
    ids = list(text.encode())
    for k, pair in enumerate(merges):
        ids = merge_pair(ids, pair, 256 + k)
    return ids
"""
    space = {}
    exec(source, space)
    assert result_of("train_bpe", space["train_bpe"]).score == 20
    assert result_of("encode", space["encode"]).score == 15
    assert result_of("count_pairs", space["count_pairs"]).score == 0
    assert space["count_pairs"]([], []) == {(0, 0): 1}  # the student's own again


def test_the_granted_functions_take_what_a_dict_of_words_gives():
    """``count_pairs`` of task 1 is also called in task 4, and both take views of a dict."""
    source = """
def count_pairs(words, times):
    raise NotImplementedError()

def merge_pair(ids, pair, new):
    raise NotImplementedError()

def train_bpe(words, times, n_merges):
    text, merges = {}, []
    for word, n in zip(words, times):
        word = tuple(word.encode())
        text[word] = text.get(word, 0) + n
    while len(merges) < n_merges and (counts := count_pairs(text.keys(), text.values())):
        merges.append(min(counts, key=lambda p: (-counts[p], p)))
        new, merged = 255 + len(merges), {}
        for word, n in text.items():
            word = tuple(merge_pair(ids=word, pair=merges[-1], new=new))
            merged[word] = merged.get(word, 0) + n
        text = merged
    return merges

def encode(text, merges):
    ids = list(text.encode())
    while found := [k for k, pair in enumerate(merges) if pair in count_pairs([ids], [1])]:
        ids = merge_pair(ids, merges[found[0]], 256 + found[0])
    return ids
"""
    space = {}
    exec(source, space)
    assert result_of("train_bpe", space["train_bpe"]).score == 20
    assert result_of("encode", space["encode"]).score == 15


# Partial credit: one mistake costs once


@pytest.mark.parametrize(
    ("name", "mistakes", "kept"),
    [
        ("count_pairs", ["overlaps_left_out"], {"values", "twice", "edge"}),
        ("count_pairs", ["last_listed"], {"values", "overlap", "edge"}),
        ("merge_pair", ["from_the_right"], {"values", "edge"}),
        ("merge_pair", ["stops_before_the_end"], {"values", "overlap"}),
        ("train_bpe", ["tie_first_met"], {"values", "unicode", "runs", "edge"}),
        ("train_bpe", ["characters"], {"values", "ties", "runs", "edge"}),
        ("train_bpe", ["overlaps_left_out"], {"values", "ties", "unicode", "edge"}),
        ("train_bpe", ["stops_at_one"], {"values", "ties", "unicode", "runs"}),
        ("encode", ["characters"], {"values", "runs", "edge"}),
        ("encode", ["from_the_right"], {"values", "unicode", "edge"}),
        (
            "decode",
            ["each_token_alone"],
            {"values", "invalid", "split_bytes", "invalid_bytes", "edge"},
        ),
        (
            "decode",
            ["invalid_left_out"],
            {"values", "split", "split_bytes", "invalid_bytes", "edge"},
        ),
        ("decode", ["bytes_of_decoded_tokens"], {"values", "split", "invalid", "edge"}),
        (
            "decode",
            ["bytes_of_decoded_text"],
            {"values", "split", "invalid", "split_bytes", "edge"},
        ),
        ("decode", ["joined_with_spaces"], {"split_bytes", "invalid_bytes"}),
        ("embed", ["negative_is_padding"], {"values"}),
        ("embed", ["flattened"], {"values", "pad"}),
        ("embed_backward", ["last_one_only"], {"values"}),
        ("embed_backward", ["lost_within_rows"], {"values", "repeated", "pad"}),
        ("embed_backward", ["negative_is_padding"], {"values", "repeated", "shape"}),
        ("sinusoidal_positions", ["offset_ignored"], {"values", "odd", "base"}),
        ("sinusoidal_positions", ["odd_width_rounded"], {"values", "offset", "base"}),
        ("sinusoidal_positions", ["base_ignored"], {"values", "offset", "odd"}),
    ],
)
def test_what_is_right_is_paid(name, mistakes, kept):
    assert passed(result_of(name, function_of(TASKS[name], *mistakes))) == kept


@pytest.mark.parametrize(
    ("name", "change", "lost"),
    [
        ("encode", str.strip, ["edge"]),
        ("encode", str.lstrip, ["edge"]),
        ("encode", str.rstrip, ["edge"]),
        ("encode", str.lower, ["edge"]),
        ("encode", functools.partial(unicodedata.normalize, "NFC"), ["unicode"]),
        ("encode", functools.partial(unicodedata.normalize, "NFD"), ["unicode"]),
        ("train_bpe", str.strip, ["edge"]),
        ("train_bpe", str.lstrip, ["edge"]),
        ("train_bpe", str.rstrip, ["edge"]),
        ("train_bpe", str.lower, ["edge"]),
        ("decode", str.strip, ["edge"]),
        ("decode", str.lstrip, ["edge"]),
        ("decode", str.rstrip, ["edge"]),
        ("decode", lambda text: text.replace("\r\n", "\n"), ["edge"]),
    ],
)
def test_a_text_is_taken_as_it_is(name, change, lost):
    """White space, capitals and the form of an accent belong to it."""
    right = TASKS[name].reference

    def function(*args):
        if name == "decode":
            text, n_bytes = right(*args)
            return change(text), n_bytes
        texts, *others = args
        return right(change(texts) if name == "encode" else list(map(change, texts)), *others)

    result = result_of(name, function)
    assert [c.name for c in result.criteria if not c.passed] == lost


# Forms that are right too


def test_numbers_of_numpy_and_torch_are_right():
    reference = {name: task.reference for name, task in TASKS.items()}

    def pairs(words, times):
        counts = reference["count_pairs"](words, times)
        return {(np.int64(a), np.int64(b)): np.int64(n) for (a, b), n in counts.items()}

    def tensor(text, merges):
        return torch.tensor(reference["encode"](text, merges))

    def lists(words, times, n_merges):
        return [list(pair) for pair in reference["train_bpe"](words, times, n_merges)]

    def listed(ids, merges):
        text, n_bytes = reference["decode"](ids, merges)
        return [text, np.int32(n_bytes)]

    for name, function in (
        ("count_pairs", pairs),
        ("encode", tensor),
        ("train_bpe", lists),
        ("decode", listed),
    ):
        result = result_of(name, function)
        assert result.score == TASKS[name].points, result.lines()


def test_a_message_names_the_merge_the_pair_and_the_place():
    def messages(name, mistake):
        result = result_of(name, function_of(TASKS[name], mistake))
        return {c.name: c.message for c in result.criteria}

    assert "(merge 0, token" in messages("train_bpe", "tie_largest")["ties"]
    assert "does not belong there" in messages("count_pairs", "order_ignored")["values"]
    assert "text is wrong from position" in messages("decode", "each_token_alone")["split"]
    assert "n_bytes is" in messages("decode", "characters_counted")["split_bytes"]
    assert "(token id " in messages("embed_backward", "last_one_only")["repeated"]
    assert "time step 0, feature" in messages("sinusoidal_positions", "from_one")["values"]


def test_an_answer_of_one_part_is_told_that_the_other_is_missing():
    result = result_of("decode", lambda ids, merges: bytes(i % 128 for i in ids).decode())
    assert result.score == 0
    assert result.criteria[0].message.startswith("text is missing")


def test_an_argument_changed_in_place_is_said_and_costs_nothing():
    def merge(ids, pair, new):
        i = 0
        while i < len(ids) - 1:
            if (ids[i], ids[i + 1]) == pair:
                ids[i : i + 2] = [new]
            i += 1
        return ids

    result = result_of("merge_pair", merge)
    assert result.score == 7
    assert any("changes its argument ids in place" in note for note in result.notes)
