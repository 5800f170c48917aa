// Drawing the rows

/** Paint the true reward, a pixel per time and place. */
function groundImage(ground) {
  const [across, up] = [ground.times.length, ground.heights.length];
  const canvas = Object.assign(document.createElement("canvas"), { width: across, height: up });
  const pen = canvas.getContext("2d");
  const pixels = pen.createImageData(across, up);
  const [low, high] = ground.range;
  const ramp = Array.from({ length: 65 }, (_, k) => rampAt("ground", k / 64));
  for (let i = 0; i < across; i += 1) {
    for (let j = 0; j < up; j += 1) {
      const value = ground.rewards[i * up + j];
      if (Number.isNaN(value)) continue;
      const share = Math.max(0, Math.min(1, (value - low) / (high - low || 1)));
      const at = 4 * ((up - 1 - j) * across + i);
      pixels.data.set(ramp[Math.round(64 * share)], at);
      pixels.data[at + 3] = 255;
    }
  }
  pen.putImageData(pixels, 0, 0);
  return canvas;
}

function drawGround(pen, area, ground, image) {
  const { times, heights } = ground;
  const sites = state.picture.kind === "sites";
  // Values are those at the centres of pixels; a site is as high as its pixel.
  const [first, last] = sites ? [-0.5, heights.length - 0.5] : [heights[0], heights.at(-1)];
  const [top, bottom] = [area.y(last), area.y(first)];
  const rows = sites ? heights.length : Math.max(1, heights.length - 1);
  pen.imageSmoothingEnabled = !sites;
  pen.imageSmoothingQuality = "high";
  const above = sites || heights.length < 2 ? 0 : 0.5;
  const half = times.length > 1 ? (times.at(-1) - times[0]) / (2 * (times.length - 1)) : Infinity;
  const left = Math.max(area.left, area.x(times[0] - half));
  const right = Math.min(area.left + area.width, area.x(times.at(-1) + half));
  pen.drawImage(image, 0, above, times.length, rows, left, top, right - left, bottom - top);
}

function drawBest(pen, area, { times, best }) {
  pen.strokeStyle = colour("--ink");
  pen.lineWidth = 1.25;
  pen.globalAlpha = 0.75;
  if (state.picture.kind !== "sites") {
    curve(pen, area, times, (i) => best[i]);
  } else {
    pen.beginPath();
    for (let i = 0; i < times.length; i += 1) {
      const [from, to] = [(times[i - 1] ?? times[i]) + times[i], times[i] + (times[i + 1] ?? times[i])];
      pen.moveTo(area.x(from / 2), area.y(best[i]));
      pen.lineTo(Math.max(area.x(to / 2), area.x(from / 2) + 1), area.y(best[i]));
    }
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

function drawDots(pen, area, row) {
  const count = row.time.length;
  const room = area.width / Math.max(1, count);
  const size = Math.max(1.4, Math.min(3.2, 1.1 + 0.55 * room));
  const styles = Array.from({ length: 65 }, (_, k) => `rgb(${rampAt("regret", k / 64).join()})`);
  const [bottom, top] = limits();
  for (let i = 0; i < count; i += 1) {
    const x = area.x(row.time[i]);
    const known = !Number.isNaN(row.value[i]);
    const fill = known ? styles[Math.round(64 * badness(row.value[i]))] : colour("--muted");
    const height = row.height[i];
    if (height < bottom || height > top) {
      const edge = area.y(height < bottom ? bottom : top);
      pen.fillStyle = fill;
      pen.globalAlpha = 0.75;
      pen.fillRect(x - 0.75, height < bottom ? edge - 5 : edge, 1.5, 5);
      pen.globalAlpha = 1;
    } else if (!known) mark(pen, "cross", x, area.y(height), { size: size * 0.8, stroke: fill, line: 1 });
    else if (!row.moved[i]) mark(pen, "circle", x, area.y(height), { size, stroke: fill, line: 1 });
    else if (size < 1.8) {
      pen.fillStyle = fill;
      pen.fillRect(x - size, area.y(height) - size, 2 * size, 2 * size);
    } else mark(pen, "circle", x, area.y(height), { size, fill });
  }
}

/** Say how far to the right of the edge a row begins: names of sites need room. */
function gutter(pen) {
  const { kind, names } = state.picture;
  const widest = kind === "sites" ? Math.max(...names.map((name) => pen.measureText(name).width)) : 0;
  return Math.min(Math.max(44, widest + 12), root.clientWidth * 0.22);
}

function drawPlaces(pen, area, isLast) {
  const { kind, names } = state.picture;
  if (kind !== "sites") {
    axes(pen, area, { grid: false, ticksAcross: isLast });
    return;
  }
  const each = area.height / names.length;
  const step = Math.ceil(10 / each);
  pen.save();
  pen.fillStyle = colour("--muted");
  pen.font = pen.font.replace("12px", "10px");
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (let k = names.length - 1; k >= 0; k -= step) {
    pen.fillText(names[k], area.left - 6, area.y(k), area.left - 8);
  }
  pen.restore();
  if (isLast) axes(pen, area, { grid: false, ticksUp: false });
}

function rowHeight() {
  const { kind, names, rows } = state.picture;
  const usual = rows.length > 8 ? 76 : rows.length > 4 ? 96 : 128;
  return kind === "sites" ? Math.max(usual, Math.min(210, 7 * names.length)) : usual;
}

function drawRow({ sheet, row }, image, isLast) {
  const { picture } = state;
  const [tall, foot] = [rowHeight(), isLast ? 40 : 8];
  const { pen, width } = prepared(sheet, tall + foot + 6);
  const left = gutter(pen);
  const [from, to] = picture.span;
  // Half a cell of the ground, which lies around its time.
  const cells = picture.ground ? picture.ground.times.length - 1 : 240;
  const room = cells > 0 && to > from ? (0.5 * (to - from)) / cells : 0.5;
  const box = { left, top: 6, width: Math.max(40, width - left - 6), height: tall };
  const area = plot(box, [from - room, to + room], limits());
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top, area.width, area.height);
  pen.fillStyle = colour("--ground-1");
  pen.fill();
  pen.clip();
  if (picture.ground) {
    if (image) drawGround(pen, area, picture.ground, image);
    drawBest(pen, area, picture.ground);
  }
  pen.restore();
  drawDots(pen, area, row);
  drawPlaces(pen, area, isLast);
  if (isLast) {
    pen.fillStyle = colour("--muted");
    pen.textAlign = "right";
    pen.fillText("time", area.left + area.width, area.top + tall + 34);
    pen.textAlign = "left";
  }
  sheet.area = area;
}

function draw() {
  state.waiting = false;
  if (!root.clientWidth) return;
  colours = {};
  const { ground } = state.picture;
  const image = ground && ground.rewards.length ? groundImage(ground) : null;
  state.rows.forEach((each, i) => drawRow(each, image, i === state.rows.length - 1));
  point(null);
}

function redraw() {
  if (state.waiting) return;
  state.waiting = true;
  requestAnimationFrame(draw);
}
