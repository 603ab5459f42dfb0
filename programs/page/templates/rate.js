"use strict";
const { id, showings } = JSON.parse(document.getElementById("data").textContent);
const [start, rating, end, stage, place, left, notice] = ["start", "rating", "end", "stage", "place", "left", "notice"]
  .map((name) => document.getElementById(name));
const KEY = `agenticiqa-rate-${id}`;
const USUAL = 8; // seconds for a photo, until the rater's own times are known
const REMINDER = 10; // ratings that are only in the window before the page asks for a download
const practice = showings.filter((showing) => showing.practice).length;
const pictures = new Map(); // images of the showing on the screen and of the next one
let raters = new Map(); // answers by rater; the last one rated last
let rater, answers, at, shownAt, isStored = true, unsaved = 0;

function store() {
  if (rater !== undefined) raters.set(rater, answers);
  try {
    localStorage.setItem(KEY, JSON.stringify([...raters]));
  } catch {
    isStored = false;
  }
}

function imagesOf(number) {
  if (!pictures.has(number)) {
    pictures.set(number, showings[number].addresses.map((address) => {
      const image = Object.assign(new Image(), { src: address, alt: "The photo to rate", draggable: false });
      image.whole = image.decode(); // also loads the file, before it is on the screen
      image.whole.catch(() => {});
      return image;
    }));
  }
  return pictures.get(number);
}

function paneOf(child) {
  const pane = document.createElement("div");
  pane.className = "pane";
  pane.append(child);
  return pane;
}

async function show(number) {
  [at, shownAt] = [number, null];
  for (const section of [start, rating, end]) section.hidden = section !== rating;
  for (const other of [...pictures.keys()]) if (other !== number) pictures.delete(other);
  const images = imagesOf(number);
  stage.replaceChildren(...images.map(paneOf));
  setReal(false);
  describe();
  try {
    await Promise.all(images.map((image) => image.whole));
    if (number !== at) return;
    shownAt = performance.now();
  } catch {
    if (number !== at) return;
    const sorry = document.createElement("p");
    sorry.textContent = "This photo cannot be shown. If its file has moved, move it back; or skip it with the key s.";
    stage.replaceChildren(paneOf(sorry));
  }
  if (number + 1 < showings.length) imagesOf(number + 1);
}

function describe() {
  const score = answers[at]?.score, count = showings.length - practice;
  const words = at < practice ? `Practice ${at + 1} of ${practice}, not counted` : `${at - practice + 1} of ${count}`;
  place.textContent = words + (score == null ? "" : `, rated ${score}`);
  for (const button of document.querySelectorAll(".scale button")) {
    button.setAttribute("aria-pressed", Number(button.value) === Math.floor(score ?? 0));
  }
  const times = answers.filter(Boolean).map((answer) => answer.seconds).sort((one, other) => one - other);
  const open = answers.filter((answer) => !answer).length;
  const minutes = Math.ceil(open * (times[times.length >> 1] ?? USUAL) / 60);
  left.textContent = `about ${minutes} minute${minutes === 1 ? "" : "s"} left`;
  document.getElementById("progress").value = showings.length - open;
}

function answer(score) {
  if (rating.hidden || (score !== null && shownAt === null)) return; // nobody has seen the photo yet
  const seconds = shownAt === null ? 0 : Math.round((performance.now() - shownAt) / 100) / 10;
  answers[at] = { score, seconds };
  if (score !== null && !showings[at].practice) unsaved += 1;
  store();
  remind();
  const open = answers.indexOf(null);
  if (open >= 0) {
    show(open);
  } else {
    finish();
    download();
  }
}

function remind() {
  notice.hidden = isStored || unsaved < REMINDER;
  notice.textContent = `This browser keeps no ratings. ${unsaved} ratings are not downloaded yet: press d or Download.`;
}

