"""Numbers written out in English, German and French: a small translation with known answers.

The languages order a number differently: 47 is forty-seven, siebenundvierzig ("seven and
forty"), quarante-sept; and 97 is quatre-vingt-dix-sept ("four twenties ten seven").
"""

from seqlib._check import check_choice, check_positive

__all__ = ["LANGUAGES", "number_pairs", "number_words"]

LIMIT = 10_000

_TABLES = {
    "en": """zero one two three four five six seven eight nine ten eleven twelve thirteen
        fourteen fifteen sixteen seventeen eighteen nineteen
        twenty thirty forty fifty sixty seventy eighty ninety""",
    "de": """null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn
        vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn
        zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig""",
    "fr": """zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize
        quatorze quinze seize dix-sept dix-huit dix-neuf
        vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt""",
}
# The words of 0 to 19, then those of 20, 30, ..., 90.
_EN, _DE, _FR = (words.split() for words in _TABLES.values())


def number_words(number, language):
    """Write a number out.

    ``number_words(247, "en")`` is ``"two hundred and forty-seven"``, in German
    ``"zweihundertsiebenundvierzig"``, in French ``"deux cent quarante-sept"``.

    Parameters
    ----------
    number : int
        From 0 to 9999.
    language : {"en", "de", "fr"}
        British English without commas, German, and French as in France.

    Returns
    -------
    str
        The words, in small letters.

    Raises
    ------
    ValueError
        If the number is out of range or the language another.
    """
    check_choice("language", language, tuple(LANGUAGES))
    if not hasattr(number, "__index__") or not 0 <= number < LIMIT:
        raise ValueError(
            f"number must be an integer from 0 to {LIMIT - 1}, got {number!r}; the tables end "
            "there"
        )
    return LANGUAGES[language](int(number))


def number_pairs(n, rng, *, source="en", target="de", stop=LIMIT, held_out=(), test=False):
    """Draw numbers and write each in two languages.

    ``held_out`` names pairs of tens and units: with ``[(4, 7)]`` no number that ends in 47 is
    drawn for training, and only such numbers are drawn with ``test=True``. Both digits occur
    in training, but never together, so that a model must compose what it has not seen.

    Parameters
    ----------
    n : int
        Number of pairs.
    rng : numpy.random.Generator
        Source of the numbers, all equally likely, with repetitions.
    source, target : {"en", "de", "fr"}
        The languages.
    stop : int, default=10000
        The numbers are below this.
    held_out : collection of (int, int), default=()
        Pairs of tens and units, each from 0 to 9.
    test : bool, default=False
        Draw the numbers that are held out instead of the others.

    Returns
    -------
    numbers : ndarray of int of shape (n,)
        The numbers.
    sources : list of str
        Each in the source language.
    targets : list of str
        Each in the target language.

    Raises
    ------
    ValueError
        If no number is left to draw from.
    """
    check_positive("n", n)
    check_positive("stop", stop)
    if stop > LIMIT:
        raise ValueError(f"stop must be at most {LIMIT}, got {stop}; the tables end there")
    endings = {10 * tens + units for tens, units in held_out}
    allowed = [i for i in range(stop) if (i % 100 in endings) == test]
    if not allowed:
        raise ValueError(
            f"held_out must leave a number below stop = {stop} to draw with test={test}, got "
            f"{sorted(held_out)}"
        )
    numbers = rng.choice(allowed, size=n)
    sources, targets = ([number_words(i, lang) for i in numbers] for lang in (source, target))
    return numbers, sources, targets


def _english(i):
    if i < 20:
        return _EN[i]
    if i < 100:
        tens, units = divmod(i, 10)
        return _EN[18 + tens] + (f"-{_EN[units]}" if units else "")
    size, name = (1000, "thousand") if i >= 1000 else (100, "hundred")
    count, rest = divmod(i, size)
    words = f"{_english(count)} {name}"
    if not rest:
        return words
    return f"{words} {'and ' if rest < 100 else ''}{_english(rest)}"


def _german(i, one="eins"):
    if i < 20:
        return one if i == 1 else _DE[i]
    if i < 100:
        tens, units = divmod(i, 10)
        return (f"{_german(units, 'ein')}und" if units else "") + _DE[18 + tens]
    size, name = (1000, "tausend") if i >= 1000 else (100, "hundert")
    count, rest = divmod(i, size)
    return _german(count, "ein") + name + (_german(rest) if rest else "")


def _french(i, last=True):
    """Write a number; ``vingt`` and ``cent`` take an s only at the end of the number."""
    if i < 20:
        return _FR[i]
    if i == 80:
        return "quatre-vingts" if last else "quatre-vingt"
    if i < 100:
        tens, units = divmod(i, 10)
        word = _FR[18 + tens]
        units += 10 * (tens in (7, 9))  # 70 is sixty-ten and 90 is four-twenties-ten
        if units in (1, 11) and tens < 8:
            return f"{word} et {_FR[units]}"
        return f"{word}-{_FR[units]}" if units else word
    size, name = (1000, "mille") if i >= 1000 else (100, "cent")
    count, rest = divmod(i, size)
    words = name if count == 1 else f"{_french(count, last=False)} {name}"
    if rest:
        return f"{words} {_french(rest, last)}"
    return f"{words}s" if name == "cent" and count > 1 and last else words


LANGUAGES = {"en": _english, "de": _german, "fr": _french}
