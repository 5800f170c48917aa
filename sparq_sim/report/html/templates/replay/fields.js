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
const GREYS = new Uint8ClampedArray(256 * 3);
for (let k = 0; k < 256; k += 1) {
  // What is not known is dark: nothing shines there.
  [244, 244, 240].forEach((light, c) => {
    GREYS[3 * k + c] = light + (k / 255) * ([52, 56, 62][c] - light);
  });
}
const paletteOf = (name) => (name === "std" ? GREYS : PALETTE);
const shade = (value, [low, high]) =>
  Math.max(0, Math.min(255, Math.round((255 * (value - low)) / (high - low))));
const shadeStyle = (k, colours) =>
  `rgb(${colours[3 * k]},${colours[3 * k + 1]},${colours[3 * k + 2]})`;
const NAMES = {
  true: "true reward",
  mean: "posterior mean",
  bound: "upper confidence bound",
  std: "posterior std",
};
const pictures = {};

function picture(values, size, scale, colours) {
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
      pixels.data.set(colours.subarray(3 * k, 3 * k + 3), at);
      pixels.data[at + 3] = 255;
    }
  }
  pen.putImageData(pixels, 0, 0);
  return pictures[size];
}

/** Say which quantities to show beside each other. */
function panels(film, width) {
  const known = film.fields.mean ? ["true", "mean", "bound", "std"] : ["true"];
  if (state.view === "all") return width >= NARROW ? known : ["true"];
  return known.includes(state.view) ? [state.view] : ["true"];
}

function drawPanels(shot, draw) {
  const { film, sheet } = shot;
  const { clientWidth } = sheet.canvas;
  const names = panels(film, clientWidth);
  const columns = clientWidth >= WIDE ? names.length : Math.min(2, names.length);
  const [left, gap] = [44, 14];
  const [across, up] = film.axes ?? [0, 1];
  const room = (clientWidth - gap * (columns - 1)) / columns - left - 8;
  const limits = [across, up].map((axis) => padded(film, axis));
  const spans = limits.map(([low, high]) => high - low);
  // A degree of longitude is shorter than one of latitude.
  const middle = ((limits[1][0] + limits[1][1]) / 2) * (Math.PI / 180);
  if (film.earth) spans[0] *= Math.max(0.1, Math.cos(middle));
  const ratio = spans[1] / spans[0];
  const aspect = ratio > 0.2 && ratio < 5 ? ratio : 0.75;
  const wide = Math.min(room, 440 / aspect, 640);
  const tall = wide * aspect;
  const rows = Math.ceil(names.length / columns);
  const { pen, width } = prepared(sheet, rows * (tall + 92));
  const start = (width - columns * (wide + left + 8) - gap * (columns - 1)) / 2;
  const areas = names.map((name, i) => {
    const box = {
      left: start + left + (i % columns) * (wide + left + 8 + gap),
      top: 24 + Math.floor(i / columns) * (tall + 92),
      width: wide,
    };
    const area = plot({ ...box, height: tall }, limits[0], limits[1]);
    axes(pen, area, {
      across: film.labels.coordinates[across],
      grid: false,
    });
    pen.save();
    pen.fillStyle = colour("--ink");
    pen.textAlign = "left";
    pen.fillText(NAMES[name], area.left, area.top - 10, wide);
    pen.fillStyle = colour("--muted");
    pen.textAlign = "right";
    if (i % columns === 0) pen.fillText(film.labels.coordinates[up], area.left - 6, area.top - 10, left);
    pen.restore();
    const values = valuesNow(film, shot.frame, name);
    const scale = scaleNow(name);
    if (Number.isNaN(values[0])) {
      pen.fillStyle = colour("--muted");
      pen.textAlign = "center";
      pen.fillText("no belief yet", area.left + wide / 2, area.top + tall / 2, wide);
      pen.textAlign = "left";
    } else draw(pen, area, { name, values, scale }, shot);
    drawScale(pen, area, scale, paletteOf(name));
    return area;
  });
  sheet.here = (x, y) => {
    const area = areas.find(
      (each) =>
        x >= each.left && x <= each.left + each.width && y >= each.top && y <= each.top + tall,
    );
    return area && film.scene === "field" ? tellField(shot, area, x, y) : "";
  };
}

/** Tell what is true and believed where a field is touched. */
function tellField(shot, area, x, y) {
  const { film } = shot;
  const shares = [(x - area.left) / area.width, 1 - (y - area.top) / area.height];
  const places = shares.map((share, k) => film.lower[k] + share * (film.upper[k] - film.lower[k]));
  const [i, j] = ["true", "believed"].map((name) => {
    const size = film.sizes[name];
    const [a, b] = shares.map((share) => Math.round(share * (size - 1)));
    return a * size + b;
  });
  const name = places.map((place, k) => `${film.coordinates[k]} ${shown(place)}`).join(", ");
  return tellPlace(shot, name, i, j);
}

function padded(film, axis) {
  const [low, high] = [film.lower[axis], film.upper[axis]];
  const room = film.scene === "map" ? 0.07 * (high - low) || 0.5 : 0;
  return [low - room, high + room];
}

