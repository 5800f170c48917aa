(() => {
  "use strict";
  const state = document.getElementById("state");
  const word = document.getElementById("state-word");
  const age = document.getElementById("state-age");
  const token = new URLSearchParams(location.search).get("token");
  const GONE = "sparq-sim watch has ended";
  let tag = "";
  let ahead = 0; // Seconds by which the clock of the server is ahead of this one.
  let lost = false;

  // Words for a span of time, in seconds.
  function span(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    if (whole < 120) return `${whole} s`;
    if (whole < 7200) return `${Math.floor(whole / 60)} min`;
    return whole < 172800 ? `${Math.floor(whole / 3600)} h` : `${Math.floor(whole / 86400)} days`;
  }

  const since = (moment) => Date.now() / 1000 + ahead - Number(moment);

  function put(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function tick() {
    const { mood, news, quiet } = state.dataset;
    if (lost) put(age, news ? `shown is what was known ${span(since(news))} ago` : "");
    else if (!news) put(age, "");
    else if (mood === "ended") put(age, `last news ${span(since(news))} ago`);
    else if (since(news) > Number(quiet)) put(age, `no news for ${span(since(news))}`);
    else put(age, `updated ${span(since(news))} ago`);
    for (const each of document.querySelectorAll("[data-at]")) {
      put(each, span(since(each.dataset.at)) + (each.dataset.after ?? ""));
    }
  }

  // Make one tree like another, changing only what differs, so that focus, selection, scrolling
  // and what the reader has opened stay. Charts are Plotly's own.
  function morph(old, fresh) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
    }
    if (old.matches(".plot, [data-at]")) return;
    const named = new Map([...old.children].filter((e) => e.id).map((e) => [e.id, e]));
    let place = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      const known = next.id ? named.get(next.id) : undefined;
      if (known) {
        if (known !== place) old.insertBefore(known, place);
        else place = place.nextSibling;
        morph(known, next);
      } else if (place && !place.id && !next.id && place.nodeName === next.nodeName) {
        const same = place;
        place = place.nextSibling;
        morph(same, next);
      } else {
        old.insertBefore(document.importNode(next, true), place);
      }
    }
    while (place) {
      const after = place.nextSibling;
      place.remove();
      place = after;
    }
  }

  function show(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const part of ["nav .links", "main"]) {
      morph(document.querySelector(part), fresh.querySelector(part));
    }
    put(word, fresh.getElementById("state-word").textContent);
    Object.assign(state.dataset, fresh.getElementById("state").dataset);
    document.title = fresh.title;
    const charts = fresh.getElementById("charts").textContent;
    document.dispatchEvent(new CustomEvent("chartschange", { detail: JSON.parse(charts) }));
  }

  function lose(text) {
    lost = true;
    state.dataset.mood = "broken";
    put(word, text);
    tag = "";
  }

  async function ask() {
    try {
      const response = await fetch(`now?token=${encodeURIComponent(token)}`, {
        headers: tag ? { "If-None-Match": tag } : {},
        cache: "no-store",
      });
      if (response.status === 403) return lose("The token is no longer valid");
      if (response.status !== 200 && response.status !== 304) return lose("Watching has failed");
      ahead = Number(response.headers.get("Sparq-Now")) - Date.now() / 1000;
      if (response.status === 200) {
        show(await response.text());
        tag = response.headers.get("ETag");
      }
      lost = false;
    } catch {
      lose(GONE);
    }
  }

  async function go() {
    await ask();
    tick();
    // A page that nobody sees asks less often, and at once when it is seen.
    const wait = Number(state.dataset.every) * (lost || document.hidden ? 5 : 1);
    setTimeout(go, 1000 * wait);
  }

  document.addEventListener("visibilitychange", () => document.hidden || ask().then(tick));
  setInterval(tick, 1000);
  go();
})();
