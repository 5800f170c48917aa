// One dimension

function drawLine(at) {
  const { film, frame } = state;
  const sheet = sheets.scene;
  const high = Math.max(250, Math.min(400, 0.46 * sheet.canvas.clientWidth));
  const { pen, width, height } = prepared(sheet, high);
  const [low, top] = film.range;
  const room = 0.06 * (top - low || 1);
  const box = { left: 46, top: 22, width: width - 58, height: height - 62 };
  const area = plot(box, [film.lower[0], film.upper[0]], [low - room, top + room]);
  axes(pen, area, { across: film.coordinates[0], up: "reward" });

  const { places } = film;
  const count = places.length;
  const take = (name) => film.fields[name].subarray(frame * count, (frame + 1) * count);
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top - 8, area.width, area.height + 8);
  pen.clip();
  if (film.fields.mean) {
    const [mean, std] = [take("mean"), take("std")];
    if (!Number.isNaN(mean[0])) {
      pen.fillStyle = pen.strokeStyle = colour("--mark-belief");
      pen.beginPath();
      for (let i = 0; i < count; i += 1) pen.lineTo(area.x(places[i]), area.y(mean[i] + std[i]));
      for (let i = count - 1; i >= 0; i -= 1) {
        pen.lineTo(area.x(places[i]), area.y(mean[i] - std[i]));
      }
      pen.globalAlpha = 0.2;
      pen.fill();
      pen.globalAlpha = 1;
      pen.lineWidth = 2;
      curve(pen, area, places, (i) => mean[i]);
      pen.lineWidth = 1.5;
      pen.setLineDash([5, 4]);
      curve(pen, area, places, (i) => mean[i] + film.width[frame] * std[i]);
      pen.setLineDash([]);
    }
  }
  pen.strokeStyle = colour("--mark-true");
  pen.lineWidth = 2.25;
  const truth = take("true");
  curve(pen, area, places, (i) => truth[i]);
  if (film.sites) {
    for (let i = 0; i < count; i += 1) {
      mark(pen, "circle", area.x(places[i]), area.y(truth[i]), {
        size: 2.5,
        fill: colour("--mark-true"),
      });
    }
  }
  drawKnown(pen, area, at);
  pen.restore();

  pen.save();
  pen.strokeStyle = colour("--mark-expert");
  pen.lineWidth = 1.5;
  const base = area.top + area.height;
  eachAsked(at, ([place], i) => {
    pen.beginPath();
    pen.moveTo(area.x(place), base);
    pen.lineTo(area.x(place), base - 9);
    pen.stroke();
    addPointSpot(i, [area.x(place), base - 5]);
  });
  pen.restore();
  drawBrushedPoints(pen, at, ([x], { value }) => [
    area.x(x),
    Number.isNaN(value) ? base - 5 : area.y(value),
  ]);
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
}

/** Draw what the agent had heard, the staler the fainter. */
function drawKnown(pen, area, at) {
  const { film } = state;
  const { replies } = film;
  const [own, expert] = [colour("--mark-own"), colour("--mark-expert")];
  for (let i = 0; i < replies.asked_at.length; i += 1) {
    // What was asked in this very move was not known when it was made.
    if (replies.arrived_at[i] > at.now + 1e-6 || replies.asked_at[i] > at.now - 1e-6) continue;
    const staleness = at.now - replies.measured_at[i];
    if (!(staleness <= film.window[0])) continue;
    pen.globalAlpha = 0.06 + 0.9 * (1 - staleness / film.window[0]) ** 2;
    const isOwn = replies.source[i] === film.reward;
    for (let j = 0; j < Math.round(replies.size[i]); j += 1) {
      const row = film.firsts[i] + j;
      const x = area.x(replies.point[row]);
      const y = area.y(replies.value[row]);
      if (isOwn) mark(pen, "circle", x, y, { size: 3.5, stroke: own });
      else mark(pen, "diamond", x, y, { size: 3.5, fill: expert });
      addPointSpot(i, [x, y]);
    }
  }
  pen.globalAlpha = 1;
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
