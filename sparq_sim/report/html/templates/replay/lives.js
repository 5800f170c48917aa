// The life of a query on a network, in its bar and in words

/** How each phase is drawn; whatever else a source may call one is drawn as waiting. */
const PHASES = {
  asleep: { fill: "--mark-asleep", alpha: 0.45 },
  queue: { fill: "--mark-queue" },
  backoff: { fill: "--mark-backoff" },
  measure: { fill: "--mark-measure" },
  downlink: { fill: "--mark-downlink" },
  uplink: { fill: "--mark-uplink" },
  lost: { fill: "--mark-failed" },
};
const OTHER = { fill: "--mark-waiting" };
const LEAST = 2.5; // pixels: of a phase that is shorter, a mark remains

/** Say where the bar of a query ends: its arrival, or later if its phases need more room. */
function lifeEnd(i, area) {
  const { replies, lives: life } = state.film;
  const [x, end] = [replies.asked_at[i], replies.arrived_at[i]].map(area.x);
  if (end - x > 6 * LEAST + 4) return end;
  const counts = new Map();
  for (const k of life.of.get(i)) counts.set(life.place[k], (counts.get(life.place[k]) ?? 0) + 1);
  return Math.max(end, x + Math.min(6, Math.max(...counts.values())) * LEAST + 4);
}

/** Draw the life of a query: a strip for each of its points, with its phases one after another. */
function drawLife(pen, i, area, y, { end, tall: narrow, alpha }) {
  const { replies, lives: life } = state.film;
  const asked = replies.asked_at[i];
  const x = area.x(asked);
  const size = Math.max(1, Math.round(replies.size[i]));
  const strips = Math.min(size, life.strips[replies.source[i]]);
  const tall = strips === 1 ? 7 : narrow;
  const top = y - (strips * tall) / 2;
  const service = x + (area.x(replies.arrived_at[i]) - x) * replies.served[i];
  drawWaiting(pen, x, service, y);
  pen.fillStyle = colour("--mark-waiting");
  pen.fillRect(service, y - 0.5, end - service, 1);
  const groups = Array.from({ length: strips }, () => []);
  for (const k of life.of.get(i)) groups[Math.floor((life.place[k] * strips) / size)].push(k);
  groups.forEach((group, strip) => {
    const marks = [];
    for (const k of group) {
      const look = PHASES[life.names[life.phase[k]]] ?? OTHER;
      const from = area.x(asked + life.start[k]);
      const to = Math.min(end, area.x(asked + life.start[k] + life.length[k]));
      if (to - from < LEAST) marks.push({ look, left: from });
      else fillPhase(pen, look, from, to - from, top + strip * tall, tall, alpha);
    }
    // Short ones side by side, the last beside the mark of the end, lest they hide each other.
    let free = x;
    for (const each of marks) {
      each.left = Math.max(each.left, free);
      free = each.left + LEAST;
    }
    let right = end - 4;
    for (const each of marks.reverse()) {
      each.left = Math.max(x, Math.min(each.left, right - LEAST));
      fillPhase(pen, each.look, each.left, LEAST, top + strip * tall, tall, alpha);
      right = each.left;
    }
  });
}

function fillPhase(pen, look, left, wide, top, tall, alpha) {
  pen.globalAlpha = alpha * (look.alpha ?? 1);
  pen.fillStyle = colour(look.fill);
  pen.fillRect(left, top, wide, tall === 7 ? 7 : tall - 1);
  pen.globalAlpha = alpha;
}

/** Tell the phases of a query, a line for each of its points, with their durations. */
function tellLife(i) {
  const { replies, lives: life } = state.film;
  if (!life.of.has(i)) return [];
  const size = Math.round(replies.size[i]);
  const points = new Map();
  for (const k of life.of.get(i)) {
    if (!points.has(life.place[k])) points.set(life.place[k], new Map());
    const told = points.get(life.place[k]);
    const [count, lasted] = told.get(life.phase[k]) ?? [0, 0];
    told.set(life.phase[k], [count + 1, lasted + life.length[k]]);
    told.node = life.nodes[life.node[k]];
  }
  const lines = [...points.values()].map((told) => {
    const parts = [...told].map(([phase, [count, lasted]]) => {
      const words = size > 1 ? life.names[phase] : life.words[phase];
      return `${words}${count > 1 ? ` (${count} times)` : ""} ${shown(lasted)}`;
    });
    return size > 1 ? `${told.node}: ${parts.join(", ")}` : [told.node, ...parts].join("\n");
  });
  const most = 6;
  return lines.length > most
    ? [...lines.slice(0, most), `and ${lines.length - most} more points`]
    : lines;
}

/** Say in which phase the queries on their way are now. */
function tellNow(now) {
  const { replies, lives: life } = state.film;
  const counts = new Map();
  life.journey.forEach((journey, k) => {
    const started = replies.asked_at[journey] + life.start[k];
    if (started > now || started + life.length[k] <= now) return;
    const name = life.names[life.phase[k]];
    counts.set(name, (counts.get(name) ?? 0) + 1);
  });
  return [...counts].map(([name, count]) => `${count} ${name}`).join(", ");
}
