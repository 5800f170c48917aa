"use strict";
(() => {
  const root = document.getElementById("replay");
  const given = document.getElementById("replay-data");
  if (!root || !given) return;
  const films = JSON.parse(given.textContent).filter((film) => !film.missing);
  if (!films.length) return;

  const find = (selector) => root.querySelector(selector);
  const slider = find(".replay-slider");
  const playButton = find(".replay-play");
  const speed = find(".replay-speed select");
  const views = [...root.querySelectorAll("[name=replay-view]")];
  const sheets = {};
  for (const name of ["scene", "timeline", "regret"]) {
    sheets[name] = { canvas: find(`.replay-${name}`), spots: [] };
  }
  const TRAIL = 8;
  const STRIPS = 6; // Of the points of one query, in a bar.
  const WIDE = 620; // pixels, from which on three pictures find room side by side
  const state = { film: null, frame: 0, playing: false, view: "true", due: 0, waiting: false };

  // Numbers, as sparq_sim/report/replay.py packs them

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

  /** Unpack a film when it is first shown. */
  function ready(film) {
    if (film.unpacked) return film;
    film.unpacked = true;
    film.dimensions = film.coordinates.length;
    film.best = unpacked(film.best);
    film.rounds = unpackedAll(film.rounds);
    film.replies = unpackedAll(film.replies);
    film.fields = { true: unpacked(film.true), mean: unpacked(film.mean), std: unpacked(film.std) };
    film.width = unpacked(film.width);
    for (const whole of film.shares) whole.values = unpacked(whole.values);
    const { size } = film.replies;
    film.firsts = new Uint32Array(size.length);
    for (let i = 1; i < size.length; i += 1) {
      film.firsts[i] = film.firsts[i - 1] + Math.round(size[i - 1]);
    }
    film.reward = film.lanes.sources.indexOf("reward");
    film.lives = lives(film.lanes, film.replies);
    const regrets = film.frames.map((round) => film.rounds.regret[round]).sort((a, b) => a - b);
    film.highRegret = Math.max(1e-12, regrets[Math.floor(0.98 * (regrets.length - 1))]);
    return film;
  }

  /** Unpack the phases of queries: by journey, and in how many strips each source shows them. */
  function lives({ phases, sources }, { source, size }) {
    const { names, words, nodes, ...packed } = phases;
    const of = new Map();
    const columns = unpackedAll(packed);
    columns.journey.forEach((journey, i) => {
      if (!of.has(journey)) of.set(journey, []);
      of.get(journey).push(i);
    });
    // As many as a query usually has points.
    const strips = sources.map((_, i) => {
      const sizes = [...of.keys()].filter((k) => source[k] === i).map((k) => Math.round(size[k]));
      const usual = sizes.sort((a, b) => a - b)[Math.floor(sizes.length / 2)] ?? 1;
      return Math.min(STRIPS, usual);
    });
    return { ...columns, names, words, nodes, of, strips };
  }

  const shown = (number) => {
    if (!Number.isFinite(number)) return "–";
    const size = Math.abs(number);
    if (size && (size < 1e-3 || size >= 1e6)) return number.toExponential(1);
    return String(Number(number.toPrecision(size >= 1000 ? 6 : 3))).replace("-", "\u2212");
  };

  const point = (values, row, dimensions) =>
    Array.from(values.subarray(row * dimensions, (row + 1) * dimensions));

  /** What a frame shows. */
  function moment() {
    const { film, frame } = state;
    const row = film.frames[frame];
    const { rounds, dimensions } = film;
    return {
      row,
      now: rounds.played_at[row],
      started: rounds.started_at[row],
      round: rounds.round[row],
      played: point(rounds.point, row, dimensions),
      best: point(film.best, frame, dimensions),
      reward: rounds.reward[row],
      highest: rounds.best[row],
      regret: rounds.regret[row],
    };
  }

  /** Call back with each point asked about in the round of a frame. */
  function eachAsked(at, visit) {
    const { film } = state;
    const { asked_at: askedAt, source, asked, size, point: points } = film.replies;
    for (let i = 0; i < askedAt.length; i += 1) {
      if (source[i] === film.reward || !asked[i]) continue;
      if (askedAt[i] < at.started - 1e-6 || askedAt[i] >= at.started + film.period - 1e-6) continue;
      for (let j = 0; j < Math.round(size[i]); j += 1) {
        visit(point(points, film.firsts[i] + j, film.dimensions));
      }
    }
  }

  // Drawing

  const style = () => getComputedStyle(root);
  let colours = {};
  const colour = (name) => {
    colours[name] ??= style().getPropertyValue(name).trim() || "#888";
    return colours[name];
  };

  /** Give a canvas the pixels of its screen, and a context in CSS units. */
  function prepared(sheet, height) {
    const { canvas } = sheet;
    const ratio = window.devicePixelRatio || 1;
    const tall = `${height}px`;
    if (canvas.style.height !== tall) canvas.style.height = tall;
    const width = canvas.clientWidth;
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== across || canvas.height !== down) {
      canvas.width = across;
      canvas.height = down;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `12px ${style().fontFamily}`;
    pen.lineJoin = "round";
    sheet.spots = [];
    return { pen, width, height };
  }

  function steps(low, high, about) {
    const rough = (high - low) / Math.max(1, about);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
      found.push(k * step);
    }
    return found;
  }

  /** Lay out a plot: a box on the canvas, and where numbers lie in it. */
  function plot(box, [left, right], [bottom, top]) {
    return {
      ...box,
      limits: [left, right, bottom, top],
      x: (value) => box.left + ((value - left) / (right - left)) * box.width,
      y: (value) => box.top + box.height - ((value - bottom) / (top - bottom)) * box.height,
    };
  }

  function axes(pen, area, { across = "", up = "", grid = true, ticksUp = true } = {}) {
    const [left, right, bottom, top] = area.limits;
    const base = area.top + area.height;
    pen.save();
    pen.strokeStyle = colour("--line");
    pen.fillStyle = colour("--muted");
    pen.lineWidth = 1;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of steps(left, right, area.width / 80)) {
      const x = Math.round(area.x(value)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, grid ? area.top : base);
      pen.lineTo(x, base + 4);
      pen.stroke();
      const label = shown(value);
      const half = pen.measureText(label).width / 2;
      pen.fillText(label, Math.min(x, pen.canvas.clientWidth - half), base + 6);
    }
    if (ticksUp) {
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      for (const value of steps(bottom, top, area.height / 50)) {
        const y = Math.round(area.y(value)) + 0.5;
        pen.beginPath();
        pen.moveTo(area.left - 4, y);
        pen.lineTo(grid ? area.left + area.width : area.left, y);
        pen.stroke();
        pen.fillText(shown(value), area.left - 7, y);
      }
    }
    pen.textBaseline = "top";
    pen.textAlign = "right";
    if (across) pen.fillText(across, area.left + area.width, base + 20, area.width);
    pen.textAlign = "left";
    if (up) pen.fillText(up, 2, area.top - 16, area.width);
    pen.restore();
  }

  const SHAPES = {
    circle: (pen, size) => pen.arc(0, 0, size, 0, 2 * Math.PI),
    diamond: (pen, size) => {
      pen.moveTo(0, -size);
      pen.lineTo(size, 0);
      pen.lineTo(0, size);
      pen.lineTo(-size, 0);
      pen.closePath();
    },
    star: (pen, size) => {
      for (let i = 0; i < 10; i += 1) {
        const reach = i % 2 ? 0.45 * size : size;
        const angle = (Math.PI * i) / 5 - Math.PI / 2;
        pen.lineTo(reach * Math.cos(angle), reach * Math.sin(angle));
      }
      pen.closePath();
    },
    triangle: (pen, size) => {
      pen.moveTo(0, -size);
      pen.lineTo(size, 0.8 * size);
      pen.lineTo(-size, 0.8 * size);
      pen.closePath();
    },
    square: (pen, size) => pen.rect(-0.85 * size, -0.85 * size, 1.7 * size, 1.7 * size),
    cross: (pen, size) => {
      pen.moveTo(-size, -size);
      pen.lineTo(size, size);
      pen.moveTo(size, -size);
      pen.lineTo(-size, size);
    },
    tick: (pen, size) => {
      pen.moveTo(0, -size);
      pen.lineTo(0, size);
    },
  };

  /** Draw a mark; `halo` is a colour around it, for marks on a picture. */
  function mark(pen, shape, x, y, { size, fill = "", stroke = "", halo = "", line = 1.75 }) {
    pen.save();
    pen.translate(x, y);
    pen.beginPath();
    SHAPES[shape](pen, size);
    if (halo) {
      pen.strokeStyle = halo;
      pen.lineWidth = (stroke ? line : 0) + 3;
      pen.stroke();
    }
    if (fill) {
      pen.fillStyle = fill;
      pen.fill();
    }
    if (stroke) {
      pen.strokeStyle = stroke;
      pen.lineWidth = line;
      pen.stroke();
    }
    pen.restore();
  }

  function curve(pen, area, places, height) {
    pen.beginPath();
    let drawing = false;
    for (let i = 0; i < places.length; i += 1) {
      const value = height(i);
      if (Number.isNaN(value)) drawing = false;
      else if (drawing) pen.lineTo(area.x(places[i]), area.y(value));
      else {
        pen.moveTo(area.x(places[i]), area.y(value));
        drawing = true;
      }
    }
    pen.stroke();
  }

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
    eachAsked(at, ([place]) => {
      pen.beginPath();
      pen.moveTo(area.x(place), base);
      pen.lineTo(area.x(place), base - 9);
      pen.stroke();
    });
    pen.restore();
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
    eachAsked(at, (coordinates) => {
      mark(pen, "diamond", ...place(coordinates), {
        size: site ? site + 2 : 4,
        stroke: colour("--mark-expert"),
        halo: paper,
        line: 1.5,
      });
    });
    mark(pen, "circle", ...place(at.played), {
      size: site ? Math.max(6, site + 1) : 8.5,
      fill: site ? "" : colour("--mark-own"),
      stroke: site ? colour("--mark-own") : "",
      halo: paper,
      line: 3,
    });
    // The smaller on top: where the best point is played, both are seen.
    mark(pen, "star", ...place(at.best), { size: 6.5, fill: colour("--mark-best"), halo: paper });
    pen.restore();
  }

  // More dimensions: a strip for each coordinate

  function drawStrips(at) {
    const { film } = state;
    const { rounds, dimensions } = film;
    const strip = dimensions > 6 ? 52 : 72;
    const { pen, width } = prepared(sheets.scene, 24 + strip * dimensions + 14);
    const times = film.frames.map((row) => rounds.played_at[row]);
    const span = extremes(times);
    for (let axis = 0; axis < dimensions; axis += 1) {
      const box = { left: 46, top: 24 + axis * strip, width: width - 58, height: strip - 22 };
      const area = plot(box, span, [film.lower[axis], film.upper[axis]]);
      const last = axis === dimensions - 1;
      pen.fillStyle = colour("--muted");
      pen.textAlign = "left";
      pen.fillText(film.coordinates[axis], area.left, area.top - 5, area.width);
      pen.strokeStyle = colour("--line");
      pen.strokeRect(area.left + 0.5, area.top + 0.5, area.width - 1, area.height - 1);
      pen.textAlign = "right";
      pen.fillText(shown(film.upper[axis]), area.left - 6, area.top + 10);
      pen.fillText(shown(film.lower[axis]), area.left - 6, area.top + area.height);
      pen.textAlign = "left";
      if (last) axes(pen, area, { across: "time", grid: false, ticksUp: false });
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
      eachAsked(at, (coordinates) => {
        mark(pen, "diamond", x, area.y(coordinates[axis]), {
          size: 4,
          stroke: colour("--mark-expert"),
        });
      });
      mark(pen, "circle", x, area.y(at.played[axis]), {
        size: 5,
        fill: colour("--mark-own"),
        halo: colour("--paper"),
      });
    }
  }

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

  // Regret over the play, above the slider

  function drawRegrets() {
    const { film, frame } = state;
    const { pen, width, height } = prepared(sheets.regret, 42);
    const [edge, count] = [8, film.frames.length];
    const x = (k) => edge + (count > 1 ? k / (count - 1) : 0.5) * (width - 2 * edge);
    const y = (k) => {
      const share = film.rounds.regret[film.frames[k]] / film.highRegret;
      return height - 2 - Math.min(1, Math.max(0, share)) * (height - 16);
    };
    pen.beginPath();
    pen.moveTo(x(0), height);
    for (let k = 0; k < count; k += 1) pen.lineTo(x(k), y(k));
    pen.lineTo(x(count - 1), height);
    pen.fillStyle = colour("--mark-best");
    pen.globalAlpha = 0.25;
    pen.fill();
    pen.globalAlpha = 1;
    pen.fillStyle = colour("--muted");
    pen.fillText("regret", edge, 11);
    mark(pen, "circle", x(frame), y(frame), {
      size: 4,
      fill: colour("--mark-best"),
      halo: colour("--paper"),
    });
  }

  // Parts of a whole that the optimizer noted, such as how much it believes in each of its models

  /** Make a line of text and an empty bar for each whole of the film. */
  function layOutShares() {
    const { shares } = state.film;
    const place = find(".replay-shares");
    place.hidden = !shares.length;
    place.replaceChildren(
      ...shares.map(({ parts, colours: numbers }) => {
        const box = document.createElement("div");
        const bar = document.createElement("div");
        bar.className = "replay-bar";
        bar.setAttribute("aria-hidden", "true"); // The text above it says as much.
        parts.forEach((part, i) => {
          const piece = document.createElement("span");
          piece.style.borderTopColor = `var(--share-${numbers[i]})`;
          piece.append(document.createElement("b"));
          piece.firstChild.textContent = part;
          bar.append(piece);
        });
        box.append(document.createElement("p"), bar);
        return box;
      }),
    );
  }

  /** Show the shares of the frame, and say them in words, the largest first. */
  function drawShares() {
    const { film, frame } = state;
    const boxes = find(".replay-shares").children;
    return film.shares.map(({ group, parts, values }, i) => {
      const now = point(values, frame, parts.length);
      const known = parts
        .map((part, k) => ({ part, per: Math.round(100 * now[k]) }))
        .filter(({ per }) => per >= 1)
        .sort((a, b) => b.per - a.per);
      const words = known.map(({ part, per }) => `${part} (${per} %)`).join(", ");
      const none = now.some(Number.isFinite) ? "each below 1 %" : "nothing noted in this round";
      const told = `${group}: ${words || none}`;
      const [text, bar] = boxes[i].children;
      text.textContent = told;
      const pieces = [...bar.children];
      pieces.forEach((piece, k) => {
        const share = now[k] > 0 ? now[k] : 0;
        piece.style.flexGrow = share;
        piece.hidden = share < 0.002; // Less than the gap beside it.
        piece.title = `${parts[k]}: ${(100 * share).toFixed(1)} %`;
      });
      // Half a number would be another number.
      const fits = pieces.map((piece) => piece.firstChild.offsetWidth <= piece.clientWidth);
      pieces.forEach((piece, k) => (piece.firstChild.style.visibility = fits[k] ? "" : "hidden"));
      return told;
    });
  }

  // The player

  const DRAW = {
    line: drawLine,
    field: (at) => drawPanels(at, drawField),
    map: (at) => drawPanels(at, drawMap),
    strips: drawStrips,
  };

  function draw() {
    state.waiting = false;
    const { film, frame } = state;
    if (!root.clientWidth) return;
    colours = {};
    const at = moment();
    DRAW[film.scene](at);
    drawTimeline(at);
    drawRegrets();
    const believed = drawShares();
    const told = {
      round: `${at.round} of ${film.total}`,
      time: shown(at.now),
      regret: shown(at.regret),
      average: shown(film.rounds.average[at.row]),
      spent: shown(film.rounds.spent[at.row]),
    };
    for (const [name, text] of Object.entries(told)) find(`[data-of=${name}]`).textContent = text;
    const places = (coordinates) => coordinates.map(shown).join(", ");
    slider.setAttribute(
      "aria-valuetext",
      [`round ${told.round}, time ${told.time}, regret ${told.regret}`, ...believed].join("; "),
    );
    sheets.scene.canvas.setAttribute(
      "aria-label",
      `${film.title}, round ${told.round}: played ${places(at.played)}, best ` +
        `${places(at.best)}, regret ${told.regret}`,
    );
    const underway = tellNow(at.now);
    sheets.timeline.canvas.setAttribute(
      "aria-label",
      `Queries around time ${told.time}${underway && `; now: ${underway}`}`,
    );
    root.dataset.frame = frame;
  }

  function redraw() {
    if (state.waiting) return;
    state.waiting = true;
    requestAnimationFrame(draw);
  }

  function seek(frame) {
    state.frame = Math.max(0, Math.min(state.film.frames.length - 1, Math.round(frame)));
    slider.value = state.frame;
    hideTips();
    redraw();
  }

  function setPlaying(playing) {
    if (playing && state.frame >= state.film.frames.length - 1) seek(0);
    if (playing && !state.playing) {
      state.due = performance.now() + 1000 / Number(speed.value);
      requestAnimationFrame(tick);
    }
    state.playing = playing;
    playButton.setAttribute("aria-pressed", String(playing));
    playButton.querySelector("span").textContent = playing ? "Pause" : "Play";
  }

  function tick(time) {
    if (!state.playing) return;
    const lasts = 1000 / Number(speed.value);
    if (time >= state.due) {
      const late = Math.floor((time - state.due) / lasts);
      // A tab that was in the background does not catch up.
      state.due = late > 5 ? time + lasts : state.due + (late + 1) * lasts;
      seek(state.frame + (late > 5 ? 1 : late + 1));
      if (state.frame >= state.film.frames.length - 1) {
        setPlaying(false);
        return;
      }
    }
    requestAnimationFrame(tick);
  }

  function choose(index) {
    // Of another play, the same time is shown.
    const now = state.film ? moment().now : 0;
    state.film = ready(films[index]);
    const { film } = state;
    [...find(".replay-tabs").children].forEach((button, i) => {
      button.setAttribute("aria-pressed", String(i === index));
    });
    find(".replay-notes").textContent = film.notes.join(" ");
    layOutShares();
    const { replies, lanes } = film;
    const lasts = (i) => replies.arrived_at[i] > replies.asked_at[i];
    const needs = {
      belief: Boolean(film.fields.mean),
      experts: lanes.sources.length > 1,
      waiting: replies.served.some((share, i) => share > 0 && lasts(i)),
      service: replies.sent.some((share, i) => share > replies.served[i] && !film.lives.of.has(i)),
      transit: replies.sent.some((share, i) => share < 1 && lasts(i) && !film.lives.of.has(i)),
      retries: replies.attempt.some((attempt) => attempt > 1),
    };
    for (const fate of new Set(replies.fate)) needs[lanes.fates[fate]] = true;
    for (const name of film.lives.names) needs[PHASES[name] ? `phase-${name}` : "phase-other"] = true;
    const among = (words, test) => !words || words.split(" ").some(test);
    for (const item of root.querySelectorAll("[data-scenes], [data-needs]")) {
      const { scenes, needs: needed } = item.dataset;
      item.hidden = !among(scenes, (scene) => scene === film.scene) || !among(needed, (n) => needs[n]);
    }
    for (const view of views) {
      view.disabled = view.value !== "true" && !needs.belief;
      view.checked = view.value === (needs.belief ? state.view : "true");
    }
    slider.max = film.frames.length - 1;
    const next = film.frames.findIndex((row) => film.rounds.played_at[row] >= now - 1e-6);
    seek(next < 0 ? film.frames.length - 1 : next);
  }

  // What a finger or a pointer touches

  function hideTips() {
    for (const tip of root.querySelectorAll(".replay-tip")) tip.hidden = true;
  }

  function touched(sheet, event) {
    const tip = sheet.canvas.parentElement.querySelector(".replay-tip");
    const { offsetX: x, offsetY: y } = event;
    let nearest = null;
    let least = Infinity;
    for (const spot of sheet.spots) {
      const across = Math.max(0, Math.abs(x - spot.x) - (spot.half ?? 0));
      const distance = Math.hypot(across, y - spot.y);
      if (distance <= spot.reach && distance < least) {
        nearest = spot;
        least = distance;
      }
    }
    tip.hidden = !nearest;
    if (!nearest) return;
    tip.textContent = nearest.text();
    const left = Math.min(x + 12, sheet.canvas.clientWidth - tip.offsetWidth - 4);
    const above = y - tip.offsetHeight - 10;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${above < 0 ? y + 14 : above}px`;
  }

  for (const sheet of [sheets.scene, sheets.timeline]) {
    for (const kind of ["pointermove", "pointerdown"]) {
      sheet.canvas.addEventListener(kind, (event) => touched(sheet, event));
    }
    sheet.canvas.addEventListener("pointerleave", hideTips);
  }

  function seekByPointer(event) {
    if (event.type === "pointermove" && !event.buttons) return;
    const share = (event.offsetX - 8) / Math.max(1, sheets.regret.canvas.clientWidth - 16);
    setPlaying(false);
    seek(share * (state.film.frames.length - 1));
  }
  sheets.regret.canvas.addEventListener("pointerdown", seekByPointer);
  sheets.regret.canvas.addEventListener("pointermove", seekByPointer);

  slider.addEventListener("input", () => {
    setPlaying(false);
    seek(Number(slider.value));
  });
  playButton.addEventListener("click", () => setPlaying(!state.playing));
  for (const button of root.querySelectorAll(".replay-step")) {
    button.addEventListener("click", () => {
      setPlaying(false);
      seek(state.frame + Number(button.dataset.step));
    });
  }
  for (const view of views) {
    view.addEventListener("change", () => {
      state.view = view.value;
      redraw();
    });
  }

  const MOVES = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };
  root.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (target.matches("select, [type=radio]")) return;
    if (key === " " && !target.matches("button")) setPlaying(!state.playing);
    else if (key in MOVES) {
      setPlaying(false);
      seek(state.frame + MOVES[key]);
    } else return;
    event.preventDefault();
  });

  films.forEach((film, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = film.title;
    button.addEventListener("click", () => choose(index));
    find(".replay-tabs").append(button);
  });
  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  if (reduced.matches) speed.value = "2";
  root.hidden = false;
  if (root.clientWidth >= WIDE) state.view = "all";
  choose(0);
  seek(Math.floor((state.film.frames.length - 1) / 4));
  new ResizeObserver(redraw).observe(root);
  document.addEventListener("themechange", draw); // At once: a printer does not wait.
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
})();
