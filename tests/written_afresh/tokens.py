"""Wrong answers to the assignment ``tokens``, written from the sentence for the student.

Each says which misconception it must be taken for. The manner is that of a beginner: loops,
one token at a time, bytes where numbers would do.
"""

import math

import numpy as np

# tokens.count_pairs


def tally(words, times, pairs_of):
    counts = {}
    for i in range(len(words)):
        for pair in pairs_of(words[i]):
            if pair not in counts:
                counts[pair] = 0
            counts[pair] += times[i]
    return counts


def neighbours(word):
    return [(word[i], word[i + 1]) for i in range(len(word) - 1)]


def pairs_every_word_once(words, times):
    return tally(words, [1 for _ in times], neighbours)


def pairs_of_a_set(words, times):
    return tally(words, times, lambda word: set(neighbours(word)))


def pairs_like_count(words, times):
    """Go on behind a pair of equal tokens, as str.count does."""

    def pairs(word):
        found, i = [], 0
        while i < len(word) - 1:
            found.append((word[i], word[i + 1]))
            again = i + 2 < len(word) and word[i] == word[i + 1] == word[i + 2]
            if again and i + 3 < len(word) and word[i + 3] != word[i]:
                found.append((word[i + 2], word[i + 3]))
                i += 3
            elif again:
                i += 2
            else:
                i += 1
        return found

    return tally(words, times, pairs)


def pairs_without_order(words, times):
    def pairs(word):
        return [(b, a) if a > b else (a, b) for a, b in neighbours(word)]

    return tally(words, times, pairs)


def pairs_of_a_long_list(words, times):
    text = []
    for word, n in zip(words, times, strict=True):
        text.extend(word * n)
    return tally([text], [1], neighbours)


def pairs_in_a_dict(words, times):
    table = {tuple(words[i]): times[i] for i in range(len(words))}
    return tally(list(table), list(table.values()), neighbours)


# tokens.merge_pair


def merge_deleting_backwards(ids, pair, new):
    ids = list(ids)
    i = len(ids) - 1
    while i > 0:
        if (ids[i - 1], ids[i]) == tuple(pair):
            del ids[i]
            ids[i - 1] = new
            i -= 1
        i -= 1
    return ids


def merge_once(ids, pair, new):
    for i in range(len(ids) - 1):
        if [ids[i], ids[i + 1]] == list(pair):
            return [*ids[:i], new, *ids[i + 2 :]]
    return list(ids)


def merge_leaves_second(ids, pair, new):
    out = list(ids)
    for i in range(len(ids) - 1):
        if ids[i] == pair[0] and ids[i + 1] == pair[1] and out[i] != "used":
            out[i] = new
            out[i + 1] = "used" if pair[0] == pair[1] else out[i + 1]
    return [pair[1] if t == "used" else t for t in out]


def merge_a_set(ids, pair, new):
    out, i = [], 0
    while i < len(ids):
        both = ids[i : i + 2]
        if len(both) == 2 and sorted(both) == sorted(pair):
            out.append(new)
            i += 1
        else:
            out.append(ids[i])
        i += 1
    return out


def merge_range_too_short(ids, pair, new):
    out, used = [], False
    for i in range(len(ids) - 1):
        if used:
            used = False
        elif (ids[i], ids[i + 1]) == tuple(pair):
            out.append(new)
            used = True
        else:
            out.append(ids[i])
    return out


# tokens.train_bpe


def learn(words, times, n_merges, choose, code=None, least=1):
    """Train with ``choose(counts)``; pairs are kept in the order in which they are met."""
    text = [list(code(w) if code else w.encode("utf-8")) for w in words]
    merges = []
    for k in range(n_merges):
        counts = tally(text, times, neighbours)
        if not counts or max(counts.values()) < least:
            break
        a, b = choose(counts)
        for w in text:
            i = 0
            while i + 1 < len(w):
                if w[i] == a and w[i + 1] == b:
                    w[i : i + 2] = [256 + k]
                i += 1
        merges.append((a, b))
    return merges


def smallest(counts):
    top = max(counts.values())
    return sorted(pair for pair in counts if counts[pair] == top)[0]


def train_max(words, times, n_merges):
    return learn(words, times, n_merges, lambda counts: max(counts, key=counts.get))


def train_greatest(words, times, n_merges):
    return learn(
        words, times, n_merges, lambda counts: max((n, p) for p, n in counts.items())[1]
    )


