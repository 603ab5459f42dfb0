"use strict";
const cards = document.getElementById("cards");
const [distortion, level, name, order] = ["distortion", "level", "name", "order"].map((id) => document.getElementById(id));
const worstFirst = [...cards.children];

function show() {
  const part = name.value.trim().toLowerCase();
  for (const card of worstFirst) {
    const data = card.dataset;
    card.hidden = (distortion.value && data.distortion !== distortion.value) || (level.value && data.level !== level.value)
      || !data.name.includes(part);
  }
  const shown = worstFirst.filter((card) => !card.hidden).length;
  document.getElementById("shown").textContent = `${shown} of ${worstFirst.length} shown, ${order.selectedOptions[0].text}`;
}

for (const control of [distortion, level, name]) control.addEventListener("input", show);
order.addEventListener("change", () => {
  cards.append(...(order.value === "1" ? worstFirst : [...worstFirst].reverse()));
  show();
});
show();
