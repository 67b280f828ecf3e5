"""Kind ``student_test``: the student writes a test that finds broken sorters."""

from seqlib.exercises.record import Case, Criterion, Misconception, Task
from seqlib.subject.values import Handle, Seed

MAX_CALLS = 50


def right_sort(numbers):
    return sorted(numbers)


def merge_sort(numbers):
    if len(numbers) < 2:
        return list(numbers)
    half = len(numbers) // 2
    one, two = merge_sort(numbers[:half]), merge_sort(numbers[half:])
    merged = []
    while one and two:
        merged.append((one if one[0] <= two[0] else two).pop(0))
    return merged + one + two


def unsorted(numbers):
    return list(numbers)


def without_repeats(numbers):
    return sorted(set(numbers))


def last_misplaced(numbers):
    return [*sorted(numbers[:-1]), *numbers[-1:]]


def reference(sort, rng):
    """Return True if ``sort`` (list of int to list of int) is broken."""
    for size in (0, 1, 2, 5, 11, 11):
        numbers = rng.integers(5, size=size).tolist()
        if sort(numbers) != sorted(numbers):
            return True
    return sort([2, 2, 1]) != [1, 2, 2]


def only_lengths(sort, rng):
    numbers = rng.integers(5, size=11).tolist()
    return len(sort(numbers)) != len(numbers) or sort([3, 2, 1])[0] == 3


def only_the_start(sort, rng):
    numbers = rng.permutation(11).tolist()
    return sort([*numbers, 99])[:2] != [0, 1]


def cases(rng):
    def case(sort, label, tag="base"):
        return Case((Handle(sort), Seed(int(rng.integers(2**31)))), {}, label, tag)

    return [
        case(right_sort, "a right sorter"),
        case(merge_sort, "another right sorter"),
        case(unsorted, "a sorter that does nothing"),
        case(without_repeats, "a sorter that loses repeated numbers", "repeats"),
        case(last_misplaced, "a sorter that leaves the last number", "last"),
    ]


TASK = Task(
    id="fixtures.is_broken",
    title="Test of a sorter",
    signature="(sort, rng)",
    equations=(),
    page="sorting",
    reference=reference,
    cases=cases,
    kind="student_test",
    criteria=(
        Criterion("values", 2, "right sorters pass, one that does nothing fails"),
        Criterion("repeats", 1, "repeated numbers", tag="repeats"),
        Criterion("last", 1, "last number", tag="last"),
    ),
    misconceptions=(
        Misconception(
            "only_lengths",
            "Long lists are tested by length only.",
            "sorting",
            "ours",
            only_lengths,
        ),
        Misconception(
            "only_the_start",
            "Only the first two are looked at.",
            "sorting",
            "ours",
            only_the_start,
        ),
    ),
    options={"max_calls": MAX_CALLS},
)
