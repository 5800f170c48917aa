(() => {
  "use strict";
  const figure = JSON.parse(document.getElementById("figure").textContent);
  const config = { displayModeBar: false, responsive: true };
  Plotly.newPlot(document.getElementById("portrait"), { ...figure, config });
})();
