// Numbers, as sparq_sim/report/html/packing.py packs them, and as texts

function unpacked(packed) {
  if (!packed) return null;
  const count = packed.shape.reduce((product, size) => product * size, 1);
  if ("same" in packed) return new Float32Array(count).fill(packed.same);
  const bytes = Uint8Array.from(atob(packed.bytes), (letter) => letter.charCodeAt(0));
  if (packed.kind === "f4") return new Float32Array(bytes.buffer);
  const codes = packed.kind === "u1" ? bytes : new Uint16Array(bytes.buffer);
  const absent = packed.kind === "u1" ? 255 : 65535;
  return Float32Array.from(codes, (k) => (k === absent ? NaN : packed.low + k * packed.step));
}

const unpackedAll = (table) =>
  Object.fromEntries(Object.entries(table).map(([name, packed]) => [name, unpacked(packed)]));

function extremes(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low < high ? [low, high] : low === high ? [low - 0.5, high + 0.5] : [0, 1];
}

const shown = (number) => {
  if (!Number.isFinite(number)) return "–";
  const size = Math.abs(number);
  if (size && (size < 1e-3 || size >= 1e6)) return number.toExponential(1);
  return String(Number(number.toPrecision(size >= 1000 ? 6 : 3))).replace("-", "\u2212");
};
