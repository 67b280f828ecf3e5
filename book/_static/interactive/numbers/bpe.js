// Byte pair encoding, every merge counted afresh. A token is a string of bytes: one character,
// of code 0 to 255, for each byte. Strings compare like bytes then.

const SPACE = "\\p{White_Space}";
/** The pieces of GPT-4's tokenizer, as in seqlib.text.GPT4_PATTERN. */
const PIECE = new RegExp(
  [
    "'(?:[sStTmMdD\\u017f]|[rR][eE]|[vV][eE]|[lL][lL])",
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+",
    "\\p{N}{1,3}",
    " ?[^\\p{White_Space}\\p{L}\\p{N}]+[\\r\\n]*",
    `${SPACE}+$`,
    `${SPACE}*[\\r\\n]+`,
    `${SPACE}+(?!\\P{White_Space})`,
    `${SPACE}+`,
    "[^]",
  ].join("|"),
  "gu",
);

export const pretokenize = (text) => text.match(PIECE) ?? [];

export function toBytes(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
}

/** Join a pair wherever it stands, from the left: a, a, a becomes aa, a. */
export function mergePair(word, [left, right]) {
  const merged = [];
  for (const token of word) {
    if (merged.at(-1) === left && token === right) merged[merged.length - 1] += right;
    else merged.push(token);
  }
  return merged;
}

/** The pairs of neighbours, most frequent first; of equal counts the smaller bytes first. */
export function countPairs(words) {
  const counts = new Map();
  for (const { tokens, times } of words) {
    for (let i = 1; i < tokens.length; i++) {
      const key = `${tokens[i - 1].length} ${tokens[i - 1]}${tokens[i]}`;
      const found = counts.get(key) ?? { pair: [tokens[i - 1], tokens[i]], count: 0 };
      found.count += times;
      counts.set(key, found);
    }
  }
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return [...counts.values()].sort(
    (a, b) =>
      b.count - a.count || order(a.pair[0], b.pair[0]) || order(a.pair[1], b.pair[1]),
  );
}

export function compute({ text, merges }) {
  const pieces = pretokenize(text);
  const times = new Map();
  for (const piece of pieces) times.set(piece, (times.get(piece) ?? 0) + 1);
  let words = [...times].map(([piece, n]) => ({ piece, times: n, tokens: toBytes(piece) }));
  const history = [];
  let pairs = countPairs(words);
  while (history.length < merges && pairs.length) {
    const { pair, count } = pairs[0];
    history.push({ pair, count });
    words = words.map((word) => ({ ...word, tokens: mergePair(word.tokens, pair) }));
    pairs = countPairs(words);
  }
  const tokensOf = new Map(words.map((word) => [word.piece, word.tokens]));
  const tokens = pieces.map((piece) => tokensOf.get(piece));
  return {
    tokens,
    history,
    next: pairs,
    count: tokens.flat().length,
    bytes: tokens.flat().join("").length,
  };
}

/** Show a token: text where its bytes are text, the bytes in hexadecimal where not. */
export function show(token) {
  const bytes = Uint8Array.from(token, (byte) => byte.charCodeAt(0));
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text
      .replace(/\n/g, "⏎")
      .replace(/\p{White_Space}/gu, "␣")
      .replace(/\p{C}/gu, "·");
  } catch {
    return Array.from(bytes, (byte) => `<${byte.toString(16).toUpperCase()}>`).join("");
  }
}
