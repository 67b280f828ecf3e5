"""The known mistakes on the way from logits to the distribution of the next token."""

from seqlib.exercises.record import Misconception

MISCONCEPTIONS = (
    Misconception(
        "temperature_multiplied",
        "The logits are multiplied by the temperature.",
        "decoder#temperature",
        "our own: a high temperature taken for a sharp distribution",
    ),
    Misconception(
        "temperature_ignored",
        "The temperature has no influence on the probabilities.",
        "decoder#temperature",
        "our own: the probabilities divided by it, and normalised again",
        also=("temperature_after_softmax",),
    ),
    Misconception(
        "over_batch",
        "Softmax runs over the rows: the columns sum to 1.",
        "decoder#distribution",
        "our own: axis 0 in place of the last one",
    ),
    Misconception(
        "no_shift",
        "Without subtracting the largest logit exp overflows, and inf / inf is NaN.",
        "decoder#temperature",
        "ahmedfgad/NumPyCNN#13",
    ),
    Misconception(
        "zero_divides",
        "At temperature 0 the logits are divided by 0.",
        "decoder#temperature",
        "karpathy/nanoGPT#738",
    ),
    Misconception(
        "greedy_highest_id",
        "Of equal best tokens temperature 0 takes the one with the highest id.",
        "decoder#temperature",
        "our own: the last entry of a sorted array",
    ),
    Misconception(
        "greedy_shared",
        "Equal best tokens share the probability at temperature 0.",
        "decoder#temperature",
        "our own: a comparison with the maximum",
    ),
    Misconception(
        "top_k_smallest",
        "top_k keeps the least probable tokens.",
        "decoder#top-k",
        "our own: argsort without the minus sign",
    ),
    Misconception(
        "top_k_one_less",
        "top_k keeps one token less than k.",
        "decoder#top-k",
        "our own: strictly above the k-th logit",
    ),
    Misconception(
        "top_k_ties_kept",
        "top_k keeps every token whose logit equals the k-th one, so more than k.",
        "decoder#top-k",
        "our own: a comparison with the k-th logit",
    ),
    Misconception(
        "top_k_logits_0",
        "The logits of the tokens that top_k leaves out are set to 0, which is a logit like "
        "any other.",
        "decoder#top-k",
        "our own: 0 in place of -inf",
    ),
    Misconception(
        "top_k_above_V",
        "A top_k above the size of the vocabulary ends in an error.",
        "decoder#top-k",
        "TransformerLensOrg/TransformerLens#1347",
    ),
    Misconception(
        "top_p_crossing_dropped",
        "The token whose probability makes the sum reach top_p is left out.",
        "decoder#top-p",
        "rasbt/reasoning-from-scratch#164",
    ),
    Misconception(
        "top_p_one_more",
        "top_p keeps one token more than it needs to reach p.",
        "decoder#top-p",
        "our own: the mask of the dropped tokens shifted twice",
    ),
    Misconception(
        "top_p_threshold",
        "top_p is compared with each probability by itself, not with a sum.",
        "decoder#top-p",
        "our own: min-p in place of top-p",
    ),
    Misconception(
        "top_p_in_id_order",
        "The probabilities are summed in the order of the ids, not from the most probable on.",
        "decoder#top-p",
        "our own: cumsum without sort",
    ),
    Misconception(
        "sorted_result",
        "With top_p the probabilities come back in sorted order, not in the order of the ids.",
        "decoder#top-p",
        "fishaudio/fish-speech#1171",
    ),
    Misconception(
        "top_p_of_original",
        "top_p looks at the probabilities before top_k, which are not renormalised.",
        "decoder#top-p",
        "EleutherAI/gpt-neox#1250",
        also=("top_p_before_top_k",),
    ),
    Misconception(
        "not_renormalised",
        "What is left after a cut is not divided by its sum.",
        "decoder#distribution",
        "our own: the last step forgotten",
    ),
    Misconception(
        "allowed_ignored",
        "Tokens that are not allowed keep their probability.",
        "decoder#distribution",
        "our own: the argument is not used",
    ),
    Misconception(
        "polarity",
        "True in allowed is taken for forbidden.",
        "decoder#distribution",
        "rasbt/LLMs-from-scratch#1061",
    ),
    Misconception(
        "forbidden_as_0",
        "Tokens that are not allowed get the logit 0, with which they can still be drawn.",
        "decoder#distribution",
        "our own: logits times allowed",
    ),
    Misconception(
        "forbidden_last",
        "Tokens that are not allowed are taken out last, so they fill places of top_k and "
        "top_p.",
        "decoder#distribution",
        "our own: the last step of the sampler",
    ),
    Misconception(
        "forbidden_last_kept",
        "Tokens that are not allowed get the probability 0 in the end, and the rest does not "
        "sum to 1.",
        "decoder#distribution",
        "our own: probabilities times allowed",
    ),
)
