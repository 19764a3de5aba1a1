// Colours of the theme in use, and the charts drawn in them.

const data = JSON.parse(document.getElementById('data').textContent);
const TOKENS = ['ink', 'muted', 'quiet', 'line', 'surface', 'accent', 'plus', 'zero', 'minus', 'on', 'doubt', 'off', 'no-part'];
const dark = matchMedia('(prefers-color-scheme: dark)');
const printed = matchMedia('print');
const PRINT_WIDTH = 640; // what a page of paper holds between its margins
let colours = {};

const byId = (id) => document.getElementById(id);

// An element with properties and children; text is always set as text.
function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name in node && typeof value !== 'string') node[name] = value;
    else node.setAttribute(name === 'className' ? 'class' : name, value);
  }
  node.append(...children);
  return node;
}

function readColours() {
  const probe = document.body.appendChild(make('i', { hidden: true }));
  for (const token of TOKENS) {
    probe.style.color = `var(--${token})`;
    colours[token] = getComputedStyle(probe).color;
  }
  probe.remove();
}

// The red, green and blue of a colour as the browser reports it.
const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);

// A figure with the names of colours replaced by those of the theme.
function coloured(value) {
  if (typeof value === 'string') {
    return value[0] === '$' && value.slice(1) in colours ? colours[value.slice(1)] : value;
  }
  if (Array.isArray(value)) return typeof value.at(-1) === 'number' ? value : value.map(coloured);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item)]));
}

function themedLayout(layout) {
  const font = { family: getComputedStyle(document.body).fontFamily, size: 13, color: colours.muted };
  const axis = {
    gridcolor: colours.line, linecolor: colours.line, zerolinecolor: colours.line,
    tickcolor: colours.line, automargin: true, fixedrange: false,
  };
  const themed = {
    height: 280, margin: { l: 56, r: 12, t: 8, b: 44 }, showlegend: false, bargap: 0.25,
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font, autosize: true,
    hoverlabel: { bgcolor: colours.surface, bordercolor: colours.line,
      font: { ...font, color: colours.ink }, align: 'left', namelength: -1 },
    ...coloured(layout),
  };
  for (const key of Object.keys(themed).filter((name) => /^[xy]axis\d?$/.test(name))) {
    const title = { font: { size: 13 }, ...themed[key].title };
    themed[key] = { ...axis, ...themed[key], title };
  }
  if (printed.matches) Object.assign(themed, { width: PRINT_WIDTH, autosize: false });
  return themed;
}

function drawCharts() {
  const config = { responsive: true, displayModeBar: false, displaylogo: false };
  for (const node of document.querySelectorAll('[data-chart]')) {
    const figure = data.charts[node.dataset.chart];
    Plotly.react(node, coloured(figure.data), themedLayout(figure.layout), config);
  }
}

const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? 'dark' : 'light')) === 'dark';

function redraw() {
  readColours();
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
  byId('theme').setAttribute('aria-label', isDark() ? 'Use light colours' : 'Use dark colours');
  drawCharts();
  drawImages();
}

function toggleTheme() {
  document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
  redraw();
}
