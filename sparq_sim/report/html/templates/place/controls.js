// What is chosen, pointed at, and read aloud

function made(name, className, parent) {
  const element = document.createElement(name);
  element.className = className;
  parent.append(element);
  return element;
}

function addRow(row) {
  const figure = made("figure", "places-row", find(".places-rows"));
  const caption = made("figcaption", "", figure);
  made("b", "", caption).textContent = row.title;
  caption.append(row.words);
  const stage = made("div", "places-stage", figure);
  const canvas = made("canvas", "", stage);
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${row.title}: ${row.words} The arrow keys read the rounds.`);
  const sheet = { canvas, spots: [] };
  const parts = ["hair", "ring"].map((name) => made("div", `places-${name}`, stage));
  const tip = made("p", "places-tip", stage);
  tip.setAttribute("aria-live", "polite");
  const each = { row, sheet, hair: parts[0], ring: parts[1], tip, at: -1 };
  for (const kind of ["pointermove", "pointerdown"]) {
    canvas.addEventListener(kind, (event) => point(each, seek(each, event)));
  }
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("blur", () => point(null));
  canvas.addEventListener("keydown", (event) => step(each, event));
  return each;
}

/** Find the round that is nearest to the pointer, if one is near. */
function seek({ row, sheet }, { offsetX, offsetY }) {
  const { area } = sheet;
  const [bottom, top] = limits();
  let [found, least] = [-1, 30];
  for (let i = 0; i < row.time.length; i += 1) {
    const height = Math.max(bottom, Math.min(top, row.height[i]));
    const distance = Math.hypot(offsetX - area.x(row.time[i]), offsetY - area.y(height));
    if (distance < least) [found, least] = [i, distance];
  }
  return found;
}

/** Show a round of one row, and its moment in all of them; nothing where there is none. */
function point(chosen, i = -1) {
  for (const each of state.rows) {
    const own = each === chosen && i >= 0;
    each.ring.hidden = each.tip.hidden = !own;
    each.hair.hidden = !chosen || i < 0;
    if (each.hair.hidden) continue;
    const { area, canvas } = each.sheet;
    const x = area.x(chosen.row.time[i]);
    Object.assign(each.hair.style, {
      left: `${x}px`, top: `${area.top}px`, height: `${area.height}px`,
    });
    if (!own) continue;
    each.at = i;
    const [bottom, top] = limits();
    const y = area.y(Math.max(bottom, Math.min(top, each.row.height[i])));
    Object.assign(each.ring.style, { left: `${x}px`, top: `${y}px` });
    each.tip.textContent = tell(each.row, i);
    const left = Math.min(x + 14, canvas.clientWidth - each.tip.offsetWidth - 4);
    const above = y - each.tip.offsetHeight - 12;
    each.tip.style.left = `${Math.max(0, left)}px`;
    each.tip.style.top = `${above < 0 ? y + 16 : above}px`;
  }
}

const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };

function step(each, event) {
  const { key, altKey, ctrlKey, metaKey } = event;
  if (!(key in STEPS) || altKey || ctrlKey || metaKey || !each.row.time.length) return;
  event.preventDefault();
  point(each, Math.max(0, Math.min(each.row.time.length - 1, each.at + STEPS[key])));
}

function tellLegend(picture) {
  const { ground, rows, word, paint, kind } = picture;
  const [paints, grounds_] = [".places-paint span", ".places-ground span"].map((selector) => [
    ...root.querySelectorAll(selector),
  ]);
  const more = word === "regret" ? "or more" : "or less";
  paints[0].textContent = `${word} of the round: ${shown(paint[0])}`;
  paints[1].textContent = [shown(paint[1]), picture.note, more].filter(Boolean).join(", ");
  find(".places-ground").hidden = !ground || !ground.rewards.length;
  if (ground) {
    grounds_[0].textContent = `${picture.shows}: ${shown(ground.range[0])}`;
    grounds_[1].textContent = shown(ground.range[1]);
  }
  const [bottom, top] = limits();
  const needs = {
    best: ground && kind !== "distance",
    idle: rows.some((row) => row.moved.includes(0)),
    unknown: rows.some((row) => row.value.some(Number.isNaN)),
    outside: rows.some((row) => row.height.some((height) => height < bottom || height > top)),
  };
  for (const item of root.querySelectorAll("[data-needs]")) item.hidden = !needs[item.dataset.needs];
}

function choose(index) {
  const picture = (state.picture = ready(pictures[index]));
  find(".places-rows").replaceChildren();
  state.rows = picture.rows.map(addRow);
  find(".places-whole").hidden = !picture.window;
  find(".places-axis").textContent = `up: ${picture.label}`;
  find(".places-notes").textContent = picture.notes.join(" ");
  tellLegend(picture);
  redraw();
}

const setting = find(".places-setting select");
setting?.addEventListener("change", () => choose(Number(setting.value)));
find(".places-whole input").addEventListener("change", ({ target }) => {
  state.whole = target.checked;
  tellLegend(state.picture);
  redraw();
});
root.hidden = false;
choose(Number(setting?.value ?? 0));
new ResizeObserver(redraw).observe(root);
document.addEventListener("themechange", draw); // At once: a printer does not wait.
