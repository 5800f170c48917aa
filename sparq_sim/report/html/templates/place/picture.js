// Place over time: what the page was given, unpacked

const root = document.getElementById("places");
const find = (selector) => root.querySelector(selector);
const { grounds, pictures } = JSON.parse(document.getElementById("place-data").textContent);
const state = { picture: null, rows: [], whole: false, waiting: false };
const STOPS = [1, 2, 3, 4, 5];

for (const ground of grounds) {
  for (const name of ["times", "heights", "best", "rewards"]) {
    ground[name] = unpacked(ground[name]);
  }
}

/** Unpack a picture when it is first shown. */
function ready(picture) {
  if (picture.unpacked) return picture;
  picture.unpacked = true;
  picture.ground = picture.ground === null ? null : grounds[picture.ground];
  for (const row of picture.rows) {
    for (const name of ["round", "time", "height", "value", "moved"]) {
      row[name] = unpacked(row[name]);
    }
  }
  return picture;
}

/** Say how bad a value is: from 0 to 1, as sparq_sim/report/place/data.py does. */
function badness(value) {
  const [good, bad] = state.picture.paint;
  return Math.sqrt(Math.max(0, Math.min(1, (value - good) / (bad - good || 1))));
}

/** Give a colour of a ramp of the style, at a share of its length, as red, green and blue. */
function rampAt(name, share) {
  const place = share * (STOPS.length - 1);
  const i = Math.min(STOPS.length - 2, Math.floor(place));
  const [from, to] = [i, i + 1].map((k) => {
    const hex = colour(`--${name}-${STOPS[k]}`);
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  });
  return from.map((part, c) => Math.round(part + (place - i) * (to[c] - part)));
}

/** Give the places that are shown: the whole domain, or the part in which the best point moves. */
function limits() {
  const { picture, whole } = state;
  return picture.window && !whole ? picture.window : picture.limits;
}

/** Call a place by its name, if it is a site, or by its number. */
function named(height) {
  const { kind, names } = state.picture;
  return kind === "sites" ? (names[Math.round(height)] ?? "–") : shown(height);
}

/** Say what happened in a round of a row. */
function tell(row, i) {
  const { kind, label, word, ground } = state.picture;
  const place = { coordinate: label, sites: "site", distance: "distance to the best" }[kind];
  let where = `${place} ${named(row.height[i])}`;
  if (ground && kind !== "distance") where += `, best ${named(ground.best[nearest(ground.times, row.time[i])])}`;
  const idle = row.moved[i] ? "" : ", without a move";
  return `round ${row.round[i]}, time ${shown(row.time[i])}${idle}\n${where}\n${word} ${shown(row.value[i])}`;
}

/** Find the nearest of numbers that grow. */
function nearest(numbers, wanted) {
  let [low, high] = [0, numbers.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < wanted) low = middle;
    else high = middle;
  }
  return wanted - numbers[low] < numbers[high] - wanted ? low : high;
}
