// Films: what the page was given, unpacked, and what a frame of it is

const root = document.getElementById("replay");
const films = JSON.parse(document.getElementById("replay-data").textContent).filter(
  (film) => !film.missing,
);
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
const WIDE = 620; // pixels, from which on three pictures find room side by side
const state = {
  film: null, frame: 0, playing: false, view: "true", due: 0, waiting: false,
  brushed: new Set(), // Numbers of the queries that are touched, in the timeline or in the scene.
  cursor: null, // Number of the query that was gone to by keys.
};

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
  film.lives = lives(film.lanes);
  film.lanes.areas = film.lanes.areas.map(readArea);
  const regrets = film.frames.map((round) => film.rounds.regret[round]).sort((a, b) => a - b);
  film.highRegret = Math.max(1e-12, regrets[Math.floor(0.98 * (regrets.length - 1))]);
  return film;
}

/** Unpack the phases of queries, by journey. */
function lives({ phases, strips }) {
  const { names, words, nodes, ...packed } = phases;
  const of = new Map();
  const columns = unpackedAll(packed);
  columns.journey.forEach((journey, i) => {
    if (!of.has(journey)) of.set(journey, []);
    of.get(journey).push(i);
  });
  return { ...columns, names, words, nodes, of, strips };
}

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

/** Call back with each point asked about in the round of a frame, and the number of its query. */
function eachAsked(at, visit) {
  const { film } = state;
  const { asked_at: askedAt, source, asked, size, point: points } = film.replies;
  for (let i = 0; i < askedAt.length; i += 1) {
    if (source[i] === film.reward || !asked[i]) continue;
    if (askedAt[i] < at.started - 1e-6 || askedAt[i] >= at.started + film.period - 1e-6) continue;
    for (let j = 0; j < Math.round(size[i]); j += 1) {
      visit(point(points, film.firsts[i] + j, film.dimensions), i);
    }
  }
}
