// Films: what the page was given, unpacked, and what a frame of it is

const root = document.getElementById("replay");
const data = JSON.parse(document.getElementById("replay-data").textContent);
const { films } = data;
const find = (selector) => root.querySelector(selector);
const slider = find(".replay-slider");
const playButton = find(".replay-play");
const speed = find(".replay-speed select");
const views = [...root.querySelectorAll("[name=replay-view]")];
const sheets = {};
for (const name of ["scene", "rival", "timeline", "regret"]) {
  sheets[name] = { canvas: find(`.replay-${name}`), spots: [] };
}
const TRAIL = 8;
const WIDE = 860; // pixels, from which on four pictures find room side by side
const NARROW = 380; // pixels, below which not even two do
const state = {
  film: null, frame: 0, playing: false, view: "true", due: 0, waiting: false,
  rival: null, // The film of another optimizer that is shown as well.
  chosen: null, // Which play is shown: its optimizer, setting and draw.
  brushed: new Set(), // Numbers of the queries that are touched, in the timeline or in the scene.
  cursor: null, // Number of the query that was gone to by keys.
};

/** Unpack a film when it is first shown. */
function ready(film) {
  if (film.unpacked) return film;
  film.unpacked = true;
  film.dimensions = film.coordinates.length;
  film.best = unpacked(data.common[film.best]);
  film.rounds = unpackedAll(film.rounds);
  film.replies = unpackedAll(film.replies);
  film.width = unpacked(film.width);
  film.fields = { true: unpacked(data.common[film.true]), ...readBeliefs(film) };
  film.evidence = readEvidence(film.evidence);
  for (const whole of film.shares) whole.values = unpacked(whole.values);
  const { size } = film.replies;
  film.firsts = new Uint32Array(size.length);
  for (let i = 1; i < size.length; i += 1) {
    film.firsts[i] = film.firsts[i - 1] + Math.round(size[i - 1]);
  }
  film.reward = film.lanes.sources.indexOf("reward");
  film.lives = lives(film.lanes);
  film.lanes.areas = film.lanes.areas.map(readArea);
  film.regrets = unpacked(film.regrets);
  const regrets = [...film.regrets].filter(Number.isFinite).sort((a, b) => a - b);
  film.highRegret = Math.max(1e-12, regrets[Math.floor(0.98 * (regrets.length - 1))]);
  return film;
}

/** Unpack what was believed in each frame: mean, std, and the bound made of them. */
function readBeliefs({ mean: packed, std, width, frames }) {
  if (!packed) return {};
  const [mean, stds] = [unpacked(packed), unpacked(std)];
  const count = mean.length / frames.length;
  const bound = mean.map((value, i) => value + width[Math.floor(i / count)] * stds[i]);
  return { mean, bound, std: stds };
}

