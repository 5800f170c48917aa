// Two dimensions and sites

const STOPS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
]; // viridis
const PALETTE = new Uint8ClampedArray(256 * 3);
for (let k = 0; k < 256; k += 1) {
  const place = (k / 255) * (STOPS.length - 1);
  const i = Math.min(STOPS.length - 2, Math.floor(place));
  for (let c = 0; c < 3; c += 1) {
    PALETTE[3 * k + c] = STOPS[i][c] + (place - i) * (STOPS[i + 1][c] - STOPS[i][c]);
  }
}
const shade = (value, [low, high]) =>
  Math.max(0, Math.min(255, Math.round((255 * (value - low)) / (high - low))));
const shadeStyle = (k) => `rgb(${PALETTE[3 * k]},${PALETTE[3 * k + 1]},${PALETTE[3 * k + 2]})`;
const NAMES = { true: "true reward", mean: "posterior mean", std: "posterior std" };
const pictures = {};

function picture(values, size, scale) {
  pictures[size] ??= Object.assign(document.createElement("canvas"), {
    width: size,
    height: size,
  });
  const pen = pictures[size].getContext("2d");
  const pixels = pen.createImageData(size, size);
  for (let i = 0; i < size; i += 1) {
    for (let j = 0; j < size; j += 1) {
      const k = shade(values[i * size + j], scale);
      const at = 4 * ((size - 1 - j) * size + i);
      pixels.data.set(PALETTE.subarray(3 * k, 3 * k + 3), at);
      pixels.data[at + 3] = 255;
    }
  }
  pen.putImageData(pixels, 0, 0);
  return pictures[size];
}

/** Say which quantities to show side by side. */
function panels(width) {
  const known = state.film.fields.mean ? ["true", "mean", "std"] : ["true"];
  if (state.view === "all") return width >= WIDE ? known : ["true"];
  return known.includes(state.view) ? [state.view] : ["true"];
}

function drawPanels(at, draw) {
  const { film } = state;
  const sheet = sheets.scene;
  const names = panels(sheet.canvas.clientWidth);
  const [left, gap] = [44, 14];
  const [across, up] = film.axes ?? [0, 1];
  const room = (sheet.canvas.clientWidth - gap * (names.length - 1)) / names.length - left - 8;
  const limits = [across, up].map((axis) => padded(film, axis));
  const spans = limits.map(([low, high]) => high - low);
  // A degree of longitude is shorter than one of latitude.
  const middle = ((limits[1][0] + limits[1][1]) / 2) * (Math.PI / 180);
  if (film.earth) spans[0] *= Math.max(0.1, Math.cos(middle));
  const ratio = spans[1] / spans[0];
  const aspect = ratio > 0.2 && ratio < 5 ? ratio : 0.75;
  const wide = Math.min(room, 440 / aspect, 640);
  const tall = wide * aspect;
  const { pen, width } = prepared(sheet, tall + 92);
  const start = (width - names.length * (wide + left + 8) - gap * (names.length - 1)) / 2;
  names.forEach((name, i) => {
    const box = { left: start + left + i * (wide + left + 8 + gap), top: 24, width: wide };
    const area = plot({ ...box, height: tall }, limits[0], limits[1]);
    axes(pen, area, {
      across: film.coordinates[across],
      grid: false,
    });
    pen.save();
    pen.fillStyle = colour("--ink");
    pen.textAlign = "left";
    pen.fillText(NAMES[name], area.left, 14, wide);
    pen.fillStyle = colour("--muted");
    pen.textAlign = "right";
    if (i === 0) pen.fillText(film.coordinates[up], area.left - 6, 14, left);
    pen.restore();
    const values = valuesNow(name);
    const scale = scaleNow(name);
    if (Number.isNaN(values[0])) {
      pen.fillStyle = colour("--muted");
      pen.textAlign = "center";
      pen.fillText("no belief yet", area.left + wide / 2, area.top + tall / 2, wide);
      pen.textAlign = "left";
    } else draw(pen, area, { name, values, scale }, at);
    drawScale(pen, area, scale);
  });
}

function padded(film, axis) {
  const [low, high] = [film.lower[axis], film.upper[axis]];
  const room = film.scene === "map" ? 0.07 * (high - low) || 0.5 : 0;
  return [low - room, high + room];
}

function valuesNow(name) {
  const values = state.film.fields[name];
  const count = values.length / state.film.frames.length;
  return values.subarray(state.frame * count, (state.frame + 1) * count);
}

/** Say between which values colours run: those of now, lest a day's differences drown in a year's. */
function scaleNow(name) {
  if (name === "std") return [0, extremes(valuesNow("std"))[1]];
  const [low, high] = extremes(valuesNow("true"));
  // What is next to nothing is written as nothing.
  return [Math.abs(low) < 1e-3 * (high - low) ? 0 : low, high];
}

