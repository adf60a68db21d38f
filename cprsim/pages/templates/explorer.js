"use strict";
const byId = (id) => document.getElementById(id);
const REST_MS = 200; // without a move, after which all replications are asked for
const PROMPT_MS = 400; // an answer within this follows a slider with all replications
const rows = [...document.querySelectorAll(".slider")].map((row) => {
  const [number, low, high] = ["number", "low", "high"].map((key) => parseFloat(row.dataset[key]));
  const [text, range] = ["text", "range"].map((type) => row.querySelector(`[type=${type}]`));
  const { key, unit, today } = row.dataset;
  return { row, key, unit, today, whole: "whole" in row.dataset, number, low, high, text, range };
});

// A slider goes by factors, from a zero in equal steps.
function placeOf({ low, high, range }, number) {
  const share = low > 0 ? Math.log(number / low) / Math.log(high / low) : number / high;
  return Math.round(range.max * Math.min(Math.max(share, 0), 1));
}

function valueAt({ low, high, whole, range }) {
  const share = range.value / range.max;
  const value = low > 0 ? low * (high / low) ** share : high * share;
  return whole ? Math.round(value) : Number(value.toPrecision(3));
}

function moved(one) {
  const isToday = one.today !== undefined && Number(one.range.value) === placeOf(one, one.number);
  one.text.value = isToday ? one.today : `${valueAt(one)} ${one.unit}`.trim();
}

function dress(one) {
  const value = one.text.value.trim(), [, number, unit] = /^([\d.eE+-]*)\s*(.*)$/.exec(value);
  const isSet = value !== one.today;
  one.row.classList.toggle("set", isSet);
  one.row.querySelector("button").hidden = !isSet;
  if (!one.range) return;
  const place = placeOf(one, value && unit === one.unit ? Number(number) : one.number);
  if (!Number.isNaN(place) && document.activeElement !== one.range) one.range.value = place;
  one.range.setAttribute("aria-valuetext", value || one.text.placeholder);
}

function query() {
  rows.forEach(dress);
  const sets = rows.map(({ key, text, today }) => [key, text.value.trim(), today]);
  const changed = sets.filter(([, value, today]) => value !== today);
  return new URLSearchParams(changed.map(([key, value]) => ["set", `${key}=${value}`]));
}

let wanted = null, isBusy = false, rest = 0, lastMs = Infinity; // of the last that was not coarse

async function ask(isCoarse) {
  wanted = `&coarse=${Number(isCoarse)}`;
  if (isBusy) return;
  isBusy = true;
  while (wanted) {
    const asked = query().toString(), how = wanted, begin = performance.now();
    wanted = null;
    byId("answer").classList.add("stale");
    byId("state").textContent = "computing";
    await fetch(`answer?${asked}&width=${byId("answer").clientWidth}${how}`)
      .then((response) => (response.ok ? response.json() : Promise.reject(response.statusText)))
      .then((shown) => show(shown, asked, how.endsWith("1")))
      .catch((why) => say(`cprsim explore does not answer (${why}): see its terminal`));
    if (how.endsWith("0")) lastMs = performance.now() - begin;
  }
  isBusy = false;
}

function say(error) {
  byId("error").textContent = error;
  byId("error").hidden = !error;
  const isShown = byId("answer").querySelector("table");
  if (error) byId("state").textContent = isShown ? "for the values before:" : "no answer";
}

function show(shown, asked, isCoarse) {
  say(shown.error ?? "");
  if (shown.error) return; // the links stay those of the answer below
  history.replaceState(null, "", `?${asked}`);
  byId("save").href = `scenario.yaml?${asked}`;
  byId("link").href = `?${asked}`;
  byId("answer").innerHTML = shown.html;
  byId("answer").classList.remove("stale");
  byId("summary").textContent = shown.summary;
  const many = shown.replications === 1 ? "" : "s";
  const n = `${shown.replications.toLocaleString("en")} replication${many}`;
  byId("state").textContent = isCoarse ? `${n}, more when it rests` : n;
}

for (const one of rows) {
  one.range?.addEventListener("input", () => {
    moved(one);
    clearTimeout(rest);
    ask(lastMs > PROMPT_MS);
    if (lastMs > PROMPT_MS) rest = setTimeout(ask, REST_MS, false);
  });
  one.text.addEventListener("change", () => ask(false));
  one.row.querySelector("button").addEventListener("click", () => {
    if (one.today === undefined) one.row.remove(), rows.splice(rows.indexOf(one), 1);
    else one.text.value = one.today;
    ask(false);
  });
}

byId("sliders").addEventListener("submit", (event) => {
  event.preventDefault();
  const more = byId("more").value.trim();
  if (!more) return;
  const all = query();
  all.append("set", more);
  location.search = all.toString(); // the page has a row for it then
});

byId("end").addEventListener("click", async () => {
  const response = await fetch(`end?${query()}`, { method: "POST" }).catch(() => null);
  const { error } = (await response?.json()) ?? {};
  if (error) say(error);
  else document.body.textContent = "Ended; the answer is in the terminal.";
});

ask(false);
if (innerWidth < 960) { // the answer is below the sliders
  document.querySelectorAll("details").forEach((group, n) => {
    group.open = n === 0 || group.querySelector(".set");
  });
}
