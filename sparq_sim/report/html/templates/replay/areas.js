// What the timeline counts instead of drawing each query, and when nobody could be asked

const SERVED = { service: { fill: "--mark-service" }, transit: { fill: "--mark-transit" } };
const PILED = { fill: "--mark-waiting", alpha: 0.4 };
const UNASKED = ["unanswered", "duplicate", "stray"];
const ENDED = [
  ["--mark-answered", (fate) => fate === "answered"],
  ["--mark-failed", (fate) => fate !== "answered" && !UNASKED.includes(fate)],
  ["--mark-waiting", (fate) => UNASKED.includes(fate)],
];

/** Unpack the counts of a source that has too many queries for bars. */
function readArea(packed) {
  if (!packed) return null;
  const flying = unpacked(packed.flying);
  const [shares, ended] = [unpacked(packed.shares), unpacked(packed.ended)];
  const part = (table, k) => table.subarray(k * flying.length, (k + 1) * flying.length);
  const groups = ENDED.map(([, belongs]) => {
    const own = packed.fates.map((fate, k) => (belongs(fate) ? part(ended, k) : null));
    return flying.map((_, bin) => own.reduce((sum, each) => sum + (each ? each[bin] : 0), 0));
  });
  return {
    ...packed,
    flying,
    shares: packed.names.map((_, k) => part(shares, k)),
    ended: packed.fates.map((_, k) => part(ended, k)),
    groups,
    most: extremes(flying)[1],
    // What is open when the play ends would dwarf the others.
    mostEnded: Math.max(1, ...flying.map((_, bin) => groups[0][bin] + groups[1][bin])),
  };
}

/** Draw how many points are on their way, by phase, and below it how many end, by fate. */
function drawArea(pen, area, { tops, highs }, source, alpha) {
  const density = state.film.lanes.areas[source];
  const { width, flying, names, shares, groups } = density;
  const base = tops[source] + Math.round(highs[source] * 0.7);
  const [up, down] = [base - tops[source], tops[source] + highs[source] - base - 1];
  const [begin, until] = area.limits;
  const first = Math.max(0, Math.floor(begin / width) - 1);
  const last = Math.min(flying.length - 1, Math.ceil(until / width));
  for (let bin = first; bin <= last; bin += 1) {
    // Whole pixels, lest a seam shows between bins.
    const [left, right] = [bin, bin + 1].map((edge) => Math.round(area.x(edge * width)));
    let y = base;
    const pile = (look, part) => {
      const high = (part * flying[bin] * up) / density.most;
      pen.globalAlpha = alpha * (look.alpha ?? 1);
      pen.fillStyle = colour(look.fill);
      pen.fillRect(left, y - high, right - left, high);
      y -= high;
    };
    const all = Math.max(1, shares.reduce((sum, each) => sum + each[bin], 0));
    const known = shares.map((each) => each[bin] / all);
    names.forEach((name, k) => pile(SERVED[name] ?? PHASES[name] ?? OTHER, known[k]));
    pile(PILED, 1 - known.reduce((sum, each) => sum + each, 0));
    y = base + 1;
    pen.globalAlpha = alpha;
    groups.forEach((counts, k) => {
      const room = tops[source] + highs[source] - y;
      const high = Math.min(room, (counts[bin] * down) / density.mostEnded);
      pen.fillStyle = colour(ENDED[k][0]);
      pen.fillRect(left, y, right - left, high);
      y += high;
    });
    if (alpha < 1 || !flying[bin]) continue;
    sheets.timeline.spots.push({
      x: (left + right) / 2,
      y: tops[source] + highs[source] / 2,
      half: (right - left) / 2,
      reach: highs[source] / 2,
      queries: () => findWithin(source, bin * width, (bin + 1) * width),
      text: () => tellBin(source, bin),
    });
  }
  pen.globalAlpha = alpha;
  pen.fillStyle = colour("--line");
  pen.fillRect(area.left, base, area.width, 1);
}

/** Say beside an area how many its highest points stand for. */
function drawAreaScale(pen, { tops, highs }, source, gutter) {
  const { most, mostEnded } = state.film.lanes.areas[source];
  pen.fillStyle = colour("--muted");
  pen.textAlign = "right";
  pen.textBaseline = "top";
  pen.fillText(shown(Math.round(most)), gutter - 6, tops[source]);
  pen.textBaseline = "bottom";
  pen.fillText(shown(Math.round(mostEnded)), gutter - 6, tops[source] + highs[source]);
  pen.textAlign = "left";
}

/** Find the queries of a source that were on their way at some time between two moments. */
function findWithin(source, from, to) {
  const { replies } = state.film;
  const found = [];
  replies.source.forEach((of, i) => {
    if (of === source && replies.asked_at[i] < to && replies.arrived_at[i] >= from) found.push(i);
  });
  return found;
}

function tellBin(source, bin) {
  const { areas, sources } = state.film.lanes;
  const { width, flying, names, shares, fates, ended } = areas[source];
  const count = (number) => `${number} point${number === 1 ? "" : "s"}`;
  const rest = 1 - shares.reduce((sum, each) => sum + each[bin], 0);
  const parts = [...names.map((name, k) => [name, shares[k][bin]]), ["waiting", rest]]
    .filter(([, share]) => share >= 0.005)
    .map(([name, share]) => `${name} ${Math.round(100 * share)} %`);
  const ends = fates
    .map((fate, k) => [fate, Math.round(ended[k][bin])])
    .filter(([, number]) => number)
    .map(([fate, number]) => `${number} ${fate}`);
  return [
    `${sources[source]}, ${shown(bin * width)} to ${shown((bin + 1) * width)}`,
    `${count(Math.round(flying[bin]))} on their way`,
    ...(parts.length ? [parts.join(", ")] : []),
    ...(ends.length ? [`arrived: ${ends.join(", ")}`] : []),
  ].join("\n");
}

/** Shade when nobody could be asked, and name it where there is room. */
function drawOutages(pen, area, { tops, highs }) {
  const { outages, sources } = state.film.lanes;
  outages.forEach((spans, source) => {
    const [top, high] = [tops[source] - GAP / 2 + 1, highs[source] + GAP - 1];
    for (const [from, to] of spans) {
      const left = Math.max(area.left - 6, area.x(from));
      const right = Math.min(area.left + area.width + 6, area.x(to));
      if (right <= left) continue;
      pen.save();
      pen.beginPath();
      pen.rect(left, top, right - left, high);
      pen.clip();
      pen.fillStyle = pen.strokeStyle = colour("--mark-failed");
      pen.globalAlpha = 0.1;
      pen.fillRect(left, top, right - left, high);
      pen.globalAlpha = 0.25;
      pen.lineWidth = 1;
      pen.beginPath();
      // The hatch moves with time, not with the window.
      const shift = ((area.x(0) % 8) + 8) % 8;
      for (let x = left - high - (left % 8) + shift - 8; x < right; x += 8) {
        pen.moveTo(x, top + high);
        pen.lineTo(x + high, top);
      }
      pen.stroke();
      pen.globalAlpha = 1;
      pen.font = pen.font.replace("12px", "11px");
      if (right - left > pen.measureText("outage").width + 8) {
        pen.textBaseline = "bottom";
        pen.fillText("outage", left + 4, top + high - 1);
      }
      pen.restore();
      sheets.timeline.spots.push({
        x: (left + right) / 2,
        y: top + high / 2,
        half: (right - left) / 2,
        reach: high / 2,
        behind: true,
        text: () => `${sources[source]}: outage from ${shown(from)} to ${shown(to)}`,
      });
    }
  });
}