function drawScale(pen, area, scale) {
  const [y, wide] = [area.top + area.height + 42, area.width / 2];
  const fill = pen.createLinearGradient(area.left, 0, area.left + wide, 0);
  for (let k = 0; k <= 8; k += 1) fill.addColorStop(k / 8, shadeStyle(Math.round((255 * k) / 8)));
  pen.save();
  pen.fillStyle = fill;
  pen.fillRect(area.left, y, wide, 8);
  pen.fillStyle = colour("--muted");
  pen.textBaseline = "top";
  pen.textAlign = "left";
  pen.fillText(shown(scale[0]), area.left, y + 11);
  pen.textAlign = "right";
  pen.fillText(shown(scale[1]), area.left + wide, y + 11);
  pen.restore();
}

function drawField(pen, area, { name, values, scale }, at) {
  const { film } = state;
  const size = film.sizes[name === "true" ? "true" : "believed"];
  pen.imageSmoothingEnabled = true;
  pen.imageSmoothingQuality = "high";
  // Values are those at the centres of pixels, and the outermost lie on the border.
  pen.drawImage(
    picture(values, size, scale),
    0.5, 0.5, size - 1, size - 1,
    area.left, area.top, area.width, area.height,
  );
  drawPlaces(pen, area, at, [0, 1]);
}

/** Give how far apart neighbours usually are on a map, in pixels. */
function neighbourly(area, places) {
  const spots = places.map(([x, y]) => [area.x(x), area.y(y)]);
  const gaps = spots.map(([x, y], i) =>
    Math.min(...spots.map(([a, b], j) => (i === j ? Infinity : Math.hypot(x - a, y - b)))),
  );
  return gaps.sort((a, b) => a - b)[Math.floor(gaps.length / 2)];
}

function drawMap(pen, area, { name, values, scale }, at) {
  const { film } = state;
  film.gap ??= neighbourly(area, film.places) / area.width;
  const size = Math.max(3.5, Math.min(12, 0.5 * film.gap * area.width));
  pen.strokeStyle = colour("--line");
  pen.strokeRect(area.left + 0.5, area.top + 0.5, area.width - 1, area.height - 1);
  film.places.forEach(([x, y], i) => {
    const [across, up] = [area.x(x), area.y(y)];
    const fill = shadeStyle(shade(values[i], scale));
    mark(pen, "circle", across, up, { size, fill, stroke: colour("--line"), line: 1 });
    sheets.scene.spots.push({
      x: across,
      y: up,
      reach: size + 4,
      queries: () => findAbout([x, y]),
      text: () => `${film.names[i]}\n${NAMES[name]} ${shown(values[i])}`,
    });
  });
  drawPlaces(pen, area, at, film.axes, size);
}

/** Draw where was played, asked and best, on a picture. */
function drawPlaces(pen, area, at, [across, up], site = 0) {
  const { film } = state;
  const { rounds, dimensions } = film;
  const place = (coordinates) => [area.x(coordinates[across]), area.y(coordinates[up])];
  // A picture is the same by day and by night, and so are the edges of marks on it.
  const paper = site ? colour("--paper") : "#fff";
  pen.save();
  pen.beginPath();
  pen.rect(area.left - 10, area.top - 10, area.width + 20, area.height + 20);
  pen.clip();
  const trail = [];
  for (let row = Math.max(0, at.row - TRAIL); row <= at.row; row += 1) {
    trail.push(place(point(rounds.point, row, dimensions)));
  }
  for (let i = 1; i < trail.length; i += 1) {
    pen.globalAlpha = 0.15 + (0.6 * i) / trail.length;
    for (const [stroke, line] of [[paper, 4], [colour("--mark-own"), 2]]) {
      pen.strokeStyle = stroke;
      pen.lineWidth = line;
      pen.beginPath();
      pen.moveTo(...trail[i - 1]);
      pen.lineTo(...trail[i]);
      pen.stroke();
    }
    mark(pen, "circle", ...trail[i - 1], { size: 2.5, fill: colour("--mark-own"), halo: paper });
  }
  pen.globalAlpha = 1;
  eachAsked(at, (coordinates, i) => {
    mark(pen, "diamond", ...place(coordinates), {
      size: site ? site + 2 : 4,
      stroke: colour("--mark-expert"),
      halo: paper,
      line: 1.5,
    });
    if (!site) addPointSpot(i, place(coordinates));
  });
  mark(pen, "circle", ...place(at.played), {
    size: site ? Math.max(6, site + 1) : 8.5,
    fill: site ? "" : colour("--mark-own"),
    stroke: site ? colour("--mark-own") : "",
    halo: paper,
    line: 3,
  });
  drawBrushedPoints(pen, at, place);
  // The smaller on top: where the best point is played, both are seen.
  mark(pen, "star", ...place(at.best), { size: 6.5, fill: colour("--mark-best"), halo: paper });
  pen.restore();
}
