"use strict";
const cards = document.getElementById("cards");
const [group, level, name, order] = ["group", "level", "name", "order"].map((id) => document.getElementById(id));
const inOrder = [...cards.children];

function show() {
  const part = name.value.trim().toLowerCase();
  for (const card of inOrder) {
    const data = card.dataset;
    card.hidden = (group.value && !data.groups.split("|").includes(group.value))
      || (level?.value && data.level !== level.value) || !data.name.includes(part);
  }
  const shown = inOrder.filter((card) => !card.hidden).length;
  document.getElementById("shown").textContent = `${shown} of ${inOrder.length} shown, ${order.selectedOptions[0].text}`;
}

for (const control of [group, level, name]) control?.addEventListener("input", show);
order.addEventListener("change", () => {
  cards.append(...(order.value === "1" ? inOrder : [...inOrder].reverse()));
  show();
});
show();
