// A frame in words

/** Tell a frame in a sentence: who was silent, how old the newest answers are, what was played. */
function tellFrame(shot) {
  const parts = [...tellOutages(shot), ...tellAges(shot), ...tellPlayed(shot)];
  return `Round ${shot.at.round}: ${parts.join("; ")}.`;
}

const listExperts = (film) =>
  film.lanes.sources.map((name, source) => ({ name, source })).filter(({ source }) => source !== film.reward);

/** Say whether a source was out when a round began: as declared, or as queries were refused. */
function isOut({ lanes, replies, period }, source, started) {
  if (lanes.outages?.[source]?.some(([from, to]) => from <= started && started < to)) return true;
  const outage = lanes.fates.indexOf("outage");
  return replies.asked_at.some(
    (asked, i) =>
      replies.source[i] === source &&
      replies.fate[i] === outage &&
      asked >= started - 1e-6 &&
      asked < started + period - 1e-6,
  );
}

function tellOutages({ film, at }) {
  return listExperts(film)
    .filter(({ source }) => isOut(film, source, at.started))
    .map(({ name, source }) => {
      const before = isOut(film, source, at.started - film.period);
      return `the outage of ${name} ${before ? "goes on" : "begins"}`;
    });
}

/** Say how old the newest answer of each expert is that had arrived. */
function tellAges({ film, at }) {
  const { replies, lanes } = film;
  const answered = lanes.fates.indexOf("answered");
  return listExperts(film).map(({ name, source }) => {
    let newest = -Infinity;
    replies.measured_at.forEach((measured, i) => {
      const known = replies.arrived_at[i] <= at.now + 1e-6 && replies.asked_at[i] < at.now - 1e-6;
      if (known && replies.source[i] === source && replies.fate[i] === answered) {
        newest = Math.max(newest, measured);
      }
    });
    return newest > -Infinity
      ? `the newest answer of ${name} is ${shown(at.now - newest)} old`
      : `no answer of ${name} in the last ${shown(Math.min(at.now, film.window[0]))}`;
  });
}

function tellPlayed({ film, at }) {
  const where = film.scene === "map" ? tellSites(film, at) : tellDistance(film, at);
  const lost = at.regret > 1e-9 ? `lost ${shown(at.regret)}` : "lost nothing";
  return [...(at.moved ? [] : ["no move came in time"]), `${where}, ${lost}`];
}

function tellDistance({ coordinates, lower, upper, dimensions }, { played, best }) {
  const apart = played.map((value, axis) => Math.abs(value - best[axis]));
  const near = apart.every((gap, axis) => gap <= 1e-3 * (upper[axis] - lower[axis]));
  if (near) return "played the best point";
  if (dimensions === 1) return `played ${shown(apart[0])} from the best`;
  const gaps = apart.slice(0, 3).map((gap, axis) => `${shown(gap)} in ${coordinates[axis]}`);
  return `played ${gaps.join(", ")}${dimensions > 3 ? " …" : ""} from the best`;
}

function tellSites({ names, places, axes: [across, up] }, { played, best }) {
  const find = (coordinates) => {
    const distances = places.map(([x, y]) => Math.hypot(x - coordinates[across], y - coordinates[up]));
    return names[distances.indexOf(Math.min(...distances))];
  };
  const [here, there] = [find(played), find(best)];
  return here === there ? `played ${here}, the best` : `played ${here}, where ${there} was best`;
}

/** Say which rounds between a frame and the next are not filmed. */
function tellSkipped({ film, frame, at }) {
  const next = film.rounds.round[film.frames[frame + 1]];
  const skipped = next - at.round - 1;
  if (!(skipped > 0)) return "";
  return skipped === 1
    ? ` Round ${next - 1} is not filmed.`
    : ` Rounds ${at.round + 1} to ${next - 1} are not filmed.`;
}
