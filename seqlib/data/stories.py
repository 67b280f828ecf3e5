"""Tiny stories from a grammar: English enough to read, and of known entropy.

What a model must learn for the last tenths of a nat is far apart: the hero's name, the colour
and the toy of the first sentence come back in the last one, pronouns agree with names, and
verbs with nouns from which clauses of any depth part them.
"""

from seqlib.data.grammar import Grammar

__all__ = ["STORY_RULES", "stories", "story_grammar"]


def _one_of(*words):
    return [(1 / len(words), word) for word in words]


STORY_RULES = {
    "start": _one_of("<hero=name> has a <colour=colour> <toy=toy>.<middle>"),
    "middle": [
        (0.2, " One day {hero} <does> the {toy} to <friend=friend>.<answer><middle>"),
        (0.2, " Then {hero|1} sees that <scene>.<middle>"),
        (0.2, " But the {toy} falls into the <water> and {hero|1} <mood>.<middle>"),
        (0.4, " At night {hero} puts the {colour} {toy} <place>.\n"),
    ],
    "does": _one_of("shows", "gives"),
    "answer": [
        (0.3, " Now {friend} has the {colour} {toy} of {hero}."),
        (0.7, " And {friend|1} <reply>."),
    ],
    "reply": _one_of("likes it", "says that {hero} may keep the {toy}"),
    "scene": _one_of("a <animal><one>", "two <animals><two>"),
    "one": [(0.4, " sleeps"), (0.3, " runs"), (0.3, " that<who><one>")],
    "two": [(0.4, " sleep"), (0.3, " run"), (0.3, " that<who><two>")],
    "who": _one_of(" a <animal><sees>", " two <animals><see>"),
    "sees": [(0.5, " sees"), (0.3, " hears"), (0.2, " that<who><sees>")],
    "see": [(0.5, " see"), (0.3, " hear"), (0.2, " that<who><see>")],
    "name": _one_of(
        *("Anna|she", "Clara|she", "Mia|she", "Rosa|she"),
        *("Ben|he", "Felix|he", "Otto|he", "Tom|he"),
    ),
    "friend": _one_of("Mother|she", "Father|he", "Aunt Ida|she", "Uncle Max|he"),
    "colour": _one_of("red", "blue", "green", "white", "yellow"),
    "toy": _one_of("ball", "kite", "drum", "boat", "train", "doll"),
    "water": _one_of("river", "lake", "pond"),
    "mood": _one_of("cries", "laughs"),
    "place": _one_of("under the bed", "on the chair", "into a box"),
    "animal": _one_of("dog", "cat", "hen", "fox"),
    "animals": _one_of("dogs", "cats", "hens", "foxes"),
}


def story_grammar():
    """Return the grammar of the stories; see :class:`seqlib.data.Grammar`."""
    return Grammar(STORY_RULES)


def stories(n, rng):
    """Draw a text of ``n`` tiny stories, one a line.

    Parameters
    ----------
    n : int
        Number of stories.
    rng : numpy.random.Generator
        Source of all choices.

    Returns
    -------
    str
        The text.
    """
    return story_grammar().sample(n, rng)
