import { compute, show } from "./numbers/bpe.js";
import { BLUE, ORANGE, TEXT, drawing, label, plural, rect } from "./svg.js";

const EM = 8; // width of a letter
const MONO = { "font-family": "monospace", "font-size": 13 };
const widthOf = (text) => EM * Array.from(text).length;

/** The tokens as boxes; those of the last merge are orange, those of earlier ones blue. */
function tokensPanel({ tokens, history }, width) {
  const newest = history.at(-1)?.pair.join("");
  let [x, y, body] = [4, 22, ""];
  for (const piece of tokens) {
    for (const token of piece) {
      const text = show(token);
      const box = widthOf(text) + 6;
      if (x > 4 && x + box > width - 4) [x, y] = [4, y + 28];
      const merged = token.length > 1;
      const stroke = token === newest ? ORANGE : merged ? BLUE : TEXT;
      body += rect(x, y - 15, box, 21, "none", { stroke, "stroke-width": merged ? 2 : 1, rx: 3 });
      body += label(x + box / 2, y, text, "middle", MONO);
      x += box + 2;
    }
    x += 6; // pairs do not cross from one piece to the next
  }
  return { body, bottom: y + 10 };
}

function pairsPanel({ next }, top, width) {
  const best = next.slice(0, 7);
  const names = best.map(({ pair }) => pair.map(show).join(" + "));
  const left = Math.min(Math.max(60, ...names.map(widthOf)) + 14, width / 2);
  let body = label(4, top + 16, "pairs, by number of occurrences", "start");
  best.forEach(({ count }, i) => {
    const y = top + 31 + 22 * i;
    const length = Math.max(3, ((width - left - 50) * count) / best[0].count);
    body += label(left - 8, y + 12, names[i], "end", MONO);
    body += rect(left, y, length, 16, i ? BLUE : ORANGE);
    body += label(left + length + 6, y + 12, count, "start");
  });
  return { body, bottom: top + 30 + 22 * best.length };
}

function draw(result, width) {
  const above = tokensPanel(result, width);
  const below = pairsPanel(result, above.bottom + 8, width);
  return drawing(width, below.bottom + 4, above.body + below.body);
}

const plus = (pair) => `“${pair.map(show).join("” + “")}”`;

function say({ history, next, count, bytes }) {
  const last = history.at(-1);
  const found = last && ` ${plus(last.pair)} came last and occurred ${plural(last.count, "time")}.`;
  const ties = next.filter((other) => other.count === next[0].count).length;
  const tie = ties > 1 ? `, the smallest of ${ties} pairs that are equally frequent` : "";
  const coming = next.length
    ? `Next: ${plus(next[0].pair)}, ${plural(next[0].count, "time")}${tie}.`
    : "No pair is left.";
  const size = `${plural(count, "token")} for ${plural(bytes, "byte")}`;
  return `After ${plural(history.length, "merge")}: ${size}.${found ?? ""} ${coming}`;
}

export default {
  title: "Byte pair encoding of your own text, merge by merge",
  examples: {
    "Words of the chapter": { text: "hat\nhat\nhat\nthat\nthat\nthe\nthe\nthe\nthe", merges: 3 },
    Ties: { text: "abcdabcd", merges: 0 },
    "Overlaps: aaaa": { text: "aaaa aaa", merges: 1 },
    "Bytes: Größe 😭": { text: "Größe, größer, am größten 😭", merges: 4 },
  },
  controls: [
    { key: "text", label: "Text, up to 400 characters", rows: 3 },
    { key: "merges", label: "Merges", min: 0, max: 60 },
  ],
  compute,
  draw,
  say,
  read: ({ tokens }) => `Tokens: ${tokens.map((piece) => piece.map(show).join("|")).join(" ")}`,
};
