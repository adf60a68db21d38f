
"use strict";
document.documentElement.classList.add("scripted");

// Figures whose pieces can be pointed at: one stop of the Tab key, arrow keys go on from there.
for (const figure of document.querySelectorAll("figure.picture")) {
  const readout = figure.querySelector(".readout");
  const buttons = [...figure.querySelectorAll("button[data-group]")];

  const say = (mark) => {
    if (readout) readout.textContent = mark ? mark.getAttribute("aria-label") : readout.dataset.empty;
  };

  for (const list of figure.querySelectorAll('svg[role="listbox"]')) {
    const marks = [...list.querySelectorAll(".mark")];
    const choose = (mark) => {
      for (const one of marks) {
        one.setAttribute("aria-selected", String(one === mark));
        one.setAttribute("tabindex", one === mark ? "0" : "-1");
      }
      say(mark);
    };
    const chosen = () => marks.find((mark) => mark.getAttribute("aria-selected") === "true");
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    marks.forEach((mark, i) => {
      mark.setAttribute("tabindex", i === 0 ? "0" : "-1");
      mark.addEventListener("focus", () => choose(mark));
      mark.addEventListener("pointerenter", () => say(mark));
      mark.addEventListener("pointerleave", () => say(chosen()));
      mark.addEventListener("click", () => mark.focus());
      mark.addEventListener("keydown", (event) => {
        let next = null;
        if (event.key in steps) next = marks[(i + steps[event.key] + marks.length) % marks.length];
        if (event.key === "Home") next = marks[0];
        if (event.key === "End") next = marks[marks.length - 1];
        if (next) {
          event.preventDefault();
          next.focus();
        }
      });
    });
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      const pressed = button.getAttribute("aria-pressed") !== "true";
      for (const one of buttons) one.setAttribute("aria-pressed", String(pressed && one === button));
      for (const mark of figure.querySelectorAll(".mark")) {
        mark.classList.toggle("dim", pressed && mark.dataset.group !== button.dataset.group);
      }
    });
  }
}

// A line in a figure that the reader moves, and what is read off there.
for (const figure of document.querySelectorAll("figure.scale")) {
  const input = figure.querySelector('input[type="range"]');
  const readings = [...figure.querySelectorAll("dd[data-texts]")].map((place) => ({
    place,
    texts: JSON.parse(place.dataset.texts),
  }));
  const move = () => {
    const value = Number(input.value);
    for (const { place, texts } of readings) place.textContent = texts[value - Number(input.min)];
    for (const place of figure.querySelectorAll(".chosen")) place.textContent = value;
    input.setAttribute("aria-valuetext", `P${value}`);
    for (const svg of figure.querySelectorAll("svg")) {
      const width = svg.querySelector(".plot-area").getBBox().width;
      const x = ((value - Number(input.dataset.start)) / 100) * width;
      svg.querySelector(".pointer").setAttribute("transform", `translate(${x} 0)`);
    }
  };
  input.addEventListener("input", move);
  window.addEventListener("resize", move); // what is not shown has no width
  move();
}

// What does not scroll is no stop of the Tab key and no region.
const scrollers = [...document.querySelectorAll('[role="region"][tabindex="0"]')];
const heed = () => {
  for (const one of scrollers) {
    const scrolls = one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight;
    for (const [name, value] of [["tabindex", "0"], ["role", "region"]]) {
      if (scrolls) one.setAttribute(name, value);
      else one.removeAttribute(name);
    }
  }
};
window.addEventListener("resize", heed);
heed();

// Node-hours times a price.
for (const group of document.querySelectorAll(".price")) {
  const input = group.querySelector("input");
  const format = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
  const show = () => {
    const price = Number(input.value);
    const known = input.value !== "" && price >= 0;
    for (const place of group.querySelectorAll("dd")) {
      const [mean, low, high] = JSON.parse(place.dataset.nodeH);
      const range = low === null ? "" : ` (95 % interval ${format.format(low * price)} to ${format.format(high * price)})`;
      place.textContent = known ? `${format.format(mean * price)} per job${range}` : "a price is missing";
    }
  };
  input.addEventListener("input", show);
  show();
}
