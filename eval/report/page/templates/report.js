"use strict";
// All images: only visible rows are elements, so that a list of ten thousand images scrolls smoothly.
const ROW = 54;  // pixels of a row, as in report.css
const shown = (value, sign = "") => value == null ? "-" : (sign && value >= 0 ? sign : "") + value.toFixed(2);

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

const made = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};

async function listSamples(section) {
  const data = await unpacked(section.querySelector(".packed").textContent);
  const [search, group, order] = [".controls input", ".group", ".order"].map((name) => section.querySelector(name));
  const [rows, steps, count] = [".rows", ".steps", ".count"].map((name) => section.querySelector(name));
  const all = data.name.map((_, place) => place);
  const text = all.map((i) => `${data.name[i]} ${data.groups[data.group[i]]} ${data.finding[i]}`.toLowerCase());
  const keys = {
    file: (i) => i, away: (i) => -Math.abs(data.away[i] ?? 0), score: (i) => data.score[i] ?? Infinity,
    "-score": (i) => -(data.score[i] ?? -Infinity), mos: (i) => data.mos[i], "-mos": (i) => -data.mos[i],
  };
  let listed = all, chosen = null;
  group.append(...data.groups.map((name, number) => made("option", {value: number, textContent: name})));

  const picture = (i) => data.picture[i]
    ? made("img", {src: `${section.dataset.folder}/${data.picture[i]}.webp`, alt: "", loading: "lazy"}) : made("span", {});

  function draw() {
    const first = Math.max(0, Math.floor(rows.scrollTop / ROW) - 4);
    const last = Math.min(listed.length, first + Math.ceil(rows.clientHeight / ROW) + 8);
    rows.firstElementChild.style.height = `${listed.length * ROW}px`;
    rows.firstElementChild.replaceChildren(...listed.slice(first, last).map((i, place) => {
      const words = made("span", {className: "words"}, made("b", {textContent: data.name[i]}), made("br", {}),
        made("span", {className: "small soft", textContent: [data.groups[data.group[i]], data.finding[i]].filter(Boolean).join("; ")}));
      const numbers = [shown(data.score[i]), shown(data.mos[i]), shown(data.away[i], "+")];
      const row = made("div", {className: "row", role: "option", onclick: () => choose(i)}, picture(i), words,
        ...numbers.map((textContent) => made("span", {textContent})));
      row.style.top = `${(first + place) * ROW}px`;
      row.setAttribute("aria-selected", i === chosen);
      return row;
    }));
  }

  function list() {
    const word = search.value.trim().toLowerCase();
    listed = all.filter((i) => (group.value === "" || data.group[i] === Number(group.value)) && text[i].includes(word));
    const key = keys[order.value];
    listed.sort(key ? (a, b) => key(a) - key(b) || a - b : (a, b) => data.name[a].localeCompare(data.name[b]));
    count.textContent = `${listed.length.toLocaleString("en")} of ${all.length.toLocaleString("en")}; columns: score, MOS, residual`;
    rows.scrollTop = 0;
    draw();
  }

  function choose(i) {
    chosen = i;
    const lines = data.steps[i].flatMap(([name, line]) => [made("dt", {textContent: name}), made("dd", {textContent: line})]);
    steps.replaceChildren(made("h4", {textContent: data.name[i]}), picture(i), made("dl", {}, ...lines));
    draw();
  }

  // A point of the chart is a link to the number of its image; ten thousand points share one listener.
  const chart = document.getElementById(`chart${section.dataset.number}`);
  const place = document.getElementById(`chosen${section.dataset.number}`);
  const pointAt = (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    const i = Number(link.href.baseVal.slice(1));
    const lines = [data.name[i], `score ${shown(data.score[i])}, MOS ${shown(data.mos[i])}`, data.finding[i] || "no distortion found"];
    place.replaceChildren(picture(i), ...lines.map((textContent) => made("div", {textContent})));
    if (event.type === "click") choose(i);
  };
  for (const kind of ["mouseover", "click"]) chart.addEventListener(kind, pointAt);

  rows.addEventListener("keydown", (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (!step || !listed.length) return;
    event.preventDefault();
    const at = Math.min(listed.length - 1, Math.max(0, listed.indexOf(chosen) + step));
    rows.scrollTop = Math.min(at * ROW, Math.max(rows.scrollTop, (at + 1) * ROW - rows.clientHeight));
    choose(listed[at]);
  });
  rows.addEventListener("scroll", draw);
  search.addEventListener("input", list);
  for (const control of [group, order]) control.addEventListener("change", list);
  new ResizeObserver(draw).observe(rows);
  list();
}

document.querySelectorAll(".samples").forEach(listSamples);
