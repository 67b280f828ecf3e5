import { CONTENT, bias, effect, gatedFigure } from "./gates.js";

const start = { content: CONTENT, marks: "2 8", follow: 2, br: 0, wr: 0, bz: 0, wz: 0, v: 1 };

export default gatedFigure("gru", {
  title: "Gates of a GRU: what is kept and written",
  examples: {
    "Writes at a mark, keeps between": { ...start, bz: -5, wz: 10, v: 0, follow: 8 },
    "All biases 0": start,
    "Keeps 95 %": { ...start, bz: -3 },
    "Starts anew at a mark": { ...start, bz: -1, wz: 6, br: 4, wr: -10, v: 2 },
  },
  controls: [
    bias("bz", "Update gate z"),
    effect("wz", "Update gate z"),
    bias("br", "Reset gate r"),
    effect("wr", "Reset gate r"),
  ],
});
