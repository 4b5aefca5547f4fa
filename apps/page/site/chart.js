// chart.js -- a line chart as SVG: axes, lines, and the values under the pointer.
import {el, svg} from './dom.js';
import {number} from './format.js';

const WIDTH = 640, HEIGHT = 240;
const LEFT = 84, RIGHT = 24, TOP = 12, BOTTOM = 36;
// More points than pixels are drawn as the lowest and highest of each group.
const POINTS_MAX = 1200;

/// Round steps that cut [low, high] into about `count` parts.
export function ticks(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
  const out = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step / 1e6; t += step)
    out.push(Number(t.toPrecision(12)));
  return out;
}

export function thinned(points, most = POINTS_MAX) {
  if (points.length <= most) return points;
  const size = Math.ceil(points.length / (most / 2)), out = [];
  for (let i = 0; i < points.length; i += size) {
    const group = points.slice(i, i + size);
    const low = group.reduce((a, b) => (b[1] < a[1] ? b : a));
    const high = group.reduce((a, b) => (b[1] > a[1] ? b : a));
    out.push(...(low[0] <= high[0] ? [low, high] : [high, low]));
  }
  return out;
}

/// The means of groups of neighbours, at most `most` of them: of what differs much
/// from step to step.
export function averaged(points, most = 150) {
  const size = Math.ceil(points.length / most), out = [];
  for (let i = 0; size && i < points.length; i += size) {
    const group = points.slice(i, i + size);
    out.push([group.at(-1)[0], group.reduce((a, p) => a + p[1], 0) / group.length]);
  }
  return out;
}

const short = (value) => (Math.abs(value) >= 10000 ? `${number(value / 1000)}k`
                                                   : number(value));

/// A chart. @param lines [{name, kind, points: [[x, y]]}]; `kind` is a class
export class Chart {
  constructor(title, unit) {
    this.title = title;
    this.unit = unit;
    this.drawing = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img'});
    this.readout = el('span', {class: 'numbers'});
    this.legend = el('span', {class: 'legend'});
    this.element = el('figure', {class: 'chart'},
      el('figcaption', {}, el('strong', {text: title}), this.legend, this.readout),
      this.drawing);
    this.drawing.addEventListener('pointermove', (event) => this.point(event));
    this.drawing.addEventListener('pointerleave', () => this.latest());
  }

  draw(lines) {
    this.lines = lines.filter((line) => line.points.length);
    const all = this.lines.flatMap((line) => line.points);
    this.drawing.replaceChildren();
    this.legend.replaceChildren(...(lines.length > 1 ? lines : []).map((line) =>
      el('span', {class: `key ${line.kind}`, text: line.name})));
    if (!all.length) {
      this.drawing.setAttribute('aria-label', `${this.title}: nothing yet`);
      this.drawing.append(svg('text', {x: WIDTH / 2, y: HEIGHT / 2, class: 'tick',
                                       'text-anchor': 'middle'}, 'nothing yet'));
      this.readout.textContent = '';
      return;
    }
    const bounds = (k) => all.reduce(([a, b], p) =>
      [Math.min(a, p[k]), Math.max(b, p[k])], [Infinity, -Infinity]);
    const [x0, x1] = bounds(0);
    let [y0, y1] = bounds(1);
    const margin = (y1 - y0) * 0.06 || Math.abs(y1) * 0.1 || 1;
    y0 = y0 >= 0 ? Math.max(0, y0 - margin) : y0 - margin;
    y1 += margin;
    this.x = (x) => LEFT + (WIDTH - LEFT - RIGHT) * (x1 > x0 ? (x - x0) / (x1 - x0) : 0.5);
    this.y = (y) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - y0) / (y1 - y0);
    this.axes(ticks(x0, x1, 6).filter(Number.isInteger), ticks(y0, y1, 4));
    for (const line of this.lines) {
      const points = thinned(line.points);
      const path = points.map(([x, y], i) =>
        `${i ? 'L' : 'M'}${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`).join('');
      this.drawing.append(svg('path', {d: path, class: `line ${line.kind}`}));
      if (points.length < 40)
        for (const [x, y] of points)
          this.drawing.append(svg('circle', {cx: this.x(x), cy: this.y(y), r: 3,
                                             class: `dot ${line.kind}`}));
    }
    this.drawing.setAttribute('aria-label', `${this.title}: ${this.lines.map((line) => {
      const first = line.points[0], end = line.points.at(-1);
      return `${line.name} ${number(first[1])} at step ${first[0]}, `
             + `${number(end[1])} at step ${end[0]}`;
    }).join('; ')}`);
    this.latest();
  }

  axes(xs, ys) {
    for (const y of ys)
      this.drawing.append(
        svg('line', {x1: LEFT, x2: WIDTH - RIGHT, y1: this.y(y), y2: this.y(y),
                     class: 'grid'}),
        svg('text', {x: LEFT - 8, y: this.y(y) + 4, class: 'tick',
                     'text-anchor': 'end'}, short(y)));
    for (const x of xs)
      this.drawing.append(svg('text', {x: this.x(x), y: HEIGHT - 8, class: 'tick',
                                       'text-anchor': 'middle'}, short(x)));
  }

  latest() {
    if (this.lines?.length) this.read(Infinity);
  }

  point(event) {
    if (!this.lines?.length) return;
    const box = this.drawing.getBoundingClientRect();
    const wanted = (event.clientX - box.left) / box.width * WIDTH;
    const near = this.lines[0].points.reduce((a, b) =>
      Math.abs(this.x(b[0]) - wanted) < Math.abs(this.x(a[0]) - wanted) ? b : a);
    this.read(near[0]);
  }

  /// Shows the values at a step, or the last before it.
  read(step) {
    const said = this.lines.map((line) => {
      const at = line.points.findLast((p) => p[0] <= step);
      return at && `${this.lines.length > 1 ? `${line.name} ` : ''}`
                   + `${number(at[1])}${this.unit}`;
    }).filter(Boolean);
    const at = step === Infinity ? this.lines[0].points.at(-1)[0] : step;
    this.readout.textContent = `step ${at}: ${said.join(', ')}`;
  }
}
