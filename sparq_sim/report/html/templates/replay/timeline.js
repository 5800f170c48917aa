// The timeline of queries

const GAP = 10; // pixels between the rows of two sources

/** How each fate is marked; whatever else may become of a query is marked as invalid. */
const ENDS = {
  answered: ["circle", { size: 3, fill: "--mark-answered" }],
  late: ["circle", { size: 3, stroke: "--mark-failed" }],
  lost: ["cross", { size: 3, stroke: "--mark-failed" }],
  invalid: ["square", { size: 3.5, fill: "--mark-failed" }],
  unanswered: ["tick", { size: 4.5, stroke: "--mark-waiting" }],
};
for (const fate of ["outage", "budget", "access", "rate"]) {
  ENDS[fate] = ["triangle", { size: 3.75, fill: "--mark-failed" }];
}
for (const fate of ["duplicate", "stray"]) {
  ENDS[fate] = ["circle", { size: 1.75, fill: "--mark-waiting" }];
}

function drawEnd(pen, fate, x, y) {
  const [shape, { size, fill, stroke }] = ENDS[fate] ?? ENDS.invalid;
  mark(pen, shape, x, y, {
    size,
    fill: fill && colour(fill),
    stroke: stroke && colour(stroke),
  });
}

/** Lay out the rows of the sources: where each begins, how high it is, and how high its lanes. */
function layOutLanes({ counts, styles, strips }) {
  // Points of one query are strips of its bar, thinner where there are many bars.
  const rows = strips.reduce((sum, count, i) => sum + count * counts[i], 0);
  const tall = rows > 60 ? 3 : 5;
  const lanes = strips.map((count, i) => {
    if (styles[i] === "thin") return 3;
    return count > 1 ? tall * count + 5 : 12;
  });
  const highs = styles.map((style, i) => (style === "area" ? 72 : Math.max(12, counts[i] * lanes[i])));
  const tops = [];
  let down = 8;
  for (const high of highs) {
    tops.push(down);
    down += high + GAP;
  }
  return { tall, lanes, highs, tops, down };
}

function drawTimeline(at) {
  const { film } = state;
  const sheet = sheets.timeline;
  if (!sheet.canvas.clientWidth) return; // It is folded away.
  const { sources } = film.lanes;
  const rows = layOutLanes(film.lanes);
  const { pen, width } = prepared(sheet, Math.max(64, rows.down + 34));
  const gutter = Math.min(
    Math.max(60, width * 0.2),
    Math.max(30, ...sources.map((name) => pen.measureText(name).width)) + 18,
  );
  const [before, after] = film.window;
  const begin = Math.max(0, at.now - before);
  const box = { left: gutter, top: 4, width: width - gutter - 10, height: rows.down - 4 };
  const area = plot(box, [begin, begin + before + after], [0, 1]);
  axes(pen, area, { across: film.labels.time, ticksUp: false });
  drawSources(pen, rows, { gutter, width });
  pen.save();
  pen.beginPath();
  pen.rect(area.left - 6, 0, area.width + 12, rows.down + 4);
  pen.clip();
  drawOutages(pen, area, rows);
  const now = area.x(at.now);
  for (const [from, to, alpha] of [[-Infinity, now + 0.5, 1], [now + 0.5, Infinity, 0.25]]) {
    pen.save();
    pen.beginPath();
    const [left, right] = [Math.max(area.left - 6, from), Math.min(area.left + area.width + 6, to)];
    pen.rect(left, 0, Math.max(0, right - left), rows.down + 4);
    pen.clip();
    pen.globalAlpha = alpha;
    film.lanes.areas.forEach((density, i) => density && drawArea(pen, area, rows, i, alpha));
    drawQueries(pen, area, rows, { left, right, alpha });
    pen.restore();
  }
  drawBrushedQueries(pen, area, rows);
  pen.strokeStyle = colour("--mark-now");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(now, 0);
  pen.lineTo(now, rows.down);
  pen.stroke();
  pen.restore();
  showTipOfCursor(area, rows);
  if (!sources.length) {
    pen.fillStyle = colour("--muted");
    pen.fillText("nothing was observed or asked", area.left, 40);
  }
}

/** Fold away a timeline in which nothing takes time, behind a line that says so. */
function foldTimeline(instant) {
  const fold = find(".replay-queries");
  fold.open = !instant;
  fold.firstElementChild.hidden = !instant;
  fold.firstElementChild.textContent = instant;
}

function drawSources(pen, rows, { gutter, width }) {
  const { tops, highs } = rows;
  const { sources, areas } = state.film.lanes;
  sources.forEach((name, i) => {
    pen.fillStyle = colour("--ink");
    pen.textBaseline = "middle";
    pen.fillText(name, 2, tops[i] + highs[i] / 2, gutter - 16);
    if (areas[i]) drawAreaScale(pen, rows, i, gutter);
    if (!i) return;
    pen.strokeStyle = colour("--line");
    pen.beginPath();
    pen.moveTo(0, tops[i] - GAP / 2 + 0.5);
    pen.lineTo(width, tops[i] - GAP / 2 + 0.5);
    pen.stroke();
  });
  pen.textBaseline = "alphabetic";
}

