"""Students whose wrong answers the judge described in the same words, where few others' are.

Each student has inputs of their own, so the answers themselves cannot be compared. What can be
is what the judge says about them: which criteria failed, the diagnosis, and the messages
without the numbers that come from the inputs. That is a hint for a person who then looks at
the notebooks. It is no measure of anything, and no score may depend on it: students who learn
together, or from the same page, make the same mistakes.
"""

import hashlib
import itertools
import json
import re
from collections import Counter, defaultdict

# In a class below this, what two have in common cannot be told from what is common.
CLASS_FROM = 40
# A rare mistake is shared by no more than these.
MOST_STUDENTS = 10
MOST_SHARE = 0.05

# What was never written, or never answered, is no mistake that could be shared.
_NO_ANSWER = ("not written yet", "not run", "no answer", "the call ended the Python process")
_INPUT = re.compile(r"\. Input: .*?(?=(?: \(\d+ of \d+ inputs fail\))?$)", re.DOTALL)
_COUNT = re.compile(r"(\d+) of (\d+) (inputs fail|entries)")
_PLACE = re.compile(r"^entry \[[\d, ]*\](?: \([^)]*\))?")
_VALUE = re.compile(r"\bis -?(?:[\d.]\S*|inf|nan)(?=,)")
_READS = re.compile(r"where it reads .*", re.DOTALL)
_FLOAT = re.compile(r"(?<![\w.])-?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[+-]?\d+)?(?!\w)")
_WHOLE = re.compile(r"(?<![\w.])\d+(?![\w.]*\w)")


def wording(message):
    """Return a message without what comes from the inputs of one student.

    The input and the value are left out, a count is all or some, and whole numbers above 1
    become letters, the same for the same number, so that what a shape has to do with another
    one stays.

    >>> wording("dQ has shape (5, 7), not (3, 7). Input: n=3 (4 of 5 inputs fail)")
    'dQ has shape (a, b), not (c, b) (some inputs fail)'
    >>> wording("entry [0, 2] (query 0) of Y is -0.52, which is wrong (15 of 15 entries)")
    'an entry of Y is #, which is wrong (all entries)'
    """
    text = _INPUT.sub("", message)
    text = _COUNT.sub(lambda m: f"{'all' if m[1] == m[2] else 'some'} {m[3]}", text)
    text = _PLACE.sub("an entry", text)
    text = _VALUE.sub(lambda m: "is nan" if m[0] == "is nan" else "is #", text)
    text = _READS.sub("where it reads otherwise", text)
    text = _FLOAT.sub("#", text)
    letters = {}

    def letter(match):
        number = int(match[0]) if len(match[0]) < 20 else match[0]
        if number in (0, 1):
            return match[0]
        letters.setdefault(number, len(letters))
        return chr(97 + letters[number]) if letters[number] < 26 else "#"

    return _WHOLE.sub(letter, text)


class Patterns:
    """Which students have which pattern of failed criteria, diagnosis and wording."""

    def __init__(self):
        self.wanted = False
        self.graded = Counter()  # task -> submissions in which it was judged
        self.lost = Counter()  # task -> those with a pattern
        self.unknown = 0
        self._who = defaultdict(list)  # (task, digest) -> students
        self._about = {}  # the same -> what a person reads, from the second student on

    def tell(self, size):
        """Decide by the size of the class whether patterns are worth reading."""
        self.wanted = size >= CLASS_FROM

    def add(self, task, student, lost, record):
        """Add what was judged in one task.

        Parameters
        ----------
        task, student : str
            Ids.
        lost : bool
            Whether a criterion failed.
        record : dict or None
            The task's record, needed where one failed; None if there is none.
        """
        self.graded[task] += 1
        if not lost:
            return
        if record is None:
            self.unknown += 1
            return
        failed = [c for c in record["result"]["criteria"] if not c["passed"]]
        if not failed or all(c["message"].startswith(_NO_ANSWER) for c in failed):
            return
        diagnosis = record["result"]["diagnosis"]
        names = [diagnosis["kind"], *sorted(diagnosis["names"])] if diagnosis else []
        pattern = [
            record["exercise_version"],
            [(c["name"], wording(c["message"])) for c in failed],
            names,
        ]
        # In ASCII, since what a student's code says need not be text.
        digest = hashlib.sha256(json.dumps(pattern).encode()).digest()[:12]
        key = task, digest
        self.lost[task] += 1
        self._who[key].append(student)
        # Most patterns are one student's alone, and nobody reads about those.
        if len(self._who[key]) == 2:
            self._about[key] = {
                "criteria": [c["name"] for c in failed],
                "message": failed[0]["message"],
                "diagnosis": " ".join(diagnosis["says"]) if diagnosis else "",
            }

    def groups(self):
        """Return the groups that share a rare mistake, the most telling ones first.

        Returns
        -------
        list of dict
            ``task``, ``students``, ``criteria``, ``message`` (to one of them), ``diagnosis``;
            ``graded``, how many have this task judged, and ``lost``, how many of them lost
            points with some answer; ``in_groups``, how many of those are in a group of this
            task; ``agree``, the share of all pairs of them whose patterns are equal; and
            ``together``, in how many groups of the assignment, this one included, two of the
            students stand together at most.
        """
        rare = {key: who for key, who in self._who.items() if self._is_rare(key[0], len(who))}
        pairs = Counter(
            pair for who in rare.values() for pair in itertools.combinations(sorted(who), 2)
        )
        members = defaultdict(set)
        for (task, _), who in rare.items():
            members[task].update(who)
        agreeing = Counter()
        for (task, _), who in self._who.items():
            agreeing[task] += len(who) * (len(who) - 1)
        found = [
            {
                "task": task,
                "students": sorted(who),
                **self._about[task, digest],
                "graded": self.graded[task],
                "lost": self.lost[task],
                "in_groups": len(members[task]),
                "agree": agreeing[task] / (self.lost[task] * (self.lost[task] - 1)),
                "together": max(pairs[p] for p in itertools.combinations(sorted(who), 2)),
            }
            for (task, digest), who in rare.items()
        ]
        return sorted(found, key=lambda g: (-g["together"], len(g["students"]), g["agree"]))

    def _is_rare(self, task, count):
        most = min(MOST_STUDENTS, MOST_SHARE * self.graded[task])
        return self.graded[task] >= CLASS_FROM and 2 <= count <= most