/** Say between which values colours run: those of now, lest a day's differences drown in a year's. */
function scaleNow(name) {
  const shots = listShots().filter(({ film }) => film.fields[name]);
  const reach = (quantity) =>
    shots.map(({ film, frame }) => extremes(valuesNow(film, frame, quantity)));
  if (name === "std") return [0, Math.max(...reach("std").map(([, high]) => high))];
  const lowest = Math.min(...reach("true").map(([low]) => low));
  const highest = Math.max(...reach(name === "bound" ? name : "true").map(([, high]) => high));
  // What is next to nothing is written as nothing.
  return [Math.abs(lowest) < 1e-3 * (highest - lowest) ? 0 : lowest, highest];
}

function drawScale(pen, area, scale, colours) {
  const [y, wide] = [area.top + area.height + 42, area.width / 2];
  const fill = pen.createLinearGradient(area.left, 0, area.left + wide, 0);
  for (let k = 0; k <= 8; k += 1) {
    fill.addColorStop(k / 8, shadeStyle(Math.round((255 * k) / 8), colours));
  }
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

function drawField(pen, area, { name, values, scale }, shot) {
  const size = shot.film.sizes[name === "true" ? "true" : "believed"];
  pen.imageSmoothingEnabled = true;
  pen.imageSmoothingQuality = "high";
  // Values are those at the centres of pixels, and the outermost lie on the border.
  pen.drawImage(
    picture(values, size, scale, paletteOf(name)),
    0.5, 0.5, size - 1, size - 1,
    area.left, area.top, area.width, area.height,
  );
  drawPlaces(pen, area, shot, [0, 1]);
}

/** Give how far apart neighbours usually are on a map, in pixels. */
function neighbourly(area, places) {
  const spots = places.map(([x, y]) => [area.x(x), area.y(y)]);
  const gaps = spots.map(([x, y], i) =>
    Math.min(...spots.map(([a, b], j) => (i === j ? Infinity : Math.hypot(x - a, y - b)))),
  );
  return gaps.sort((a, b) => a - b)[Math.floor(gaps.length / 2)];
}

function drawMap(pen, area, { name, values, scale }, shot) {
  const { film, sheet } = shot;
  film.gap ??= neighbourly(area, film.places) / area.width;
  const size = Math.max(3.5, Math.min(12, 0.5 * film.gap * area.width));
  pen.strokeStyle = colour("--line");
  pen.strokeRect(area.left + 0.5, area.top + 0.5, area.width - 1, area.height - 1);
  film.places.forEach(([x, y], i) => {
    const [across, up] = [area.x(x), area.y(y)];
    const fill = shadeStyle(shade(values[i], scale), paletteOf(name));
    mark(pen, "circle", across, up, { size, fill, stroke: colour("--line"), line: 1 });
    sheet.spots.push({
      x: across,
      y: up,
      reach: size + 4,
      queries: () => (film === state.film ? findAbout([x, y]) : []),
      text: () => tellPlace(shot, film.names[i], i, i),
    });
  });
  drawPlaces(pen, area, shot, film.axes, size);
}

/** Draw the newest answer of each source at each place, the staler the fainter. */
function drawHeard(pen, shot, place, { paper, site }) {
  const { film } = shot;
  const newest = new Map();
  for (const answer of listHeard(shot)) {
    if (answer.source === film.reward) continue; // The trail tells where was played.
    newest.set(`${answer.source} ${answer.place}`, answer);
  }
  for (const answer of newest.values()) {
    const { shape, paint } = lookOf(film, answer.source);
    const [x, y] = place(answer.place);
    const at = site ? [x + 0.85 * site, y - 0.85 * site] : [x, y];
    const hollow = answer.used === false;
    pen.globalAlpha = (hollow ? 0.15 : 0.3) + 0.6 * answer.fresh ** 2;
    const tint = colour(paint);
    mark(pen, shape, ...at, {
      size: site ? 2.5 : 3.25,
      fill: hollow ? "" : tint,
      stroke: hollow ? tint : "",
      halo: hollow ? "" : paper,
      line: 1.25,
    });
    addAnswerSpot(shot, answer, at, site ? 4 : 7);
  }
  pen.globalAlpha = 1;
}

/** Draw where was played, heard, asked and best, on a picture. */
function drawPlaces(pen, area, shot, [across, up], site = 0) {
  const { film, at } = shot;
  const { rounds, dimensions } = film;
  const place = (coordinates) => [area.x(coordinates[across]), area.y(coordinates[up])];
  const paper = colour("--paper");
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
  drawHeard(pen, shot, place, { paper, site });
  eachAsked(
    at,
    (coordinates, i) => {
      const { shape, paint } = lookOf(film, film.replies.source[i]);
      mark(pen, shape, ...place(coordinates), {
        size: site ? site + 1.5 : 5,
        stroke: colour(paint),
        halo: site ? "" : paper,
        line: site ? 1.25 : 1.5,
      });
      if (!site && film === state.film) addPointSpot(i, place(coordinates));
    },
    film,
  );
  mark(pen, "circle", ...place(at.played), {
    size: site ? Math.max(6, site + 1) : 8.5,
    fill: site ? "" : colour("--mark-own"),
    stroke: site ? colour("--mark-own") : "",
    halo: paper,
    line: 3,
  });
  if (film === state.film) drawBrushedPoints(pen, at, place);
  // The smaller on top: where the best point is played, both are seen.
  mark(pen, "star", ...place(at.best), { size: 6.5, fill: colour("--mark-best"), halo: paper });
  pen.restore();
}