/** Unpack on which answers each belief rests: their stds by place, or null where nobody knows. */
function readEvidence(packed) {
  if (!packed) return null;
  const { counts, places, stds } = unpackedAll(packed);
  let next = 0;
  return Array.from(counts, (count) => {
    if (Number.isNaN(count)) return null;
    const used = new Map();
    for (const end = next + count; next < end; next += 1) {
      used.set(Math.round(places[next]), stds[next]);
    }
    return used;
  });
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
function moment(film = state.film, frame = state.frame) {
  const row = film.frames[frame];
  const { rounds, dimensions } = film;
  return {
    row,
    now: rounds.played_at[row],
    started: rounds.started_at[row],
    round: rounds.round[row],
    moved: rounds.moved[row] > 0,
    played: point(rounds.point, row, dimensions),
    best: point(film.best, frame, dimensions),
    reward: rounds.reward[row],
    highest: rounds.best[row],
    regret: rounds.regret[row],
  };
}

/** What of a quantity a frame shows: its value at each place of the scene. */
function valuesNow(film, frame, name) {
  const values = film.fields[name];
  const count = values.length / film.frames.length;
  return values.subarray(frame * count, (frame + 1) * count);
}

/** Find the frame of a round, or the one nearest to it. */
function frameOf(film, round) {
  let nearest = 0;
  film.frames.forEach((row, frame) => {
    const distance = (at) => Math.abs(film.rounds.round[film.frames[at]] - round);
    if (distance(frame) < distance(nearest)) nearest = frame;
  });
  return nearest;
}

/** Call back with each point asked about in the round of a frame, and the number of its query. */
function eachAsked(at, visit, film = state.film) {
  const { asked_at: askedAt, source, asked, size, point: points } = film.replies;
  for (let i = 0; i < askedAt.length; i += 1) {
    if (source[i] === film.reward || !asked[i]) continue;
    if (askedAt[i] < at.started - 1e-6 || askedAt[i] >= at.started + film.period - 1e-6) continue;
    for (let j = 0; j < Math.round(size[i]); j += 1) {
      visit(point(points, film.firsts[i] + j, film.dimensions), i);
    }
  }
}

/** List the answers that the agent had when it chose, the oldest first, as far as they are shown. */
function listHeard({ film, frame, at }) {
  const { replies, dimensions } = film;
  const used = film.evidence?.[frame];
  const found = [];
  for (let i = 0; i < replies.asked_at.length; i += 1) {
    if (!(replies.arrived_at[i] <= at.now + 1e-6)) continue;
    const age = at.now - replies.measured_at[i];
    if (!(age <= film.window[0])) continue;
    // What was asked in this very move was not known when it was made, unless it rests on it.
    const later = replies.asked_at[i] > at.now - 1e-6;
    for (let j = 0; j < Math.round(replies.size[i]); j += 1) {
      const row = film.firsts[i] + j;
      const value = replies.value[row];
      if (Number.isNaN(value) || (later && !used?.has(row))) continue;
      found.push({
        query: i,
        source: replies.source[i],
        place: point(replies.point, row, dimensions),
        value,
        age: Math.max(0, age),
        fresh: 1 - Math.max(0, age) / film.window[0],
        used: used ? used.has(row) : undefined,
        claimed: replies.std[row],
        std: used?.get(row) ?? replies.std[row],
      });
    }
  }
  return found.sort((a, b) => b.age - a.age);
}

/** Say whether answers become less certain as they age, for all that is known. */
const isAged = ({ evidence, replies }) =>
  Boolean(evidence?.some((used) => [...(used ?? [])].some(([row, std]) => std > 1.05 * replies.std[row])));

/** Let a mark of an answer be touched; with the timeline, if it is of the film in the timeline. */
function addAnswerSpot({ film, sheet }, answer, [x, y], reach) {
  const told = () => tellHeard(film, answer);
  sheet.spots.push(
    film === state.film
      ? {
          x,
          y,
          reach,
          queries: () => [answer.query],
          text: () => `${told()}\n${tellQuery(answer.query)}`,
        }
      : { x, y, reach, text: told },
  );
}

/** Say how the marks of a source look: the agent's own observations, and each expert. */
function lookOf(film, source) {
  if (source === film.reward) return { shape: "circle", paint: "--mark-own" };
  const number = source - (film.reward >= 0 ? 1 : 0);
  const shapes = ["diamond", "triangle", "square"];
  return { shape: shapes[number % 3], paint: `--mark-expert-${1 + (number % 3)}` };
}

/** Tell an answer in words. */
function tellHeard(film, { source, value, std, claimed, age, used }) {
  const name = source === film.reward ? "own observation" : film.lanes.sources[source];
  const lines = [`${name}: ${shown(value)}${claimed > 0 ? ` ± ${shown(claimed)}` : ""}`];
  lines.push(`${shown(age)} old`);
  if (used === false) lines.push("no longer used");
  else if (used && std > 1.001 * claimed) lines.push(`counts as ± ${shown(std)} by now`);
  return lines.join("\n");
}