/** Find where the bar of a query is, if it has one. */
function placeQuery(i, area, { tops, lanes }) {
  const { replies, lives: life } = state.film;
  if (Number.isNaN(replies.lane[i])) return null;
  const x = area.x(replies.asked_at[i]);
  const end = life.of.has(i) ? lifeEnd(i, area) : area.x(replies.arrived_at[i]);
  const lane = lanes[replies.source[i]];
  return { x, end, lane, y: tops[replies.source[i]] + (replies.lane[i] + 0.5) * lane };
}

function drawQueries(pen, area, rows, { left, right, alpha }) {
  const { replies, lives: life, lanes } = state.film;
  const [begin, until] = area.limits;
  const room = until - begin;
  for (let i = 0; i < replies.asked_at.length; i += 1) {
    if (replies.arrived_at[i] < begin - room || replies.asked_at[i] > until) continue;
    const bar = placeQuery(i, area, rows);
    if (!bar || bar.end + 5 < left || startOf(i, area) - 5 > right) continue;
    const { x, end, y, lane } = bar;
    if (life.of.has(i)) drawLife(pen, i, area, y, { end, tall: rows.tall, alpha });
    else drawJourney(pen, x, end, y, { lane, served: replies.served[i], sent: replies.sent[i] });
    if (replies.attempt[i] > 1) {
      mark(pen, "tick", x, y, { size: Math.min(4.5, lane / 2), stroke: colour("--mark-failed") });
    }
    drawMeasured(pen, i, area, bar, alpha);
    (lane > 3 ? drawEnd : drawThinEnd)(pen, lanes.fates[replies.fate[i]], end, y);
    if (alpha === 1) addQuerySpot(i, bar);
  }
}

/** Find where the drawing of a query begins: with its value, if that is older than the question. */
function startOf(i, area) {
  const { asked_at: asked, measured_at: measured } = state.film.replies;
  return area.x(measured[i] < asked[i] ? measured[i] : asked[i]);
}

function drawWaiting(pen, x, end, y) {
  if (!(end > x)) return;
  pen.strokeStyle = colour("--mark-waiting");
  pen.lineWidth = 2;
  pen.setLineDash([1.5, 2.5]);
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(end, y);
  pen.stroke();
  pen.setLineDash([]);
}

function drawJourney(pen, x, end, y, { lane, served, sent }) {
  const [service, transit] = [x + (end - x) * served, x + (end - x) * Math.max(served, sent)];
  const [thick, thin] = lane > 3 ? [7, 2.5] : [2.5, 1];
  drawWaiting(pen, x, service, y);
  pen.fillStyle = colour("--mark-service");
  if (transit > service) pen.fillRect(service, y - thick / 2, transit - service, thick);
  pen.fillStyle = colour("--mark-transit");
  if (end > transit) pen.fillRect(transit, y - thin / 2, end - transit, thin);
}

/** Mark when the value was measured; where that was before the question, a line leads there. */
function drawMeasured(pen, i, area, { x, end, y, lane }, alpha) {
  const { replies, lives: life } = state.film;
  const { measured_at: measured, asked_at: asked } = replies;
  const at = area.x(measured[i]);
  if (Number.isNaN(at)) return;
  pen.fillStyle = colour("--ink");
  if (measured[i] < asked[i]) {
    pen.globalAlpha = alpha * 0.6;
    pen.fillRect(at, y - 0.5, x - at, 1);
    pen.globalAlpha = alpha;
  } else if (Math.abs(end - at) < 3 || life.of.has(i)) return; // Other marks are there.
  const high = lane > 3 ? 10 : 3;
  pen.fillRect(at - 0.75, y - high / 2, 1.5, high);
}

function drawThinEnd(pen, fate, end, y) {
  const { fill, stroke } = (ENDS[fate] ?? ENDS.invalid)[1];
  pen.fillStyle = colour(fill ?? stroke);
  pen.fillRect(end - 1.5, y - 1.5, 3, 3);
}

function addQuerySpot(i, { x, end, y, lane }) {
  sheets.timeline.spots.push({
    x: (x + end) / 2,
    y,
    reach: Math.max(3, lane / 2),
    half: (end - x) / 2,
    queries: () => [i],
    text: () => tellQuery(i),
  });
}

/** Tell a query in words: what was asked, what became of it and when, and how old its value was. */
function tellQuery(i) {
  const { replies, lanes } = state.film;
  const size = Math.round(replies.size[i]);
  const attempt = replies.attempt[i] > 1 ? `, attempt ${replies.attempt[i]}` : "";
  const [measured, arrived] = [replies.measured_at[i], replies.arrived_at[i]];
  const age =
    measured < arrived ? [`measured at ${shown(measured)}, ${shown(arrived - measured)} old on arrival`] : [];
  return [
    `${lanes.sources[replies.source[i]]}: ${size} point${size === 1 ? "" : "s"}${attempt}`,
    `asked at ${shown(replies.asked_at[i])}, ${lanes.fates[replies.fate[i]]} at ${shown(arrived)}`,
    ...age,
    ...tellLife(i),
  ].join("\n");
}
