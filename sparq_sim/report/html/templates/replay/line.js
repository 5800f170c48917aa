// One dimension

function drawLine(shot) {
  const { film, frame, sheet, at } = shot;
  const high = Math.max(250, Math.min(400, 0.46 * sheet.canvas.clientWidth));
  const { pen, width, height } = prepared(sheet, high);
  const ranges = listShots().map((each) => each.film.range);
  const [low, top] = [Math.min(...ranges.map(([a]) => a)), Math.max(...ranges.map(([, b]) => b))];
  const room = 0.06 * (top - low || 1);
  const box = { left: 46, top: 22, width: width - 58, height: height - 62 };
  const area = plot(box, [film.lower[0], film.upper[0]], [low - room, top + room]);
  axes(pen, area, { across: film.labels.coordinates[0], up: film.labels.reward });

  const { places } = film;
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top - 8, area.width, area.height + 8);
  pen.clip();
  if (film.fields.mean) drawBelief(pen, area, shot);
  pen.strokeStyle = colour("--mark-true");
  pen.lineWidth = 2.25;
  const truth = valuesNow(film, frame, "true");
  curve(pen, area, places, (i) => truth[i]);
  if (film.sites) {
    for (let i = 0; i < places.length; i += 1) {
      mark(pen, "circle", area.x(places[i]), area.y(truth[i]), {
        size: 2.5,
        fill: colour("--mark-true"),
      });
    }
  }
  drawKnown(pen, area, shot);
  pen.restore();

  pen.save();
  pen.lineWidth = 1.5;
  const base = area.top + area.height;
  eachAsked(
    at,
    ([place], i) => {
      pen.strokeStyle = colour(lookOf(film, film.replies.source[i]).paint);
      pen.beginPath();
      pen.moveTo(area.x(place), base);
      pen.lineTo(area.x(place), base - 9);
      pen.stroke();
      if (film === state.film) addPointSpot(i, [area.x(place), base - 5]);
    },
    film,
  );
  pen.restore();
  if (film === state.film) {
    drawBrushedPoints(pen, at, ([x], { value }) => [
      area.x(x),
      Number.isNaN(value) ? base - 5 : area.y(value),
    ]);
  }
  drawRegret(pen, area, at);
  const paper = colour("--paper");
  mark(pen, "circle", area.x(at.played[0]), area.y(at.reward), {
    size: 7.5,
    fill: colour("--mark-own"),
    halo: paper,
  });
  mark(pen, "star", area.x(at.best[0]), area.y(at.highest), {
    size: 7.5,
    fill: colour("--mark-best"),
    halo: paper,
  });
  sheet.here = (x, y) => {
    const inside = x >= area.left && x <= area.left + area.width && y >= area.top;
    if (!inside || y > base) return "";
    const share = (x - area.left) / area.width;
    const value = film.lower[0] + share * (film.upper[0] - film.lower[0]);
    const i = nearestPlace(places, value);
    return tellPlace(shot, `${film.coordinates[0]} ${shown(places[i])}`, i, i);
  };
}

function nearestPlace(places, value) {
  let nearest = 0;
  places.forEach((place, i) => {
    if (Math.abs(place - value) < Math.abs(places[nearest] - value)) nearest = i;
  });
  return nearest;
}

/** Draw what is believed, and faintly what was believed a round ago. */
function drawBelief(pen, area, { film, frame }) {
  const { places, frames, rounds } = film;
  const [mean, std, bound] = ["mean", "std", "bound"].map((name) => valuesNow(film, frame, name));
  if (Number.isNaN(mean[0])) return;
  pen.fillStyle = pen.strokeStyle = colour("--mark-belief");
  pen.beginPath();
  for (let i = 0; i < places.length; i += 1) {
    pen.lineTo(area.x(places[i]), area.y(mean[i] + std[i]));
  }
  for (let i = places.length - 1; i >= 0; i -= 1) {
    pen.lineTo(area.x(places[i]), area.y(mean[i] - std[i]));
  }
  pen.globalAlpha = 0.2;
  pen.fill();
  if (frame && rounds.round[frames[frame - 1]] === rounds.round[frames[frame]] - 1) {
    const [before, spread] = ["mean", "std"].map((name) => valuesNow(film, frame - 1, name));
    pen.globalAlpha = 0.5;
    pen.lineWidth = 1;
    pen.setLineDash([1.5, 2.5]);
    for (const side of [-1, 1]) curve(pen, area, places, (i) => before[i] + side * spread[i]);
  }
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  pen.lineWidth = 2;
  curve(pen, area, places, (i) => mean[i]);
  pen.lineWidth = 1.5;
  pen.setLineDash([5, 4]);
  curve(pen, area, places, (i) => bound[i]);
  pen.setLineDash([]);
}

/** Draw what the agent had heard, the staler the fainter; hollow what it no longer uses. */
function drawKnown(pen, area, shot) {
  const { film } = shot;
  for (const answer of listHeard(shot)) {
    const { shape, paint } = lookOf(film, answer.source);
    const tint = colour(paint);
    const [x, y] = [area.x(answer.place[0]), area.y(answer.value)];
    if (answer.used === false) {
      pen.globalAlpha = 0.08 + 0.42 * answer.fresh ** 2;
      mark(pen, shape, x, y, { size: 3, stroke: tint, line: 1.25 });
    } else {
      const alpha = 0.06 + 0.9 * answer.fresh ** 2;
      // What still counts is seen, however old; where nobody knows, its age decides.
      pen.globalAlpha = answer.used ? Math.max(0.45, alpha) : alpha;
      drawErrorBar(pen, tint, x, [area.y(answer.value - answer.std), area.y(answer.value + answer.std)]);
      mark(pen, shape, x, y, { size: 3.5, fill: tint });
    }
    addAnswerSpot(shot, answer, [x, y], 8);
  }
  pen.globalAlpha = 1;
}

function drawErrorBar(pen, tint, x, [low, high]) {
  if (!(low - high > 4)) return;
  const alpha = pen.globalAlpha;
  pen.globalAlpha = 0.5 * alpha;
  pen.strokeStyle = tint;
  pen.lineWidth = 1.25;
  pen.beginPath();
  pen.moveTo(x, low);
  pen.lineTo(x, high);
  for (const y of [low, high]) {
    pen.moveTo(x - 2.5, y);
    pen.lineTo(x + 2.5, y);
  }
  pen.stroke();
  pen.globalAlpha = alpha;
}

function drawRegret(pen, area, at) {
  const x = area.x(at.played[0]);
  const [from, to] = [area.y(at.reward), area.y(at.highest)];
  if (from - to < 10) return;
  pen.save();
  pen.strokeStyle = colour("--mark-best");
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x, from);
  pen.lineTo(x, to);
  pen.moveTo(x - 5, to);
  pen.lineTo(x + 5, to);
  pen.stroke();
  pen.restore();
}

/** Tell what is true and believed at a place: one of the true rewards, and one of the beliefs. */
function tellPlace({ film, frame }, name, i, j) {
  const take = (quantity, k) => valuesNow(film, frame, quantity)[k];
  const lines = [name, `true reward ${shown(take("true", i))}`];
  if (film.fields.mean && !Number.isNaN(take("mean", j))) {
    lines.push(`posterior mean ${shown(take("mean", j))} ± ${shown(take("std", j))}`);
    lines.push(`upper bound ${shown(take("bound", j))}`);
  }
  return lines.join("\n");
}
