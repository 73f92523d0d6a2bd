"use strict";
// Zoom and search over the boxes of the picture. Names are only ever text.
const MARGIN = 10, LETTER = 7.1;
const svg = document.querySelector("svg.flame");
const inner = svg.viewBox.baseVal.width - 2 * MARGIN;
const boxes = [...svg.querySelectorAll("g.n")].map((g) => ({
  g,
  left: Number(g.dataset.l),
  width: Number(g.dataset.w),
  name: g.dataset.n,
  says: g.querySelector("title").textContent,
  rect: g.querySelector("rect"),
  text: g.querySelector("text"),
  y: Number(g.querySelector("rect").getAttribute("y")),
}));
const root = boxes[0];
const icicle = boxes.every((box) => box.y >= root.y);
let zoomed = root;
const detail = document.getElementById("detail");
const found = document.getElementById("found");
const search = document.getElementById("search");
const back = document.getElementById("back");
const above = (box, of) => (icicle ? box.y < of.y : box.y > of.y);

function draw() {
  for (const box of boxes) {
    // Callers of what is zoomed into are as wide as the picture.
    const caller = above(box, zoomed) && box.left <= zoomed.left + 1e-7 && box.left + box.width >= zoomed.left + zoomed.width - 1e-7;
    const left = caller ? 0 : (box.left - zoomed.left) / zoomed.width;
    const width = caller ? 1 : box.width / zoomed.width;
    const shown = caller || (!above(box, zoomed) && left >= -1e-6 && left + width <= 1 + 1e-6 && width * inner >= 0.3);
    box.g.style.display = shown ? "" : "none";
    if (!shown) continue;
    const pixels = width * inner;
    box.rect.setAttribute("x", String(MARGIN + left * inner));
    box.rect.setAttribute("width", String(Math.max(pixels, 0.1)));
    box.text.setAttribute("x", String(MARGIN + left * inner + 3));
    const letters = Math.floor((pixels - 6) / LETTER);
    box.text.textContent = letters < 3 ? "" : box.name.length <= letters ? box.name : box.name.slice(0, letters - 1) + "…";
    box.g.classList.toggle("caller", caller && box !== zoomed);
    box.g.setAttribute("tabindex", pixels > 20 ? "0" : "-1");
  }
  back.hidden = zoomed === root;
}
function zoom(box) {
  zoomed = box;
  draw();
  detail.textContent = box.says;
}
for (const box of boxes) {
  box.g.setAttribute("role", "button");
  box.g.setAttribute("aria-label", box.says);
  box.g.addEventListener("click", () => zoom(box));
  box.g.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      zoom(box);
    }
  });
  for (const kind of ["pointerenter", "focus"]) box.g.addEventListener(kind, () => (detail.textContent = box.says));
}
back.addEventListener("click", () => zoom(root));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") zoom(root);
  if (event.key === "/" && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
});
search.addEventListener("input", () => {
  const wanted = search.value.toLowerCase();
  const hits = boxes.filter((box) => wanted !== "" && box.name.toLowerCase().includes(wanted));
  for (const box of boxes) {
    box.g.classList.toggle("match", hits.includes(box));
    box.g.classList.toggle("dim", wanted !== "" && !hits.includes(box));
  }
  // A box inside of a hit is in that one's width.
  let covered = 0, end = -1;
  for (const hit of [...hits].sort((a, b) => a.left - b.left || b.width - a.width)) {
    const stop = hit.left + hit.width;
    if (stop > end + 1e-9) {
      covered += stop - Math.max(end, hit.left);
      end = stop;
    }
  }
  found.textContent = wanted === "" ? "" : `${hits.length} boxes, ${(covered * 100).toFixed(1)} %`;
});
svg.setAttribute("role", "group");
draw();
detail.textContent = root.says;
// The root of a flame graph is at its bottom: a deep one would begin with an empty window.
if (!icicle) window.scrollTo(0, document.documentElement.scrollHeight);
