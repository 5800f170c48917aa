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
  const text = nearest ? nearest.text() : sheet.here?.(x, y);
  if (text) showTip(sheet, text, x, y);
  else hideTips();
}

function showTip(sheet, text, x, y) {
  const tip = sheet.canvas.parentElement.querySelector(".replay-tip");
  tip.hidden = false;
  tip.textContent = text;
  const left = Math.min(x + 12, sheet.canvas.clientWidth - tip.offsetWidth - 4);
  const above = y - tip.offsetHeight - 10;
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${sheet.canvas.offsetTop + (above < 0 ? y + 14 : above)}px`;
}

for (const sheet of [sheets.scene, sheets.rival, sheets.timeline]) {
  for (const kind of ["pointermove", "pointerdown"]) {
    sheet.canvas.addEventListener(kind, (event) => touched(sheet, event));
  }
  sheet.canvas.addEventListener("pointerleave", ({ pointerType }) => {
    if (pointerType === "touch") return; // The finger is gone; what it asked for stays.
    hideTips();
    brush([]);
  });
}
