"use strict";
// Two images in one frame: a slider divides them, or they are shown in turn.
const frame = document.querySelector(".stage > div");
const [left, right] = frame.children;
const [cut, blink, real] = ["cut", "blink", "real"].map((id) => document.getElementById(id));
let timer = null;

const choices = [...document.querySelectorAll(".choice")];
const pictures = [left, right];
function show() {
  choices.forEach((choice, side) => { pictures[side].src = choice.value; });
}
function size() {
  const [width, height] = [left.naturalWidth, left.naturalHeight];
  const isReal = real.getAttribute("aria-pressed") === "true";
  frame.className = isReal ? "real" : "";
  frame.style.cssText = isReal ? `width:${width}px;height:${height}px` : `aspect-ratio:${width}/${height}`;
  divide();
}
const divide = () => frame.style.setProperty("--cut", timer ? "0" : `${cut.value}%`);

choices.forEach((choice) => choice.addEventListener("change", show));
left.addEventListener("load", size);
cut.addEventListener("input", divide);
function follow(event) {
  const box = frame.getBoundingClientRect();
  cut.value = 100 * (event.clientX - box.left) / box.width;
  divide();
}
frame.addEventListener("pointerdown", (event) => {
  frame.setPointerCapture(event.pointerId); // a drag goes on outside the frame
  cut.focus({ preventScroll: true }); // the arrow keys then move the divider, too
  follow(event);
});
frame.addEventListener("pointermove", (event) => {
  if (event.buttons || event.pointerType === "mouse") follow(event);
});
// Otherwise, the browser drags a copy of the image, and the divider stops.
frame.addEventListener("mousedown", (event) => event.preventDefault());
frame.addEventListener("dragstart", (event) => event.preventDefault());
real.addEventListener("click", () => {
  real.setAttribute("aria-pressed", real.getAttribute("aria-pressed") !== "true");
  size();
});
blink.addEventListener("click", () => {
  timer = timer ? clearInterval(timer) : setInterval(() => right.classList.toggle("out"), 600);
  right.classList.remove("out");
  blink.setAttribute("aria-pressed", Boolean(timer));
  divide();
});
show();