def train_later_wins(words, times, n_merges):
    def choose(counts):
        best, most = None, 0
        for pair, n in counts.items():
            if n >= most:
                best, most = pair, n
        return best

    return learn(words, times, n_merges, choose)


def train_code_points(words, times, n_merges):
    return learn(words, times, n_merges, smallest, code=lambda w: [ord(c) for c in w])


def train_needs_two(words, times, n_merges):
    return learn(words, times, n_merges, smallest, least=2)


def train_most_common(words, times, n_merges):
    counts = tally([list(w.encode()) for w in words], times, neighbours)
    ranking = sorted(counts, key=lambda pair: (-counts[pair], pair))
    return ranking[:n_merges]


def train_every_word_once(words, times, n_merges):
    return learn(words, [1] * len(times), n_merges, smallest)


def train_as_the_library(words, times, n_merges):
    """Keep tokens as bytes, and translate the merges to ids at the end."""
    text = [[bytes([c]) for c in w.encode()] for w in words]
    ids = {bytes([c]): c for c in range(256)}
    merges = []
    for _ in range(n_merges):
        counts = tally(text, times, neighbours)
        if not counts:
            break
        a, b = smallest(counts)
        merges.append((ids[a], ids[b]))
        ids[a + b] = 255 + len(merges)
        for w in text:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == (a, b):
                    w[i : i + 2] = [a + b]
                i += 1
    return merges


# tokens.encode


def encode_as_met(text, merges):
    ids, i = list(text.encode()), 0
    while i < len(ids) - 1:
        if (ids[i], ids[i + 1]) in merges:
            ids[i : i + 2] = [256 + merges.index((ids[i], ids[i + 1]))]
            i = 0
        else:
            i += 1
    return ids


def encode_longest(text, merges):
    names = {bytes([c]): c for c in range(256)}
    pieces = [bytes([c]) for c in range(256)]
    for a, b in merges:
        pieces.append(pieces[a] + pieces[b])
        names.setdefault(pieces[-1], len(pieces) - 1)
    data, ids, start = text.encode(), [], 0
    while start < len(data):
        end = len(data)
        while data[start:end] not in names:
            end -= 1
        ids.append(names[data[start:end]])
        start = end
    return ids


def encode_newest_first(text, merges):
    ids = list(text.encode())
    while True:
        for k in reversed(range(len(merges))):
            if merges[k] in neighbours(ids):
                ids = replaced(ids, merges[k], 256 + k)
                break
        else:
            return ids


def replaced(ids, pair, new):
    out = []
    for token in ids:
        if out and (out[-1], token) == pair:
            out[-1] = new
        else:
            out.append(token)
    return out


def encode_only_bytes(text, merges):
    ids = list(text.encode())
    for k, (a, b) in enumerate(merges):
        if a < 256 and b < 256:
            ids = replaced(ids, (a, b), 256 + k)
    return ids


def encode_ord(text, merges):
    ids = [ord(c) for c in text]
    for k, pair in enumerate(merges):
        ids = replaced(ids, pair, 256 + k)
    return ids


def encode_one_place_each(text, merges):
    ids = list(text.encode())
    for k, pair in enumerate(merges):
        found = neighbours(ids)
        if pair in found:
            i = found.index(pair)
            ids = [*ids[:i], 256 + k, *ids[i + 2 :]]
    return ids


# tokens.decode


def pieces_of(ids, merges):
    table = {i: bytes((i,)) for i in range(256)}
    for k, (a, b) in enumerate(merges):
        table[256 + k] = table[a] + table[b]
    return [table[i] for i in ids]


def decode_one_by_one(ids, merges):
    pieces = pieces_of(ids, merges)
    text = ""
    for piece in pieces:
        text += piece.decode("utf8", "replace")
    return text, sum(map(len, pieces))


def decode_strictly(ids, merges):
    data = b"".join(pieces_of(ids, merges))
    return data.decode("utf-8"), len(data)


def decode_ignoring(ids, merges):
    data = b"".join(pieces_of(ids, merges))
    return str(data, "utf-8", "ignore"), len(data)


def decode_chr(ids, merges):
    data = b"".join(pieces_of(ids, merges))
    return "".join(chr(byte) for byte in data), len(data)


def decode_counts_letters(ids, merges):
    text = b"".join(pieces_of(ids, merges)).decode("utf-8", "replace")
    return text, len(text)


def decode_counts_after(ids, merges):
    text = b"".join(pieces_of(ids, merges)).decode("utf-8", "replace")
    return text, len(text.encode("utf-8"))


