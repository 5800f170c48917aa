// Regret over the play, above the slider

function drawRegrets() {
  const { film } = state;
  const { regrets, total, frames, rounds } = film;
  const { pen, width, height } = prepared(sheets.regret, 46);
  const edge = 8;
  const base = height - 5;
  const x = (round) => edge + (total > 1 ? (round - 1) / (total - 1) : 0.5) * (width - 2 * edge);
  const y = (regret) =>
    base - 2 - Math.min(1, Math.max(0, regret / film.highRegret)) * (base - 16);
  const roundOf = (bin) => 1 + (regrets.length > 1 ? (bin / (regrets.length - 1)) * (total - 1) : 0);
  pen.beginPath();
  pen.moveTo(x(1), base);
  regrets.forEach((regret, bin) => pen.lineTo(x(roundOf(bin)), y(regret)));
  pen.lineTo(x(total), base);
  pen.fillStyle = colour("--mark-best");
  pen.globalAlpha = 0.25;
  pen.fill();
  pen.globalAlpha = 1;
  pen.fillStyle = colour("--muted");
  pen.fillText("regret", edge, 11);
  if (frames.length < total) {
    for (const row of frames) pen.fillRect(x(rounds.round[row]) - 0.5, base + 1, 1, 4);
  }
  const { round, regret } = moment();
  mark(pen, "circle", x(round), y(regret), {
    size: 4,
    fill: colour("--mark-best"),
    halo: colour("--paper"),
  });
}

// The player

const DRAW = {
  line: drawLine,
  field: (shot) => drawPanels(shot, drawField),
  map: (shot) => drawPanels(shot, drawMap),
  strips: drawStrips,
};

function draw() {
  state.waiting = false;
  const { film, frame } = state;
  if (!root.clientWidth) return;
  colours = {};
  const shots = listShots();
  const [{ at }] = shots;
  for (const shot of shots) {
    shot.sheet.here = null;
    DRAW[shot.film.scene](shot);
  }
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
  const sentences = shots.map(tellFrame);
  shots.forEach((shot, i) => {
    shot.sheet.canvas.setAttribute("aria-label", `${shot.film.title}. ${sentences[i]}`);
    const name = find(`.replay-name-${i}`);
    const other = i && shot.at.round !== at.round ? `, round ${shot.at.round}` : "";
    const whose = i ? rivalSelect.selectedOptions[0].text : data.optimizers[state.chosen.optimizer];
    name.textContent = `${whose}${other}: regret ${shown(shot.at.regret)}`;
  });
  find(".replay-words").textContent = sentences[0] + tellSkipped(shots[0]);
  slider.setAttribute(
    "aria-valuetext",
    [`round ${told.round}, time ${told.time}, regret ${told.regret}`, ...believed].join("; "),
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
  slider.value = moment().round;
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
  // Who listens is told where the play rests, not each round of it.
  find(".replay-words").setAttribute("aria-live", playing ? "off" : "polite");
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

function showFilm() {
  const { film } = state;
  find(".replay-notes span").textContent = film.notes.join(" ");
  layOutShares();
  Object.assign(state, { brushed: new Set(), cursor: null });
  const { replies, lanes } = film;
  foldTimeline(lanes.instant);
  const lasts = (i) => replies.arrived_at[i] > replies.asked_at[i];
  const needs = {
    belief: Boolean(film.fields.mean),
    experts: lanes.sources.length > 1,
    aged: isAged(film),
    spread: !isAged(film) && replies.std.some((std) => std > 0),
    evidence: Boolean(film.evidence),
    "asked-evidence": film.evidence && lanes.sources.length > 1,
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
  slider.min = film.rounds.round[film.frames[0]];
  slider.max = film.rounds.round[film.frames.at(-1)];
  for (const item of root.querySelectorAll(".replay-expert")) item.remove();
  if (film.scene !== "strips") find(".replay-legend").append(...listExperts(film).map(explainExpert));
  find(".replay-moments").replaceChildren(
    ...film.moments.map(([frame, about]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${about}, round ${film.rounds.round[film.frames[frame]]}`;
      button.addEventListener("click", () => goTo(frame));
      return button;
    }),
  );
}

/** Explain the mark of an expert in the legend. */
function explainExpert({ name, source }) {
  const { shape, paint } = lookOf(state.film, source);
  const paths = {
    diamond: "m12 2.5 5.5 5.5-5.5 5.5L6.5 8z",
    triangle: "m12 2.5 5.5 10h-11z",
    square: "M7.5 3.5h9v9h-9z",
  };
  const item = document.createElement("li");
  item.className = "replay-expert";
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("class", "replay-mark");
  picture.setAttribute("viewBox", "0 0 24 16");
  picture.setAttribute("aria-hidden", "true");
  picture.style.color = `var(${paint})`;
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", paths[shape]);
  picture.append(path);
  item.append(picture, `answer of ${name}, fading with its age`);
  return item;
}

/** Go to a frame because someone wants to see it. */
function goTo(frame) {
  setPlaying(false);
  seek(frame);
  clearTimeout(state.linking); // Browsers refuse many links in a row.
  state.linking = setTimeout(writeLink, 300);
}

function seekByPointer(event) {
  if (event.type === "pointermove" && !event.buttons) return;
  const share = (event.offsetX - 8) / Math.max(1, sheets.regret.canvas.clientWidth - 16);
  goTo(frameOf(state.film, 1 + share * (state.film.total - 1)));
}
sheets.regret.canvas.addEventListener("pointerdown", seekByPointer);
sheets.regret.canvas.addEventListener("pointermove", seekByPointer);

slider.addEventListener("input", () => {
  const wished = Number(slider.value);
  const frame = frameOf(state.film, wished);
  // A step into rounds that are not filmed goes beyond them.
  const step = frame === state.frame ? Math.sign(wished - moment().round) : 0;
  goTo(frame + step);
});
playButton.addEventListener("click", () => {
  if (state.playing) goTo(state.frame);
  else setPlaying(true);
});
for (const button of root.querySelectorAll(".replay-step")) {
  button.addEventListener("click", () => goTo(state.frame + Number(button.dataset.step)));
}
for (const [select, field] of [[settingSelect, "setting"], [drawSelect, "draw"]]) {
  select.addEventListener("change", () => {
    choose({ ...state.chosen, [field]: Number(select.value) });
    goTo(state.frame);
  });
}
rivalSelect.addEventListener("change", () => {
  chooseRival(rivalSelect.value === "" ? null : Number(rivalSelect.value));
  redraw();
});
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
  else if (key in MOVES) goTo(state.frame + MOVES[key]);
  else return;
  event.preventDefault();
});

data.optimizers.forEach((name, optimizer) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  button.disabled = !listLike({ optimizer }).some(isFilmed);
  button.addEventListener("click", () => {
    choose({ ...state.chosen, optimizer });
    goTo(state.frame);
  });
  tabs.append(button);
});
const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
if (reduced.matches) speed.value = "2";
root.hidden = false;
if (root.clientWidth >= 620) state.view = "all";
if (!followLink()) {
  const everything = data.optimizers.flatMap((_, optimizer) => listLike({ optimizer }));
  choose(everything.find((play) => lookUp(play) === data.opens));
}
window.addEventListener("hashchange", followLink);
new ResizeObserver(redraw).observe(root);
document.addEventListener("themechange", draw); // At once: a printer does not wait.
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
