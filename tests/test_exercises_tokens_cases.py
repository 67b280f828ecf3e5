"""The assignment ``tokens``: real faults of others, and what its inputs must tell apart."""

import itertools

import numpy as np
import pytest

from seqlib.exercises import tokens
from seqlib.judge.diagnose import function_of
from seqlib.judge.judge import judge
from seqlib.subject.inprocess import InProcess
from seqlib.text import BPETokenizer, bpe_encode, bpe_train

TOKENS = tokens.ASSIGNMENT
TASKS = {task.function: task for task in TOKENS.tasks}


def answer(name, *args, wrong=()):
    """Return the answer with one mistake, or with none."""
    return function_of(TASKS[name], wrong)(*args) if wrong else TASKS[name].reference(*args)


def ids_of(*pieces):
    """Write merges of text, ``("b", "c")``, as pairs of ids."""
    numbers = {}
    for k, (left, right) in enumerate(pieces):
        numbers[left + right] = 256 + k
    return [tuple(numbers.get(p) or ord(p) for p in pair) for pair in pieces]


# Cases of group A that these tasks are about


@pytest.mark.parametrize(
    ("rule", "merges"),
    [
        ("tie_first_met", [("a", "b"), ("ab", "c"), ("abc", "d")]),
        ("tie_by_bytes", [("a", "b"), ("ab", "c"), ("abc", "d")]),
        ("", [("a", "b"), ("c", "d"), ("ab", "cd")]),
    ],
)
def test_case_a41_ties_by_a_stated_rule(rule, merges):
    """Text and check agree on one rule, and every rule ends with the same two tokens."""
    found = answer("train_bpe", ["abcdabcd"], [1], 3, wrong=rule)
    assert found == ids_of(*merges)
    assert len(answer("encode", "abcdabcd", found)) == 2


def test_case_a41_the_message_of_another_rule_names_ties():
    result = judge(TASKS["train_bpe"], InProcess(variant_of("train_bpe", "tie_largest")), 1)
    lost = [c for c in result.criteria if not c.passed]
    assert [c.name for c in lost] == ["ties"]
    assert "equally frequent" in lost[0].says
    assert "Of equally frequent pairs the largest one" in result.diagnosis.says[0]


def variant_of(name, mistake):
    return function_of(TASKS[name], mistake)


def test_case_a43_counts_go_stale():
    """The count of (ot, a) falls from 4 to 2 when tot is made, also for the smallest pair."""
    words, times = ["tot", "tota", "ota", "ot"], [3, 2, 2, 1]
    merges = answer("train_bpe", words, times, 3)
    assert merges[0] == (ord("o"), ord("t"))
    fresh = ids_of(("o", "t"), ("t", "ot"), ("ot", "a"))
    assert merges == fresh
    pieces = [[*b"t", 256], [*b"t", 256, *b"a"], [256, *b"a"], [256]]
    counts = answer("count_pairs", pieces, times)
    assert counts == {(ord("t"), 256): 5, (256, ord("a")): 4}
    after = [answer("merge_pair", word, (ord("t"), 256), 257) for word in pieces]
    assert answer("count_pairs", after, times) == {(257, ord("a")): 2, (256, ord("a")): 2}


@pytest.mark.parametrize(
    ("merges", "text", "right", "from_left"),
    [
        ([("b", "c"), ("a", "b")], "abc", ["a", "bc"], ["ab", "c"]),
        ([("a", "b"), ("a", "a")], "aab", ["a", "ab"], ["aa", "b"]),
        (
            [("o", "w"), ("l", "o"), ("l", "ow"), ("e", "r")],
            "lower",
            ["low", "er"],
            ["lo", "w", "er"],
        ),
    ],
)
def test_case_a44_lowest_rank_first(merges, text, right, from_left):
    numbers = ids_of(*merges)
    for expected, wrong in ((right, ""), (from_left, "left_to_right")):
        ids = answer("encode", text, numbers, wrong=wrong)
        assert [answer("decode", [i], numbers)[0] for i in ids] == expected