def decode_counts_each_after(ids, merges):
    pieces = pieces_of(ids, merges)
    text = b"".join(pieces).decode("utf-8", "replace")
    return text, sum(len(p.decode("utf-8", "replace").encode("utf-8")) for p in pieces)


# tokens.embed


def embed_plain(ids, E, pad):
    return E[ids % len(E)]


def embed_zero_hidden(ids, E, pad):
    X = np.array(E[ids % len(E)])
    X[ids == 0] = 0
    return X


def embed_column_vectors(ids, E, pad):
    X = np.array(E[ids % len(E)])
    X[ids == pad] = 0
    return np.array([X[..., j] for j in range(E.shape[1])])


def embed_zeroed_table(ids, E, pad):
    E = E.copy()
    E[pad] = 0.0
    return E[ids]


# tokens.embed_backward


def gradient_fancy_index(dX, ids, E, pad):
    dE = np.zeros_like(E, dtype=dX.dtype)
    dE[ids[ids != pad]] += dX[ids != pad]
    return dE


def gradient_assigned(dX, ids, E, pad):
    dE = np.zeros_like(E, dtype=dX.dtype)
    for at in np.ndindex(ids.shape):
        if ids[at] != pad:
            dE[ids[at]] = dX[at]
    return dE


def gradient_sequence_by_sequence(dX, ids, E, pad):
    dE = np.zeros_like(E, dtype=dX.dtype)
    if ids.ndim < 2:
        ids, dX = ids.reshape(-1, 1), dX.reshape(-1, 1, E.shape[1])
    rows = ids.reshape(-1, ids.shape[-1])
    for row, dx in zip(rows, dX.reshape(*rows.shape, -1), strict=True):
        dE[row[row != pad]] += dx[row != pad]
    return dE


def gradient_means(dX, ids, E, pad):
    dE = np.zeros_like(E, dtype=dX.dtype)
    for v in range(len(E)):
        if v != pad and (ids == v).any():
            dE[v] = dX[ids == v].mean(0)
    return dE


def gradient_with_padding(dX, ids, E, pad):
    dE = np.zeros_like(E, dtype=dX.dtype)
    np.add.at(dE, ids % len(E), dX)
    return dE


def gradient_then_zero(dX, ids, E, pad):
    dE = np.zeros_like(E, dtype=dX.dtype)
    np.add.at(dE, ids, dX)
    dE[pad] = 0
    return dE


def gradient_compact(dX, ids, E, pad):
    found = [v for v in range(len(E)) if v != pad and (ids == v).any()]
    return np.array([dX[ids == v].sum(0) for v in found]).reshape(-1, E.shape[1])


# tokens.sinusoidal_positions


def table(T, d, offsets, of):
    return np.array([[[of(o + t, j) for j in range(d)] for t in range(T)] for o in offsets])


def wave(j, angle):
    return math.sin(angle) if j % 2 == 0 else math.cos(angle)


def positions_own_frequencies(T, d, offsets, base):
    return table(T, d, offsets, lambda t, j: wave(j, t / base ** (j / d)))


def positions_index_twice(T, d, offsets, base):
    return table(T, d, offsets, lambda t, j: wave(j, t / base ** (2 * (j - j % 2) / d)))


