// Queries that are touched: in the timeline and in the scene at once, by a pointer or by keys

/** Show which queries are touched, if others were before. */
function brush(queries) {
  const { brushed } = state;
  if (queries.length === brushed.size && queries.every((i) => brushed.has(i))) return;
  state.brushed = new Set(queries);
  redraw();
}

/** Ring the points of the queries that are touched; `place` says where a point is in the scene. */
function drawBrushedPoints(pen, at, place) {
  const { film, brushed } = state;
  const { replies, firsts, dimensions } = film;
  for (const i of brushed) {
    // What is not known yet is not shown.
    const known = replies.arrived_at[i] <= at.now + 1e-6;
    for (let j = 0; j < Math.round(replies.size[i]); j += 1) {
      const row = firsts[i] + j;
      const value = known ? replies.value[row] : NaN;
      const [x, y] = place(point(replies.point, row, dimensions), { value, query: i });
      mark(pen, "circle", x, y, {
        size: 8,
        stroke: colour("--mark-now"),
        halo: colour("--paper"),
        line: 2,
      });
    }
  }
}

/** Let a mark in the scene be touched that stands for a query. */
function addPointSpot(i, [x, y]) {
  sheets.scene.spots.push({ x, y, reach: 8, queries: () => [i], text: () => tellQuery(i) });
}

/** Find the queries about a site that the timeline shows now. */
function findAbout(site) {
  const { replies, firsts, dimensions, axes: across, lower, upper } = state.film;
  return inOrder(state.film).filter(isInSight).filter((i) => {
    for (let j = 0; j < Math.round(replies.size[i]); j += 1) {
      const asked = point(replies.point, firsts[i] + j, dimensions);
      const close = (axis, k) => Math.abs(asked[axis] - site[k]) <= 1e-3 * (upper[axis] - lower[axis]);
      if (across.every(close)) return true;
    }
    return false;
  });
}

/** Frame the bars of the queries that are touched; those without one are lines above their area. */
function drawBrushedQueries(pen, area, rows) {
  const { replies } = state.film;
  pen.strokeStyle = pen.fillStyle = colour("--mark-now");
  pen.lineWidth = 1.5;
  for (const i of state.brushed) {
    const bar = placeQuery(i, area, rows);
    if (bar) {
      const { x, end, y, lane } = bar;
      const left = Math.min(startOf(i, area), x) - 6;
      const high = Math.max(8, lane);
      pen.beginPath();
      pen.roundRect(left, y - high / 2, end + 6 - left, high, 4);
      pen.stroke();
    } else {
      const [x, end] = [replies.asked_at[i], replies.arrived_at[i]].map(area.x);
      pen.fillRect(x - 1, rows.tops[replies.source[i]] - 3, Math.max(2, end - x), 3);
    }
  }
}

// By keys

/** List the queries in the order in which they were asked. */
function inOrder(film) {
  const asked = film.replies.asked_at;
  film.order ??= [...asked.keys()].sort((a, b) => asked[a] - asked[b] || a - b);
  return film.order;
}

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, PageUp: -10, PageDown: 10 };
const ENDS_OF_PLAY = { Home: 0, End: Infinity };

/** Go to another query: from the one that is touched, or from the last that was asked by now. */
function goToQuery(key) {
  const order = inOrder(state.film);
  const { asked_at: asked } = state.film.replies;
  if (!order.length) return;
  let place = order.indexOf(state.cursor);
  if (key in ENDS_OF_PLAY) place = ENDS_OF_PLAY[key];
  else if (place >= 0) place += STEPS[key];
  else place = order.filter((i) => asked[i] <= moment().now).length - 1;
  const i = order[Math.max(0, Math.min(order.length - 1, place))];
  if (!isInSight(i)) seek(findFrame(asked[i]));
  state.cursor = i;
  find(".replay-heard").textContent = tellQuery(i);
  brush([i]);
}

/** Find the first frame at a moment or after it. */
function findFrame(time) {
  const { frames, rounds } = state.film;
  const next = frames.findIndex((row) => rounds.played_at[row] >= time - 1e-6);
  return next < 0 ? frames.length - 1 : next;
}

function isInSight(i) {
  const { replies, window: [before, after] } = state.film;
  const { now } = moment();
  const begin = Math.max(0, now - before);
  return replies.arrived_at[i] >= begin && replies.asked_at[i] <= begin + before + after;
}

/** Show the tip of the query that was gone to by keys, beside its bar. */
function showTipOfCursor(area, rows) {
  const i = state.cursor;
  if (i === null || !isInSight(i)) return;
  const bar = placeQuery(i, area, rows);
  const { asked_at: asked, source } = state.film.replies;
  const [x, y] = bar ? [(bar.x + bar.end) / 2, bar.y] : [area.x(asked[i]), rows.tops[source[i]]];
  showTip(sheets.timeline, tellQuery(i), x, y);
}

function leaveQueries() {
  state.cursor = null;
  find(".replay-heard").textContent = "";
  hideTips();
  brush([]);
}

sheets.timeline.canvas.addEventListener("keydown", (event) => {
  const { key } = event;
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (key in STEPS || key in ENDS_OF_PLAY) {
    setPlaying(false);
    goToQuery(key);
  } else if (key === "Enter" && state.cursor !== null) {
    goTo(findFrame(state.film.replies.asked_at[state.cursor]));
  } else if (key === "Escape") {
    leaveQueries();
    event.target.blur();
  } else return;
  event.preventDefault();
  event.stopPropagation(); // The arrows do not move the replay as well.
});
sheets.timeline.canvas.addEventListener("blur", leaveQueries);
