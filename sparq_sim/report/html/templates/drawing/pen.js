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

function axes(pen, area, options = {}) {
  const { across = "", up = "", grid = true, ticksUp = true, ticksAcross = true } = options;
  const [left, right, bottom, top] = area.limits;
  const base = area.top + area.height;
  pen.save();
  pen.strokeStyle = colour("--line");
  pen.fillStyle = colour("--muted");
  pen.lineWidth = 1;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const value of ticksAcross ? steps(left, right, area.width / 80) : []) {
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