function finish() {
  for (const section of [start, rating, end]) section.hidden = section !== end;
  const rated = rows().length;
  document.getElementById("summary").textContent = `${rater}, you gave ${rated} rating${rated === 1 ? "" : "s"}. `
    + "They are in labels.csv in your folder of downloads.";
}

function rows() {
  return showings.flatMap(({ images, practice: isPractice, repeat }, number) => {
    const { score, seconds } = answers[number] ?? {};
    return isPractice || score == null ? [] : [[...images, score, rater, seconds, repeat]];
  });
}

function csvText() {
  const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const lines = [["image", "mos", "rater", "seconds", "repeat"], ...rows()];
  // Spreadsheets recognize UTF-8 by the mark at the beginning.
  return `\ufeff${lines.map((line) => `${line.map(String).map(cell).join(",")}\r\n`).join("")}`;
}

function download() {
  const address = URL.createObjectURL(new Blob([csvText()], { type: "text/csv;charset=utf-8" }));
  Object.assign(document.createElement("a"), { href: address, download: "labels.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  unsaved = 0;
  notice.hidden = true;
}

function setReal(isReal) {
  stage.classList.toggle("real", isReal);
  document.querySelector('.tools [data-key="z"]').setAttribute("aria-pressed", isReal);
  for (const image of stage.querySelectorAll("img")) {
    image.style.width = isReal ? `${image.naturalWidth / devicePixelRatio}px` : "";
    const pane = image.parentElement;
    pane.scrollTo((pane.scrollWidth - pane.clientWidth) / 2, (pane.scrollHeight - pane.clientHeight) / 2);
  }
}

const halfStep = (digit, isHalf) => Math.min(5, Number(digit) + (isHalf ? 0.5 : 0));
const actions = {
  backspace: () => { if (end.hidden ? at > 0 : true) show(end.hidden ? at - 1 : showings.length - 1); },
  s: () => answer(null),
  d: download,
  z: () => setReal(!stage.classList.contains("real")),
};

document.addEventListener("keydown", (event) => {
  if (!start.hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  const digit = /^(?:Digit|Numpad)([1-5])$/.exec(event.code); // with Shift, the key is another character
  const action = digit ? () => answer(halfStep(digit[1], event.shiftKey)) : actions[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  if (!event.repeat) action();
});
for (const button of document.querySelectorAll("[data-key]")) button.addEventListener("click", actions[button.dataset.key]);
for (const button of document.querySelectorAll(".scale button")) {
  button.addEventListener("click", (event) => answer(halfStep(button.value, event.shiftKey)));
}
let from = null; // where the mouse was
stage.addEventListener("pointerdown", (event) => { from = event.pointerType === "mouse" ? event : null; });
addEventListener("pointermove", (event) => {
  if (!from || !event.buttons) return;
  for (const pane of stage.children) pane.scrollBy(from.clientX - event.clientX, from.clientY - event.clientY);
  from = event;
});
document.addEventListener("visibilitychange", () => { if (shownAt) shownAt = performance.now(); }); // time in view only
addEventListener("beforeunload", (event) => { if (!isStored && unsaved) event.preventDefault(); });

document.getElementById("begin").addEventListener("submit", (event) => {
  event.preventDefault();
  rater = document.getElementById("rater").value.trim() || "rater";
  const saved = raters.get(rater) ?? [];
  answers = showings.map((_, number) => saved[number] ?? null);
  raters.delete(rater); // it becomes the last one
  store();
  const open = answers.indexOf(null);
  if (open >= 0) show(open);
  else finish();
});
document.getElementById("another").addEventListener("click", () => location.reload());
try {
  raters = new Map(JSON.parse(localStorage.getItem(KEY)) ?? []);
  document.getElementById("rater").value = [...raters.keys()].at(-1) ?? "";
} catch {
  isStored = false;
}
store();
if (!isStored) {
  document.getElementById("memory").textContent = "This browser keeps no ratings of local pages, so they are lost if you "
    + "close the window. After each 10 photos, the page asks you to download them (key d).";
}
