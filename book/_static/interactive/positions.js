import { compute } from "./numbers/positions.js";
import { BLUE, ORANGE, TEXT, axes, dots, drawing, label } from "./svg.js";
import { legend, line, number, plural, rect, side, ticks, wholeTicks } from "./svg.js";

const LEFT = 58;

/** The table: blue above 0, orange below, the stronger the larger; the chosen row is framed. */
function tablePanel({ table, row }, width) {
  const [top, T, D] = [26, table.length, table[0].length];
  const [wide, high] = [(width - LEFT - 12) / D, Math.min(Math.max(220 / T, 4), 18)];
  let body = label(LEFT + (D * wide) / 2, 14, `columns of PE, 0 to ${D - 1}`);
  body += side(top + (T * high) / 2, "position t");
  table.forEach((values, t) => {
    values.forEach((value, column) => {
      const look = { "fill-opacity": Math.abs(value).toFixed(2) };
      const color = value < 0 ? ORANGE : BLUE;
      body += rect(LEFT + column * wide, top + t * high, wide - 0.5, high - 0.5, color, look);
    });
  });
  for (const [t, text] of wholeTicks(0, T - 1)) {
    body += label(LEFT - 6, top + (t + 0.5) * high + 4, text, "end");
  }
  const frame = { stroke: TEXT, "stroke-width": 2 };
  body += rect(LEFT - 1, top + row * high - 1, D * wide + 2, high + 1, "none", frame);
  return { body, bottom: top + T * high };
}

function draw(result, width) {
  const { dots: products, row } = result;
  const T = products.length;
  const above = tablePanel(result, width);
  const names = [["PE above 0", BLUE, "box"], ["below 0", ORANGE, "box"], ["dot product", BLUE]];
  const key = legend(names, LEFT, above.bottom + 22, width - 60);
  const top = key.bottom + 14;
  const [low, high] = [Math.min(0, ...products), Math.max(...products)];
  const box = axes({
    left: LEFT,
    top,
    width: width - 72,
    height: 150,
    x: { range: [0, T - 1], ticks: wholeTicks(0, T - 1), label: "position s" },
    y: { range: [low, high], ticks: ticks(low, high), label: `PE${sub(row)} · PEₛ` },
  });
  const points = products.map((value, s) => [box.px(s), box.py(value)]);
  const curve = line(points, BLUE) + dots(points, BLUE, 2) + dots([points[row]], ORANGE, 5);
  return drawing(width, top + 192, above.body + key.body + box.body + curve);
}

const sub = (n) => String(n).replace(/./g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

function say({ dots: products, row, table, shortest, longest }) {
  const others = products.map((value, s) => (s === row ? -Infinity : value));
  const most = Math.max(...others);
  const place = others.indexOf(most);
  const away = Math.abs(place - row);
  const waves = table[0].length > 2 ? ` to ${number(longest)}` : "";
  return (
    `Row ${row} has the length ${number(Math.sqrt(products[row]))} and the dot product ` +
    `${number(products[row])} with itself. Of the others row ${place}, ` +
    `${plural(away, "position")} away, has the largest: ${number(most)}. ` +
    `Wavelengths: ${number(shortest)}${waves} positions.`
  );
}

export default {
  title: "Sinusoidal positions and their dot products",
  examples: {
    "Base 10 000": { T: 32, D: 16, base: 10000, row: 12 },
    "Base 1: 44 looks like 0": { T: 50, D: 16, base: 1, row: 0 },
    "One clock hand, D = 2": { T: 40, D: 2, base: 10000, row: 10 },
    "By hand, D = 4": { T: 3, D: 4, base: 10000, row: 1 },
  },
  controls: [
    { key: "row", label: "Position t of the framed row", min: 0, max: 59 },
    { key: "D", label: "Width D", min: 1, max: 64 },
    { key: "T", label: "Positions T", min: 2, max: 60 },
    {
      key: "base",
      label: "Base b",
      options: [1, 10, 100, 1000, 10000, 100000].map((base) => [base, base]),
    },
  ],
  limits: ({ T }) => ({ row: T - 1 }),
  compute,
  draw,
  say,
};
