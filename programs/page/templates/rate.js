"use strict";
const { id, file, inPairs, showings, csv } = JSON.parse(document.getElementById("data").textContent);
const [start, rating, end, stage, place, left, notice, nameField, correct] = [
  "start", "rating", "end", "stage", "place", "left", "notice", "rater", "correct",
].map((name) => document.getElementById(name));
const KEY = `agenticiqa-rate-${id}`;
const USUAL = 8; // seconds for a photo, until the rater has a pace
const REMINDER = 10; // ratings that are only in the window before the page asks for a download
const CHOICES = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: 0, " ": 0 }; // the better one of a pair
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
  const pane = Object.assign(document.createElement("div"), { className: "pane" });
  pane.append(child);
  return pane;
}

async function show(number) {
  [at, shownAt] = [number, null];
  for (const section of [start, rating, end]) section.hidden = section !== rating;
  for (const other of [...pictures.keys()]) if (other !== number) pictures.delete(other);
  const images = imagesOf(number);
  stage.replaceChildren(...images.map(paneOf));
  document.activeElement.blur(); // the space bar would press the last button again
  setReal(false);
  describe();
  try {
    await Promise.all(images.map((image) => image.whole));
    if (number !== at) return;
    shownAt = performance.now();
  } catch {
    if (number !== at) return;
    const textContent = "This photo cannot be shown. If its file has moved, move it back; or skip it with the key s.";
    stage.replaceChildren(paneOf(Object.assign(document.createElement("p"), { textContent })));
  }
  if (number + 1 < showings.length) imagesOf(number + 1);
}

function describe() {
  const score = answers[at]?.score, count = showings.length - practice;
  const words = at < practice ? `Practice ${at + 1} of ${practice}, not counted` : `${at - practice + 1} of ${count}`;
  place.textContent = words + (score == null || inPairs ? "" : `, rated ${score}`);
  for (const button of document.querySelectorAll(".scale button")) {
    button.setAttribute("aria-pressed", score != null && Number(button.value) === Math.trunc(score));
  }
  const times = answers.filter(Boolean).map((answer) => answer.seconds).sort((one, other) => one - other);
  const open = answers.filter((answer) => !answer).length;
  const minutes = Math.ceil(open * (times[times.length >> 1] ?? USUAL) / 60);
  left.textContent = `${minutes} minute${minutes === 1 ? "" : "s"} left`;
  document.getElementById("progress").value = showings.length - open;
}

function answer(score) {
  if (rating.hidden || (score !== null && shownAt === null)) return; // the photo is not on the screen yet
  const seconds = shownAt === null ? 0 : Math.round((performance.now() - shownAt) / 100) / 10;
  answers[at] = { score, seconds };
  if (score !== null && !showings[at].practice) unsaved += 1;
  store();
  remind();
  if (proceed()) download();
}

function proceed() {
  const open = answers.indexOf(null);
  if (open < 0) finish();
  else show(open);
  return open < 0;
}

function remind() {
  notice.hidden = isStored || unsaved < REMINDER;
  notice.textContent = `This browser keeps no answers. ${unsaved} answers are not downloaded yet: press d or Download.`;
}

const countOf = (given) => given.filter((each, number) => each?.score != null && !showings[number].practice).length;

// Show whose answers are kept, and whether the name in the field continues or begins.
function greet() {
  const kept = [...raters].map(([name, given]) => [name, countOf(given)]).filter(([, count]) => count);
  const name = nameField.value.trim(), other = kept.at(-1)?.[0], isKnown = kept.some(([one]) => one === name);
  const keptText = document.getElementById("kept");
  keptText.hidden = !kept.length;
  const counts = kept.map(([one, count]) => `${one} ${count} of ${showings.length - practice}`).join(", ");
  keptText.textContent = `Answers so far in this browser: ${counts}.`;
  document.querySelector("#begin button").textContent = isKnown ? "Continue" : "Start";
  correct.hidden = !kept.length || isKnown || !name;
  correct.textContent = `Correct the name ${other} to ${name}, and continue`;
  correct.value = other ?? "";
}

