"use strict";
const dark = matchMedia("(prefers-color-scheme: dark)");

// Charts are drawn on a canvas, so their colors are set from the page's.
function paint() {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const line = style.getPropertyValue("--line").trim();
  const models = Bokeh.documents.flatMap((shown) => shown.roots()).flatMap((root) => [root, ...root.references()]);
  for (const model of models) {
    if (model.type.endsWith("Axis")) {
      model.setv({axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: ink,
        major_tick_line_color: ink, minor_tick_line_color: ink});
    } else if (model.type === "Grid") {
      model.setv({grid_line_color: line});
    } else if (model.type === "Figure") {
      model.setv({outline_line_color: line});
    }
  }
}

function showChosen(place, picture, lines) {
  const image = document.createElement("img");
  image.src = picture;
  image.alt = lines[0];
  const words = lines.map((text) => Object.assign(document.createElement("div"), {textContent: text}));
  document.getElementById(place).replaceChildren(...(picture ? [image] : []), ...words);
}

for (const chart of document.querySelectorAll("script[data-chart]")) {
  Bokeh.embed.embed_item(JSON.parse(chart.textContent), chart.dataset.chart).then(paint);
}
dark.addEventListener("change", paint);
