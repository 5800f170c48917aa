// More dimensions: a strip for each coordinate

function drawStrips({ film, sheet, at }) {
  const { rounds, dimensions } = film;
  const strip = dimensions > 6 ? 52 : 72;
  const { pen, width } = prepared(sheet, 24 + strip * dimensions + 14);
  const times = film.frames.map((row) => rounds.played_at[row]);
  const span = extremes(times);
  for (let axis = 0; axis < dimensions; axis += 1) {
    const box = { left: 46, top: 24 + axis * strip, width: width - 58, height: strip - 22 };
    const area = plot(box, span, [film.lower[axis], film.upper[axis]]);
    const last = axis === dimensions - 1;
    pen.fillStyle = colour("--muted");
    pen.textAlign = "left";
    pen.fillText(film.labels.coordinates[axis], area.left, area.top - 5, area.width);
    pen.strokeStyle = colour("--line");
    pen.strokeRect(area.left + 0.5, area.top + 0.5, area.width - 1, area.height - 1);
    pen.textAlign = "right";
    pen.fillText(shown(film.upper[axis]), area.left - 6, area.top + 10);
    pen.fillText(shown(film.lower[axis]), area.left - 6, area.top + area.height);
    pen.textAlign = "left";
    if (last) axes(pen, area, { across: film.labels.time, grid: false, ticksUp: false });
    pen.fillStyle = colour("--mark-own");
    for (let row = 0; row < rounds.round.length; row += 1) {
      pen.globalAlpha = row <= at.row ? 0.6 : 0.12;
      const y = area.y(rounds.point[row * dimensions + axis]);
      pen.fillRect(area.x(rounds.played_at[row]) - 1.25, y - 1.25, 2.5, 2.5);
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = colour("--mark-best");
    pen.lineWidth = 1.75;
    curve(pen, area, times, (i) => film.best[i * dimensions + axis]);
    const x = area.x(at.now);
    pen.strokeStyle = colour("--mark-now");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, area.top);
    pen.lineTo(x, area.top + area.height);
    pen.stroke();
    eachAsked(
      at,
      (coordinates, i) => {
        const { shape, paint } = lookOf(film, film.replies.source[i]);
        mark(pen, shape, x, area.y(coordinates[axis]), { size: 4, stroke: colour(paint) });
        if (film === state.film) addPointSpot(i, [x, area.y(coordinates[axis])]);
      },
      film,
    );
    const place = (coordinates, { query }) => [
      area.x(film.replies.asked_at[query]),
      area.y(coordinates[axis]),
    ];
    if (film === state.film) drawBrushedPoints(pen, at, place);
    mark(pen, "circle", x, area.y(at.played[axis]), {
      size: 5,
      fill: colour("--mark-own"),
      halo: colour("--paper"),
    });
  }
}