def test_case_a46_tokens_that_are_no_utf8():
    assert answer("decode", [0x80], []) == ("\ufffd", 1)
    assert answer("decode", [0xF0, 0x9F], []) == ("\ufffd", 2)
    merges = [(0xF0, 0x9F), (0x98, 0xAD)]
    assert answer("decode", [256, 257], merges) == ("😭", 4)
    assert answer("decode", [256, 257], merges, wrong="each_token_alone")[0] == "\ufffd" * 3
    with pytest.raises(UnicodeDecodeError):
        answer("decode", [0x80], [], wrong="invalid_raises")


def test_case_a47_bytes_are_counted_before_decoding():
    merges = [(ord("a"), ord("b")), (256, ord("c"))]
    ids = [0xC3, 0xA9, 257]
    for wrong, n_bytes, bits in (("", 5, 1.731234), ("bytes_of_decoded_tokens", 9, 0.961797)):
        counted = answer("decode", ids, merges, wrong=wrong)[1]
        assert counted == n_bytes
        assert 6 / np.log(2) / counted == pytest.approx(bits, rel=1e-6)


def test_case_a30_token_0_is_a_token():
    ids, E = np.array([0, 0, 5, 0, 7]), np.arange(8.0)[:, None] + 1
    X = answer("embed", ids, E, -1)
    assert X.ravel().tolist() == [1, 1, 6, 1, 8]
    assert answer("embed", ids, E, -1, wrong="zero_is_padding").ravel().tolist() == [
        0,
        0,
        6,
        0,
        8,
    ]


ROWS_A11 = [
    [0.0, 1.0, 0.0, 1.0],
    [0.8414709848078965, 0.5403023058681398, 0.009999833334166664, 0.9999500004166653],
    [0.9092974268256817, -0.4161468365471424, 0.01999866669333308, 0.9998000066665778],
]


def test_case_a11_one_frequency_for_sine_and_cosine():
    P = answer("sinusoidal_positions", 3, 4, np.array([0]), 10000.0)
    np.testing.assert_allclose(P[0], ROWS_A11, atol=1e-12)


def test_case_a11_the_published_loop_is_named_as_its_two_mistakes():
    def published(T, d, offsets, base):
        P = np.zeros((len(offsets), T, d))
        for b, t in np.ndindex(len(offsets), T):
            for i in range(0, d, 2):
                P[b, t, i] = np.sin((offsets[b] + t) / base ** (2 * i / d))
                if i + 1 < d:
                    P[b, t, i + 1] = np.cos((offsets[b] + t) / base ** (2 * (i + 1) / d))
        return P

    row = published(2, 4, np.array([0]), 10000.0)[0, 1]
    wrong = [0.8414709848078965, 0.9999500004166653, 9.999999983333334e-05, 0.9999999999995]
    np.testing.assert_allclose(row, wrong, atol=1e-12)
    result = judge(TASKS["sinusoidal_positions"], InProcess(published), 1)
    assert result.score == 0
    assert result.diagnosis.kind == "mistake"
    assert set(result.diagnosis.names) == {"index_doubled", "cosine_own_frequency"}


def test_case_a40_positions_of_a_batch_that_is_padded_on_the_left():
    P = answer("sinusoidal_positions", 5, 6, np.array([-2, 0]), 10000.0)
    np.testing.assert_allclose(P[0, 2:], P[1, :3])


# Cases of group B


@pytest.mark.parametrize("name", ["embed", "embed_backward"])
def test_case_b09_sizes_are_all_different(name):
    """An exchanged axis must not fit by chance."""
    for case in TASKS[name].cases(np.random.default_rng(1)):
        ids, E = case.args[-3:-1]
        sizes = [n for n in (*ids.shape, *E.shape) if n > 1]
        assert len(set(sizes)) == len(sizes) or case.label == "V=2, d=1", case.label


def test_case_b11_a_gradient_written_into_the_upstream_one_is_said():
    def backward(dX, ids, E, pad):
        dX[ids == pad] = 0
        dE = np.zeros(E.shape)
        np.add.at(dE, np.where(ids == pad, 0, ids), dX)
        return dE

    result = judge(TASKS["embed_backward"], InProcess(backward), 1)
    assert result.score == 15
    assert any("changes its argument dX in place" in note for note in result.notes)


# The library agrees


