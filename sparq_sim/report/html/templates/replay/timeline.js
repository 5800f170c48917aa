// The timeline of queries

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

function drawTimeline(at) {
  const { film } = state;
  const { replies } = film;
  const { sources, counts, fates } = film.lanes;
  const sheet = sheets.timeline;
  const gap = 10;
  // Points of one query are strips of its bar, thinner where there are many bars.
  const { strips } = film.lives;
  const rows = strips.reduce((sum, count, i) => sum + count * counts[i], 0);
  const tall = rows > 60 ? 3 : 5;
  const lanes = strips.map((count) => (count > 1 ? tall * count + 5 : 12));
  const tops = [];
  let down = 8;
  counts.forEach((count, i) => {
    tops.push(down);
    down += Math.max(1, count) * lanes[i] + gap;
  });
  const { pen, width } = prepared(sheet, Math.max(64, down + 34));
  const gutter = Math.min(
    Math.max(60, width * 0.2),
    Math.max(30, ...sources.map((name) => pen.measureText(name).width)) + 18,
  );
  const [before, after] = film.window;
  const begin = Math.max(0, at.now - before);
  const box = { left: gutter, top: 4, width: width - gutter - 10, height: down - 4 };
  const area = plot(box, [begin, begin + before + after], [0, 1]);
  axes(pen, area, { across: "time", ticksUp: false });
  sources.forEach((name, i) => {
    pen.fillStyle = colour("--ink");
    pen.textBaseline = "middle";
    pen.fillText(name, 2, tops[i] + (Math.max(1, counts[i]) * lanes[i]) / 2, gutter - 16);
    if (!i) return;
    pen.strokeStyle = colour("--line");
    pen.beginPath();
    pen.moveTo(0, tops[i] - gap / 2 + 0.5);
    pen.lineTo(width, tops[i] - gap / 2 + 0.5);
    pen.stroke();
  });
  pen.textBaseline = "alphabetic";
  pen.save();
  pen.beginPath();
  pen.rect(area.left - 6, 0, area.width + 12, down + 4);
  pen.clip();
  const now = area.x(at.now);
  for (const [from, to, alpha] of [[-Infinity, now + 0.5, 1], [now + 0.5, Infinity, 0.25]]) {
    pen.save();
    pen.beginPath();
    const [left, right] = [Math.max(area.left - 6, from), Math.min(area.left + area.width + 6, to)];
    pen.rect(left, 0, Math.max(0, right - left), down + 4);
    pen.clip();
    pen.globalAlpha = alpha;
    for (let i = 0; i < replies.asked_at.length; i += 1) {
      const [asked, arrived] = [replies.asked_at[i], replies.arrived_at[i]];
      if (Number.isNaN(replies.lane[i]) || arrived < begin - after || asked > area.limits[1]) continue;
      const x = area.x(asked);
      const end = film.lives.of.has(i) ? lifeEnd(i, area) : area.x(arrived);
      if (end + 5 < left || x - 5 > right) continue;
      const lane = lanes[replies.source[i]];
      const y = tops[replies.source[i]] + (replies.lane[i] + 0.5) * lane;
      if (film.lives.of.has(i)) drawLife(pen, i, area, y, { end, tall, alpha });
      else drawJourney(pen, x, end, y, replies.served[i], replies.sent[i]);
      if (replies.attempt[i] > 1) {
        mark(pen, "tick", x, y, { size: 4.5, stroke: colour("--mark-failed") });
      }
      drawEnd(pen, fates[replies.fate[i]], end, y);
      if (alpha === 1) addJourneySpot(i, x, end, y, lane / 2);
    }
    pen.restore();
  }
  pen.strokeStyle = colour("--mark-now");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(now, 0);
  pen.lineTo(now, down);
  pen.stroke();
  pen.restore();
  if (!sources.length) {
    pen.fillStyle = colour("--muted");
    pen.fillText("nothing was observed or asked", area.left, 40);
  }
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

function drawJourney(pen, x, end, y, served, sent) {
  const [service, transit] = [x + (end - x) * served, x + (end - x) * Math.max(served, sent)];
  drawWaiting(pen, x, service, y);
  pen.fillStyle = colour("--mark-service");
  if (transit > service) pen.fillRect(service, y - 3.5, transit - service, 7);
  pen.fillStyle = colour("--mark-transit");
  if (end > transit) pen.fillRect(transit, y - 1.25, end - transit, 2.5);
}

function addJourneySpot(i, x, end, y, reach) {
  const { film } = state;
  const { replies, lanes } = film;
  sheets.timeline.spots.push({
    x: (x + end) / 2,
    y,
    reach,
    half: (end - x) / 2,
    text: () => {
      const size = Math.round(replies.size[i]);
      const attempt = replies.attempt[i] > 1 ? `, attempt ${replies.attempt[i]}` : "";
      return [
        `${lanes.sources[replies.source[i]]}: ${size} point${size === 1 ? "" : "s"}${attempt}`,
        `asked at ${shown(replies.asked_at[i])}, ${lanes.fates[replies.fate[i]]} at ` +
          shown(replies.arrived_at[i]),
        ...tellLife(i),
      ].join("\n");
    },
  });
}
