// The start page's figure: decision surfaces with sliders for k and alpha, in place of the film.
// kmixupDemo is the data that examples/demo.py writes into img/demo.js.
{
  const picture = document.querySelector('img[src$="demo.webp"]');
  const { steps, edge, alphas, points, classes, lams, partners, errors, surfaces } = kmixupDemo;
  const ks = Object.keys(partners).map(Number);
  const COLORS = {
    default: { surface: [[247, 220, 166], [255, 255, 255], [166, 207, 232]], points: [[230, 159, 0], [153, 153, 153], [0, 114, 178]] },
    slate: { surface: [[104, 74, 12], [30, 33, 41], [10, 70, 106]], points: [[255, 190, 60], [190, 190, 190], [110, 195, 245]] },
  };

  const blend = (scale, t) => { // t from 0 to 1 along three colors
    const [from, to] = t < 0.5 ? [scale[0], scale[1]] : [scale[1], scale[2]];
    const part = t < 0.5 ? 2 * t : 2 * t - 1;
    return from.map((value, i) => Math.round(value + part * (to[i] - value)));
  };
  const unpacked = (text) => [...atob(text)].flatMap((byte) => {
    const code = byte.charCodeAt(0);
    return [code >> 4, code & 15];
  });

  const figure = document.createElement("figure");
  figure.className = "demo";
  figure.innerHTML = `
    <div class="panels">${["no mixup", "mixup", ""].map((name) => `
      <div><b>${name}</b><canvas width="300" height="300" role="img"></canvas><span></span></div>`).join("")}
    </div>
    <label>alpha <input type="range" name="alpha" min="0" max="${alphas.length - 1}" value="${alphas.length - 1}"><output></output></label>
    <label>k <input type="range" name="k" min="0" max="${ks.length - 1}" value="${ks.indexOf(16)}"><output></output></label>
    <figcaption aria-live="polite"></figcaption>`;
  const [alphaSlider, kSlider] = figure.querySelectorAll("input");
  const panels = [...figure.querySelectorAll(".panels div")];

  const surface = (canvas, packed, colors) => {
    const small = document.createElement("canvas");
    small.width = small.height = steps;
    const image = new ImageData(steps, steps), levels = unpacked(packed);
    levels.forEach((level, i) => { // rows run from the bottom to the top
      const at = 4 * ((steps - 1 - Math.floor(i / steps)) * steps + (i % steps));
      image.data.set([...blend(colors.surface, level / 15), 255], at);
    });
    small.getContext("2d").putImageData(image, 0, 0);
    canvas.getContext("2d").drawImage(small, 0, 0, canvas.width, canvas.height);
  };
  const dots = (canvas, k, lam, colors) => {
    const context = canvas.getContext("2d"), scale = canvas.width / (2 * edge);
    points.forEach((point, i) => {
      const other = k ? partners[k][i] : i, weight = k ? lam[i] : 1;
      const [x, y] = point.map((value, axis) => weight * value + (1 - weight) * points[other][axis]);
      const soft = weight * classes[i] + (1 - weight) * classes[other];
      context.fillStyle = `rgb(${blend(colors.points, soft)})`;
      context.beginPath();
      context.arc((x + edge) * scale, (edge - y) * scale, 2.6, 0, 2 * Math.PI);
      context.fill();
    });
  };
  const draw = () => {
    const at = +alphaSlider.value, alpha = alphas[at];
    const shown = [0, 1, ks[kSlider.value]];
    const colors = COLORS[document.body.dataset.mdColorScheme] ?? COLORS.default;
    panels.forEach((panel, i) => {
      const k = shown[i], canvas = panel.querySelector("canvas");
      const error = errors[k][k ? at : 0].toFixed(1);
      const name = ["no mixup", "mixup", `k-mixup, k = ${k}`][i];
      surface(canvas, surfaces[k][k ? at : 0], colors);
      dots(canvas, k, lams[at], colors);
      panel.querySelector("b").textContent = name;
      panel.querySelector("span").textContent = `test error ${error} %`;
      canvas.setAttribute("aria-label", `Decision surface with ${name}, test error ${error} %`);
    });
    const [none, mixup, matched] = panels.map((panel) => panel.querySelector("span").textContent);
    figure.querySelector("figcaption").textContent =
      `alpha = ${alpha}: no mixup, ${none}; mixup, ${mixup}; k = ${shown[2]}, ${matched}.`;
    for (const [slider, value] of [[alphaSlider, alpha], [kSlider, shown[2]]]) {
      slider.setAttribute("aria-valuetext", value);
      slider.nextElementSibling.textContent = value;
    }
  };
  figure.addEventListener("input", draw);
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  (picture.closest("a") ?? picture).replaceWith(figure);
  draw();
}
