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
  Object.assign(state, { brushed: new Set(), cursor: null });
  const { replies, lanes } = film;
  foldTimeline(lanes.instant);
  const lasts = (i) => replies.arrived_at[i] > replies.asked_at[i];
  const needs = {
    belief: Boolean(film.fields.mean),
    experts: lanes.sources.length > 1,
    waiting: replies.served.some((share, i) => share > 0 && lasts(i)),
    outages: lanes.outages.some((spans) => spans.length),
    areas: lanes.areas.some(Boolean),
    measured: replies.measured_at.some((t, i) => t < replies.arrived_at[i] && !film.lives.of.has(i)),
    older: replies.measured_at.some((time, i) => time < replies.asked_at[i]),
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
  const { offsetX: x, offsetY: y } = event;
  let nearest = null;
  let least = Infinity;
  for (const spot of sheet.spots) {
    const across = Math.max(0, Math.abs(x - spot.x) - (spot.half ?? 0));
    const distance = Math.hypot(across, y - spot.y);
    if (distance > spot.reach) continue;
    const rank = spot.behind ? 1e6 + distance : distance;
    if (rank < least) {
      nearest = spot;
      least = rank;
    }
  }
  state.cursor = null;
  brush(nearest?.queries?.() ?? []);
  if (nearest) showTip(sheet, nearest.text(), x, y);
  else hideTips();
}

function showTip(sheet, text, x, y) {
  const tip = sheet.canvas.parentElement.querySelector(".replay-tip");
  tip.hidden = false;
  tip.textContent = text;
  const left = Math.min(x + 12, sheet.canvas.clientWidth - tip.offsetWidth - 4);
  const above = y - tip.offsetHeight - 10;
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${above < 0 ? y + 14 : above}px`;
}

for (const sheet of [sheets.scene, sheets.timeline]) {
  for (const kind of ["pointermove", "pointerdown"]) {
    sheet.canvas.addEventListener(kind, (event) => touched(sheet, event));
  }
  sheet.canvas.addEventListener("pointerleave", () => {
    hideTips();
    brush([]);
  });
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