@pytest.mark.parametrize("seed", range(3))
def test_the_librarys_tokenizer_gives_the_same_tokens_and_text(seed):
    """Its merges are pieces of bytes; written as ids they encode and decode alike."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("abné "), 6)) for _ in range(9)]
    pieces = bpe_train({w.encode(): 1 + i for i, w in enumerate(words)}, 12)
    number = {bytes([i]): i for i in range(256)}
    merges = []
    for k, (left, right) in enumerate(pieces):
        merges.append((number[left], number[right]))
        number[left + right] = 256 + k
    text = "".join(words)
    ids = answer("encode", text, merges)
    assert ids == [number[token] for token in bpe_encode(text.encode(), pieces)]
    assert ids == BPETokenizer(pieces, pattern=r"(?s).+").encode(text)
    assert answer("decode", ids, merges) == (text, len(text.encode()))


# What the inputs tell apart


def pairs_without_the_first_place(words, times):
    counts = {}
    for word, n in zip(words, times, strict=True):
        for pair in itertools.pairwise(word):
            counts[pair] = counts[pair] + n if pair in counts else 0
    return counts


def merges_of_the_rarest_pairs(words, times, n_merges):
    texts, merges = [list(word.encode()) for word in words], []
    while len(merges) < n_merges and (counts := answer("count_pairs", texts, times)):
        merges.append(min(counts, key=lambda p: (counts[p], p)))
        new = 255 + len(merges)
        texts = [answer("merge_pair", text, merges[-1], new) for text in texts]
    return merges


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("count_pairs", pairs_without_the_first_place),
        ("train_bpe", merges_of_the_rarest_pairs),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_mistake_that_no_sentence_knows_gets_no_name(name, function, seed):
    """Neither has to do with a word that is listed twice."""
    result = judge(TASKS[name], InProcess(function), seed)
    assert result.score == 0
    assert result.diagnosis is None


def test_a_pair_written_as_text_is_found_inside_of_other_numbers():
    def merge_pair(ids, pair, new):
        text = " ".join(map(str, ids)).replace("{} {}".format(*pair), str(new))
        return [int(token) for token in text.split()]

    result = judge(TASKS["merge_pair"], InProcess(merge_pair), seed=1)
    assert [c.name for c in result.criteria if not c.passed] == ["edge"]


@pytest.mark.parametrize("seed", range(5))
def test_ties_occur_in_the_inputs_of_ties_alone(seed):
    """A student with another rule for ties must lose the points of that criterion only."""
    task = TASKS["train_bpe"]
    for case in task.cases(np.random.default_rng(seed)):
        right = task.reference(*case.args)
        for rule in (m.name for m in task.misconceptions if m.name.startswith("tie_")):
            same = function_of(task, rule)(*case.args) == right
            assert same or case.tag == "ties", (rule, case)


@pytest.mark.parametrize("seed", range(5))
def test_letters_of_two_bytes_occur_in_their_criterion_alone(seed):
    for name in ("train_bpe", "encode"):
        for case in TASKS[name].cases(np.random.default_rng(seed)):
            texts = case.args[0] if name == "train_bpe" else [case.args[0]]
            assert all(map(str.isascii, texts)) == (case.tag != "unicode"), case


@pytest.mark.parametrize("seed", range(3))
def test_the_mistakes_of_encoding_give_tokens_of_their_own(seed):
    task = TASKS["encode"]
    names = [
        m.name for m in task.misconceptions if m.name not in ("characters", "from_the_right")
    ]
    for case in task.cases(np.random.default_rng(seed))[:2]:
        found = [task.reference(*case.args)]
        found += [function_of(task, name)(*case.args) for name in names]
        assert all(a != b for a, b in itertools.combinations(found, 2))


@pytest.mark.parametrize("seed", range(3))
def test_every_way_of_losing_gradients_differs_on_two_axes(seed):
    task = TASKS["embed_backward"]
    names = ("last_one_only", "first_one_only", "lost_within_rows", "lost_across_rows")
    for case in task.cases(np.random.default_rng(seed)):
        if case.tag == "shape" and case.args[1].ndim > 1:
            found = [task.reference(*case.args)]
            found += [function_of(task, name)(*case.args) for name in names]
            assert all(not np.allclose(a, b) for a, b in itertools.combinations(found, 2)), (
                case.label
            )