function finish() {
  for (const section of [start, rating, end]) section.hidden = section !== end;
  const given = countOf(answers);
  document.getElementById("summary").textContent = `${rater}, you gave ${given} answer${given === 1 ? "" : "s"}.`;
}

function rows() {
  return showings.flatMap(({ images, practice: isPractice, repeat }, number) => {
    const { score, seconds } = answers[number] ?? {};
    if (isPractice || score == null) return [];
    if (!inPairs) return [[...images, score, rater, seconds, repeat]];
    const orders = [images, [images[1], images[0]]].slice(score > 0 ? 1 : 0, score < 0 ? 1 : 2); // equal: both orders
    return orders.map((order) => [...order, rater, seconds]);
  });
}

const unseen = new RegExp(csv.unseen, "gu"), beforeFormula = new RegExp(csv.beforeFormula, "gu");

function cell(value) { // as the program writes one
  if (typeof value !== "string") return `${value}`;
  const text = value.replace(unseen, " ").replace(beforeFormula, "$&'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvText() {
  const heading = inPairs ? ["better", "worse", "rater", "seconds"] : ["image", "mos", "rater", "seconds", "repeat"];
  // Spreadsheets recognize UTF-8 by the mark at the beginning.
  return `\ufeff${[heading, ...rows()].map((line) => `${line.map(cell).join(",")}\r\n`).join("")}`;
}

function download() {
  const address = URL.createObjectURL(new Blob([csvText()], { type: "text/csv;charset=utf-8" }));
  Object.assign(document.createElement("a"), { href: address, download: file }).click();
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

const scoreOf = (value, isHalf) => (inPairs ? Number(value) : Math.min(5, Number(value) + (isHalf ? 0.5 : 0)));
const actions = {
  backspace: () => { if (end.hidden ? at > 0 : true) show(end.hidden ? at - 1 : showings.length - 1); },
  s: () => answer(null),
  d: download,
  z: () => setReal(!stage.classList.contains("real")),
};

document.addEventListener("keydown", (event) => {
  if (!start.hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  const digit = /^(?:Digit|Numpad)([1-5])$/.exec(event.code)?.[1]; // with Shift, the key is another character
  const value = inPairs ? CHOICES[event.key] : digit;
  const action = value === undefined ? actions[event.key.toLowerCase()] : () => answer(scoreOf(value, event.shiftKey));
  if (!action) return;
  event.preventDefault();
  if (!event.repeat) action();
});
for (const button of document.querySelectorAll("[data-key]")) button.addEventListener("click", actions[button.dataset.key]);
for (const button of document.querySelectorAll(".scale button")) {
  button.addEventListener("click", (event) => answer(scoreOf(button.value, event.shiftKey)));
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

function begin() {
  rater = nameField.value.trim() || "rater";
  const saved = raters.get(rater) ?? [];
  answers = showings.map((_, number) => saved[number] ?? null);
  raters.delete(rater); // it becomes the last one
  store();
  proceed();
}

document.getElementById("begin").addEventListener("submit", (event) => {
  event.preventDefault();
  begin();
});
nameField.addEventListener("input", greet);
correct.addEventListener("click", () => {
  raters.set(nameField.value.trim(), raters.get(correct.value));
  raters.delete(correct.value);
  begin();
});
document.getElementById("another").addEventListener("click", () => location.reload());
try {
  raters = new Map(JSON.parse(localStorage.getItem(KEY)) ?? []);
  nameField.value = [...raters.keys()].at(-1) ?? "";
} catch {
  isStored = false;
}
store();
greet();
if (!isStored) {
  document.getElementById("memory").textContent = "This browser keeps no answers of local pages, so they are lost if you "
    + "close the window. After each 10 photos, the page asks you to download them (key d).";
}
