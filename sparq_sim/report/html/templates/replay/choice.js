// Which play is shown, beside which other, and the link to it

const tabs = find(".replay-tabs");
const [settingSelect, drawSelect, rivalSelect] = ["setting", "draw", "rival"].map((name) =>
  find(`[name=replay-${name}]`),
);

/** Look up a play: the number of its film, the name by which it is filmed, or null. */
const lookUp = ({ optimizer, setting, draw }) => data.plays[optimizer]?.[setting]?.[draw] ?? null;
const isFilmed = (play) => Number.isInteger(lookUp(play));

/** List the plays of an optimizer, those most like a given one first. */
function listLike({ optimizer, setting, draw }) {
  const plays = data.plays[optimizer].flatMap((row, s) =>
    row.map((_, d) => ({ optimizer, setting: s, draw: d })),
  );
  const unlike = (play) => 2 * (play.setting !== setting) + (play.draw !== draw);
  return plays.sort((a, b) => unlike(a) - unlike(b));
}

/** Show the film of a play; where there is none, that of the play most like it. */
function choose(wished, round = null) {
  const play = listLike(wished).find(isFilmed);
  if (!play) return;
  // Of another play, the same time is shown.
  const now = state.film && round === null ? moment().now : null;
  state.chosen = play;
  state.film = ready(films[lookUp(play)]);
  offerPlays();
  chooseRival(rivalSelect.value === "" ? null : Number(rivalSelect.value));
  showFilm();
  const { frames, rounds } = state.film;
  if (now === null) seek(frameOf(state.film, round ?? rounds.round[openingFrame()]));
  else {
    const next = frames.findIndex((row) => rounds.played_at[row] >= now - 1e-6);
    seek(next < 0 ? frames.length - 1 : next);
  }
}

/** Choose the row of the frame that a film opens with: its most telling moment. */
function openingFrame() {
  const { frames, moments } = state.film;
  return frames[moments.length ? moments[0][0] : Math.floor((frames.length - 1) / 4)];
}

/** Offer the other plays; those that are not filmed cannot be chosen, and how to film one is said. */
function offerPlays() {
  const { chosen } = state;
  [...tabs.children].forEach((button, optimizer) => {
    button.setAttribute("aria-pressed", String(optimizer === chosen.optimizer));
  });
  const offer = (select, texts, field, isOffered) => {
    select.parentElement.hidden = texts.length < 2;
    select.replaceChildren(
      ...texts.map((text, value) => {
        const offered = isOffered({ ...chosen, [field]: value });
        const option = new Option(offered ? text : `${text} (not filmed)`, value);
        option.disabled = !offered;
        return option;
      }),
    );
    select.value = chosen[field];
  };
  offer(settingSelect, data.settings, "setting", ({ optimizer, setting }) =>
    data.draws.some((_, draw) => isFilmed({ optimizer, setting, draw })),
  );
  offer(drawSelect, data.draws, "draw", isFilmed);
  const others = data.optimizers
    .map((name, optimizer) => ({ name, optimizer }))
    .filter(({ optimizer }) => optimizer !== chosen.optimizer && isFilmed({ ...chosen, optimizer }));
  const before = rivalSelect.value;
  rivalSelect.replaceChildren(
    new Option("nobody", ""),
    ...others.map(({ name, optimizer }) => new Option(name, optimizer)),
  );
  rivalSelect.value = others.some(({ optimizer }) => String(optimizer) === before) ? before : "";
  rivalSelect.parentElement.hidden = !others.length;
  const unfilmed = listLike(chosen).map(lookUp).filter((name) => typeof name === "string");
  const note = find(".replay-more");
  note.hidden = !unfilmed.length;
  note.querySelector("span").textContent =
    unfilmed.length === 1
      ? "1 play of it is not filmed. This films it:"
      : `${unfilmed.length} plays of it are not filmed. This films one of them:`;
  note.querySelector("code").textContent = `${data.command} ${unfilmed[0]}`;
}

/** Choose whose play of the same setting and draw is shown as well; null for nobody's. */
function chooseRival(optimizer) {
  state.rival = optimizer === null ? null : ready(films[lookUp({ ...state.chosen, optimizer })]);
  find(".replay-pair").classList.toggle("replay-two", Boolean(state.rival));
  for (const part of root.querySelectorAll(".replay-rival-only")) part.hidden = !state.rival;
}

/** List what is drawn: the film at its frame, and the other film at the same round. */
function listShots() {
  const { film, frame, rival } = state;
  const shots = [{ film, frame, sheet: sheets.scene, at: moment(film, frame) }];
  if (rival) {
    const other = frameOf(rival, shots[0].at.round);
    shots.push({ film: rival, frame: other, sheet: sheets.rival, at: moment(rival, other) });
  }
  return shots;
}

// Links: #replay=optimizer,setting,replication,round

function writeLink() {
  const { optimizer, setting, draw } = state.chosen;
  const parts = [data.optimizers[optimizer], data.settings[setting], data.draws[draw], moment().round];
  const link = `#replay=${parts.map((part) => encodeURIComponent(part)).join(",")}`;
  try {
    history.replaceState(history.state, "", link);
  } catch {
    // A page within another may not; the moment is then without a link.
  }
}

/** Read the link of the page; null where it is none to a play of this study. */
function readLink() {
  const link = /^#replay=([^,]*),([^,]*),([^,]*),(\d{1,9})$/.exec(location.hash);
  if (!link) return null;
  try {
    const [name, setting, draw] = link.slice(1, 4).map(decodeURIComponent);
    const play = {
      optimizer: data.optimizers.indexOf(name),
      setting: data.settings.indexOf(setting),
      draw: data.draws.indexOf(draw),
    };
    return isFilmed(play) ? { play, round: Number(link[4]) } : null;
  } catch {
    return null; // What is not encoded as links are.
  }
}

function followLink() {
  const link = readLink();
  if (!link) return false;
  setPlaying(false);
  choose(link.play, link.round);
  (root.closest("section") ?? root).scrollIntoView();
  return true;
}
