(() => {
  "use strict";
  const root = document.documentElement;
  let charts = JSON.parse(document.getElementById("charts").textContent);
  const drawn = new Set();
  // Pixels, at 96 to the inch: what lies between the margins of a sheet of A4, and page.css.
  const PRINTED = { width: 640, height: 320 };
  const chosen = { setting: 0, network: 0 };
  let printing = false;

  // Colours in figures are named after properties of the style, with an opacity where wanted.
  function coloured(name, style) {
    const [property, opacity] = name.split("/");
    const colour = style.getPropertyValue(property).trim();
    if (!opacity) return colour;
    const [red, green, blue] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    return `rgba(${red},${green},${blue},${opacity})`;
  }

  function themed(thing, style) {
    if (Array.isArray(thing)) {
      return typeof thing[0] === "object" ? thing.map((each) => themed(each, style)) : thing;
    }
    if (thing === null || typeof thing !== "object") return thing;
    return Object.fromEntries(
      Object.entries(thing).map(([key, value]) => [
        key,
        key.endsWith("color") && typeof value === "string" && value.startsWith("--")
          ? coloured(value, style)
          : themed(value, style),
      ]),
    );
  }

  function draw(plot) {
    const frame = plot.closest(".chart");
    const chart = charts[frame.dataset.chart];
    const place = chart.by ? chosen[chart.by] : Number(plot.dataset.figure);
    const figure = chart.figures[Math.min(place, chart.figures.length - 1)];
    const { data, layout, scales } = themed(figure, getComputedStyle(root));
    layout.font.family = getComputedStyle(document.body).fontFamily;
    layout.uirevision = "same"; // What the reader has hidden or enlarged stays so.
    const log = frame.querySelector(".log")?.checked;
    const scale = scales && (scales[log ? "log" : "linear"] ?? scales.linear);
    if (scale) {
      Object.assign(layout.yaxis, scale.yaxis);
      layout.annotations = [...(layout.annotations ?? []), ...scale.annotations];
    } else if (log) layout.yaxis.type = "log";
    if (printing) Object.assign(layout, PRINTED);
    layout.autosize = !printing;
    drawn.add(plot);
    const ready = Plotly.react(plot, data, layout, {
      responsive: true,
      displaylogo: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false,
    });
    return ready.then(() => attend(plot));
  }

  // One curve before all others: that of the name in the legend that is pointed at, or chosen.
  let kept = null;
  const pointed = new WeakMap();
  const told = (element) => element.__data__?.[0]?.trace?.meta;

  function emphasize(plot) {
    const name = pointed.get(plot) ?? kept;
    const names = [...plot.querySelectorAll(".legend .traces")];
    const there = names.some((each) => told(each)?.of === name);
    plot.classList.toggle("emphasis", there);
    for (const each of [...names, ...plot.querySelectorAll(".scatterlayer .trace")]) {
      const { of, role } = told(each) ?? {};
      each.classList.toggle("curve", of !== undefined);
      each.classList.toggle("spread", role === "spread");
      each.classList.toggle("emphasized", of === name);
    }
    for (const each of names) {
      const button = each.querySelector(".legendtoggle");
      button?.setAttribute("aria-pressed", String(told(each)?.of === kept));
    }
  }

  const nameAt = (target) => told(target.closest?.(".legend .traces") ?? {})?.of;

  function keep(name) {
    kept = kept === name ? null : name;
    drawn.forEach(emphasize);
  }

  // Legends are drawn anew with their figures, and only those of curves have names to choose.
  function attend(plot) {
    for (const each of plot.querySelectorAll(".legend .traces")) {
      const { of } = told(each) ?? {};
      const button = each.querySelector(".legendtoggle");
      if (of === undefined || !button) continue;
      for (const [key, value] of Object.entries({ role: "button", tabindex: 0, "aria-label": of }))
        button.setAttribute(key, value);
    }
    emphasize(plot);
    if (plot.dataset.attended) return;
    plot.dataset.attended = "yes";
    const point = (name) => {
      if (pointed.get(plot) === name) return;
      pointed.set(plot, name);
      emphasize(plot);
    };
    for (const start of ["mouseover", "focusin"])
      plot.addEventListener(start, ({ target }) => point(nameAt(target)));
    for (const end of ["mouseleave", "focusout"]) plot.addEventListener(end, () => point());
    plot.addEventListener("keydown", (event) => {
      const name = nameAt(event.target);
      if (name === undefined || !["Enter", " "].includes(event.key)) return;
      event.preventDefault();
      keep(name);
    });
    plot.on("plotly_legendclick", ({ data, curveNumber }) => {
      const { of } = data[curveNumber].meta ?? {};
      if (of === undefined) return true;
      keep(of);
      return false;
    });
    plot.on("plotly_afterplot", () => emphasize(plot));
  }

  const plots = () => [...document.querySelectorAll(".plot")];

  // The script of the charts is large: it runs when the first of them comes near.
  function loadPlotly() {
    if (window.Plotly) return;
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.append(script);
  }

  // Each task draws one chart at most, so that the page answers its reader in between.
  const waiting = new Set();
  function drawNext() {
    const [plot] = waiting;
    if (!window.Plotly) loadPlotly();
    else {
      waiting.delete(plot);
      if (plot.isConnected) draw(plot);
    }
    if (waiting.size) setTimeout(drawNext);
  }
  function drawSoon(plot) {
    if (!waiting.size) setTimeout(drawNext);
    waiting.add(plot);
  }

  const isSeen = (plot) => {
    const { top, bottom } = plot.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  };
  function redraw() {
    const all = [...drawn];
    for (const seen of [true, false]) all.filter((plot) => isSeen(plot) === seen).forEach(drawSoon);
  }

  const nearby = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        nearby.unobserve(target);
        drawSoon(target);
      }
    },
    { rootMargin: "400px" },
  );
  plots().forEach((plot) => nearby.observe(plot));

  function obey({ target }) {
    if (target.dataset.chooses) {
      chosen[target.dataset.chooses] = Number(target.value);
      redraw();
    } else if (target.classList.contains("log")) {
      target.closest(".chart").querySelectorAll(".plot").forEach(drawSoon);
    }
  }
  // On their way down, so that controls may come and go.
  document.addEventListener("change", obey, { capture: true });

  // Light and dark: as the system has it, until the reader says otherwise.
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let asked = false;
  function dress(theme) {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    redraw();
    document.dispatchEvent(new Event("themechange"));
  }
  dress(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => asked || dress(dark.matches ? "dark" : "light"));
  button.addEventListener("click", () => {
    asked = true;
    dress(root.dataset.theme === "dark" ? "light" : "dark");
  });

  // On paper all charts are there, and light.
  let before = root.dataset.theme;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    printing = true;
    root.dataset.theme = "light";
    if (plots().length) loadPlotly();
    plots().forEach(draw);
    document.dispatchEvent(new Event("themechange"));
  });
  addEventListener("afterprint", () => {
    printing = false;
    dress(before);
  });

  // Where the reader is.
  const passing = new IntersectionObserver(
    (entries) =>
      entries.forEach(({ isIntersecting, target }) =>
        document
          .querySelector(`nav a[href="#${target.id}"]`)
          ?.classList.toggle("here", isIntersecting),
      ),
    { rootMargin: "-30% 0px -65%" },
  );
  const follow = () =>
    document.querySelectorAll("main > section").forEach((section) => passing.observe(section));
  follow();

  // A page that is kept up to date tells what its charts show now.
  document.addEventListener("chartschange", ({ detail }) => {
    charts = detail;
    drawn.forEach((plot) => plot.isConnected || drawn.delete(plot));
    plots().forEach((plot) => (drawn.has(plot) ? drawSoon(plot) : nearby.observe(plot)));
    follow();
  });
})();
