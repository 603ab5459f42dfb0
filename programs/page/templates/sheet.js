"use strict";
const cards = document.getElementById("cards");
const distortion = document.getElementById("distortion");
const order = document.getElementById("order");
const worstFirst = [...cards.children];

function show() {
  let shown = 0;
  for (const card of worstFirst) {
    card.hidden = distortion.value !== "" && card.dataset.d !== distortion.value;
    shown += card.hidden ? 0 : 1;
  }
  document.getElementById("shown").textContent = `${shown} of ${worstFirst.length} shown`;
}

distortion.addEventListener("change", show);
order.addEventListener("change", () => cards.append(...(order.value === "1" ? worstFirst : [...worstFirst].reverse())));
show();
