// The slider of the start page: moves lines and mixed points to the matching at another k.
for (const figure of document.querySelectorAll("figure.matching")) {
  const partners = Object.values(JSON.parse(figure.dataset.partners));
  const said = JSON.parse(figure.dataset.said);
  const all = (selector) => [...figure.querySelectorAll(selector)];
  const lines = all(".pairs line"), mixed = all(".mixed circle");
  const points = all(".samples circle").map((dot) => [+dot.getAttribute("cx"), +dot.getAttribute("cy")]);
  const slider = figure.querySelector("input"), caption = figure.querySelector("figcaption");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let ends = partners[slider.value].map((other) => points[other]); // where the lines end now
  let running = 0;

  const place = () => ends.forEach(([x, y], i) => {
    lines[i].setAttribute("x2", x);
    lines[i].setAttribute("y2", y);
    mixed[i].setAttribute("cx", (x + points[i][0]) / 2);
    mixed[i].setAttribute("cy", (y + points[i][1]) / 2);
  });

  slider.addEventListener("input", () => {
    caption.textContent = said[slider.value];
    slider.setAttribute("aria-valuetext", said[slider.value]);
    const before = ends, after = partners[slider.value].map((other) => points[other]);
    const start = performance.now(), run = ++running;
    const step = (now) => {
      if (run !== running) return; // a newer move has taken over
      const t = still.matches ? 1 : Math.min((now - start) / 500, 1);
      ends = after.map(([x, y], i) => [
        before[i][0] + t * (x - before[i][0]),
        before[i][1] + t * (y - before[i][1]),
      ]);
      place();
      if (t < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  slider.setAttribute("aria-valuetext", said[slider.value]);
  slider.parentElement.hidden = false; // without this script there is only the picture
}
