// Parts of a whole that the optimizer noted, such as how much it believes in each of its models

/** Make a line of text and an empty bar for each whole of the film. */
function layOutShares() {
  const { shares } = state.film;
  const place = find(".replay-shares");
  place.hidden = !shares.length;
  place.replaceChildren(
    ...shares.map(({ parts, colours: numbers }) => {
      const box = document.createElement("div");
      const bar = document.createElement("div");
      bar.className = "replay-bar";
      bar.setAttribute("aria-hidden", "true"); // The text above it says as much.
      parts.forEach((part, i) => {
        const piece = document.createElement("span");
        piece.style.borderTopColor = `var(--share-${numbers[i]})`;
        piece.append(document.createElement("b"));
        piece.firstChild.textContent = part;
        bar.append(piece);
      });
      box.append(document.createElement("p"), bar);
      return box;
    }),
  );
}

/** Show the shares of the frame, and say them in words, the largest first. */
function drawShares() {
  const { film, frame } = state;
  const boxes = find(".replay-shares").children;
  return film.shares.map(({ group, parts, values }, i) => {
    const now = point(values, frame, parts.length);
    const known = parts
      .map((part, k) => ({ part, per: Math.round(100 * now[k]) }))
      .filter(({ per }) => per >= 1)
      .sort((a, b) => b.per - a.per);
    const words = known.map(({ part, per }) => `${part} (${per} %)`).join(", ");
    const none = now.some(Number.isFinite) ? "each below 1 %" : "nothing noted in this round";
    const told = `${group}: ${words || none}`;
    const [text, bar] = boxes[i].children;
    text.textContent = told;
    const pieces = [...bar.children];
    pieces.forEach((piece, k) => {
      const share = now[k] > 0 ? now[k] : 0;
      piece.style.flexGrow = share;
      piece.hidden = share < 0.002; // Less than the gap beside it.
      piece.title = `${parts[k]}: ${(100 * share).toFixed(1)} %`;
    });
    // Half a number would be another number.
    const fits = pieces.map((piece) => piece.firstChild.offsetWidth <= piece.clientWidth);
    pieces.forEach((piece, k) => (piece.firstChild.style.visibility = fits[k] ? "" : "hidden"));
    return told;
  });
}