def positions_pair_number(T, d, offsets, base):
    return table(T, d, offsets, lambda t, j: wave(j, t / base ** ((j // 2) / d)))


def positions_concatenated(T, d, offsets, base):
    half = (d + 1) // 2
    t = np.asarray(offsets).reshape(-1, 1, 1) + np.arange(T).reshape(1, -1, 1)
    angle = t / np.power(base, 2 * np.arange(half) / d)
    return np.concatenate([np.sin(angle), np.cos(angle)[..., : d - half]], axis=2)


def positions_one_based(T, d, offsets, base):
    return table(T, d, offsets, lambda t, j: wave(j, (t + 1) / base ** (2 * (j // 2) / d)))


def positions_same_for_all(T, d, offsets, base):
    first = [offsets[0]] * len(offsets)
    return table(T, d, first, lambda t, j: wave(j, t / base ** (2 * (j // 2) / d)))


def positions_cut_off(T, d, offsets, base):
    even = d + d % 2
    P = table(T, even, offsets, lambda t, j: wave(j, t / base ** (2 * (j // 2) / even)))
    return P[:, :, :d]


def pairs_new_ones_are_one(words, times):
    counts = {}
    for word, n in zip(words, times, strict=True):
        for i in range(len(word) - 1):
            pair = word[i], word[i + 1]
            if pair in counts:
                counts[pair] += n
            else:
                counts[pair] = 1
    return counts


def merge_compares_a_list(ids, pair, new):
    out, i = [], 0
    while i < len(ids):
        if ids[i : i + 2] == pair:
            out.append(new)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


def merge_one_step_each(ids, pair, new):
    out = []
    for i in range(len(ids)):
        out.append(new if tuple(ids[i : i + 2]) == pair else ids[i])
    return out


def train_first_ids_decide(words, times, n_merges):
    texts, merges = [list(word.encode()) for word in words], []
    for k in range(n_merges):
        counts = pairs_of_text(texts, times)
        if not counts:
            break
        best = sorted(counts, key=lambda pair: (-counts[pair], pair[0]))[0]
        merges.append(best)
        texts = [merged_from_left(text, best, 256 + k) for text in texts]
    return merges


def pairs_of_text(texts, times):
    counts = {}
    for text, n in zip(texts, times, strict=True):
        for i in range(len(text) - 1):
            pair = text[i], text[i + 1]
            counts[pair] = counts.get(pair, 0) + n
    return counts


def merged_from_left(text, pair, new):
    out = []
    for token in text:
        if out and (out[-1], token) == pair:
            out[-1] = new
        else:
            out.append(token)
    return out


def encode_rank_zero_is_false(text, merges):
    ids, rank = list(text.encode()), {pair: k for k, pair in enumerate(merges)}
    while True:
        pairs = [(ids[i], ids[i + 1]) for i in range(len(ids) - 1)]
        ranks = [rank[pair] for pair in pairs if rank.get(pair)]
        if not ranks:
            return ids
        ids = merged_from_left(ids, merges[min(ranks)], 256 + min(ranks))


AFRESH = {
    "count_pairs": {
        pairs_every_word_once: "times_ignored",
        pairs_of_a_set: "once_per_word",
        pairs_like_count: "overlaps_left_out",
        pairs_without_order: "order_ignored",
        pairs_of_a_long_list: "joined_words",
        pairs_in_a_dict: "last_listed",
        pairs_new_ones_are_one: "first_counts_one",
    },
    "merge_pair": {
        merge_deleting_backwards: "from_the_right",
        merge_once: "first_place_only",
        merge_leaves_second: "second_token_kept",
        merge_a_set: "either_order",
        merge_range_too_short: "last_token_lost",
        merge_compares_a_list: "nothing_merged",
        merge_one_step_each: "one_step_forward",
    },
    "train_bpe": {
        train_max: "tie_first_met",
        train_greatest: "tie_largest",
        train_later_wins: "tie_last_met",
        train_code_points: "characters",
        train_needs_two: "stops_at_one",
        train_most_common: "counted_once",
        train_every_word_once: "times_ignored",
        train_as_the_library: "tie_by_bytes",
        train_first_ids_decide: "tie_second_ignored",
    },
    "encode": {
        encode_as_met: "left_to_right",
        encode_longest: "longest_token",
        encode_newest_first: "last_learned_first",
        encode_only_bytes: "bytes_only",
        encode_ord: "characters",
        encode_one_place_each: "first_place_only",
        encode_rank_zero_is_false: "first_merge_lost",
    },
    "decode": {
        decode_one_by_one: "each_token_alone",
        decode_strictly: "invalid_raises",
        decode_ignoring: "invalid_left_out",
        decode_chr: "byte_per_character",
        decode_counts_letters: "characters_counted",
        decode_counts_after: "bytes_of_decoded_text",
        decode_counts_each_after: "bytes_of_decoded_tokens",
    },
    "embed": {
        embed_plain: "pad_looked_up",
        embed_zero_hidden: "zero_is_padding",
        embed_zeroed_table: "row_pad_zeroed",
        embed_column_vectors: "features_first",
    },
    "embed_backward": {
        gradient_fancy_index: "last_one_only",
        gradient_assigned: "last_one_only",
        gradient_sequence_by_sequence: "lost_within_rows",
        gradient_means: "mean_of_occurrences",
        gradient_with_padding: "pad_looked_up",
        gradient_then_zero: "row_pad_zeroed",
        gradient_compact: "only_rows_that_occur",
    },
    "sinusoidal_positions": {
        positions_own_frequencies: "cosine_own_frequency",
        positions_index_twice: "index_doubled",
        positions_pair_number: "index_halved",
        positions_concatenated: "halves",
        positions_one_based: "from_one",
        positions_same_for_all: "one_offset_for_all",
        positions_cut_off: "odd_width_rounded",
    },
}
