import { CONTENT, bias, effect, gatedFigure } from "./gates.js";

const zero = { bf: 0, wf: 0, bi: 0, wi: 0, bo: 0, v: 0 };
const start = { content: CONTENT, marks: "2 8", follow: 2, ...zero };

export default gatedFigure("lstm", {
  title: "Gates of an LSTM: what is kept and written",
  examples: {
    "Writes at a mark, keeps between": {
      ...start, bf: 5, wf: -10, bi: -5, wi: 10, bo: 2, follow: 8,
    },
    "All biases 0": start,
    "Forget bias 3": { ...start, bf: 3 },
    "Adds everything up": { ...start, bf: 6, bi: 6, bo: 2 },
  },
  controls: [
    bias("bf", "Forget gate f"),
    effect("wf", "Forget gate f"),
    bias("bi", "Input gate i"),
    effect("wi", "Input gate i"),
    bias("bo", "Output gate o"),
  ],
});
