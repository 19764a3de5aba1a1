// Cards of the patterns, and the dialog that shows one of them with its samples.

const UNCERTAIN = 0.8;
const STEPS = 100; // magnetizations are stored in hundredths
const NO_PART = -128; // of a spin that is not in the pattern
const PAGE = 100; // rows of the table of spins shown at a time
const magnetizations = new Map();
let order = data.patterns.map((pattern) => pattern.index);
let open = null;

function bytes(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function magnetizationOf(pattern) {
  if (!magnetizations.has(pattern.index)) {
    magnetizations.set(pattern.index, new Int8Array(bytes(pattern.m).buffer));
  }
  return magnetizations.get(pattern.index);
}

// Other numbers of all spins of a pattern, stored like magnetizations.
function hundredths(text) {
  return text === undefined ? null : new Int8Array(bytes(text).buffer);
}

// Spins of a sample in hundredths, like magnetizations; 0 where nothing was observed.
function spinsOf(sample) {
  const bits = bytes(sample.bits);
  const observed = sample.observed && bytes(sample.observed);
  const bit = (packed, i) => (packed[i >> 3] >> (7 - (i & 7))) & 1;
  return Int8Array.from({ length: data.n_spins }, (_, i) => (
    observed && !bit(observed, i) ? 0 : (bit(bits, i) ? STEPS : -STEPS)));
}

function spinName(i) {
  if (data.names) return data.names[i] || `spin ${i}`;
  if (!data.shape) return `spin ${i}`;
  return `row ${Math.floor(i / data.shape[1])}, col ${i % data.shape[1]}`;
}

const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
const signed = (m) => `${m < 0 ? '−' : '+'}${Math.abs(m).toFixed(2)}`;
const number = (value) => String(Number(value.toPrecision(3))).replace('-', '−');

// Mix the colour of doubt with that of the sign, the more the more certain.
function shade(value) {
  if (value === NO_PART) return channels(colours['no-part']);
  const end = channels(value < 0 ? colours.off : colours.on);
  const share = Math.min(Math.abs(value) / STEPS, 1);
  return channels(colours.doubt).map((doubt, c) => Math.round(doubt + share * (end[c] - doubt)));
}

function paint(canvas, values) {
  const [rows, columns] = data.shape;
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d');
  const image = context.createImageData(columns, rows);
  const palette = new Map();
  for (let i = 0; i < values.length; i += 1) {
    if (!palette.has(values[i])) palette.set(values[i], shade(values[i]));
    image.data.set(palette.get(values[i]), 4 * i);
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// A picture that can be painted again when the theme changes.
function picture(values, label) {
  const canvas = make('canvas', { className: 'pixels', role: 'img', 'aria-label': label });
  canvas.repaint = () => paint(canvas, values());
  canvas.repaint();
  return canvas;
}

function drawImages() {
  for (const canvas of document.querySelectorAll('canvas.pixels')) canvas.repaint();
}

// A bar is as long as its value, and as pale as the bit is uncertain.
function bar(value, m) {
  if (m === NO_PART) {
    return make('span', { className: 'diverging', title: 'not in the pattern' }, make('i', { className: 'no-part' }));
  }
  const inner = make('i', { className: value < 0 ? 'minus' : 'plus' });
  inner.style.width = `${Math.abs(value) / STEPS * 50}%`;
  inner.style.opacity = String(0.25 + 0.75 * Math.abs(m) / STEPS);
  return make('span', { className: 'diverging', 'aria-hidden': 'true' }, inner);
}

function barRows(pattern) {
  const m = magnetizationOf(pattern);
  const effect = hundredths(pattern.effect);
  const rows = pattern.top.map((i) => make('span', { className: 'row' },
    make('span', { className: 'name' }, spinName(i)), bar(effect ? effect[i] : m[i], m[i])));
  return make('span', { className: 'bars' }, ...rows);
}

// What is known of a pattern, in the order in which cards show it.
function factsOf(pattern) {
  const facts = [];
  if (data.has_strengths || pattern.strength < 0) {
    facts.push([number(pattern.strength), pattern.strength < 0 ? 'strength, repulsive' : 'strength']);
  }
  if (data.has_zeros) facts.push([`${pattern.n_part} of ${data.n_spins}`, 'spins']);
  if (pattern.share < pattern.hardly_any) facts.push(['almost no', 'samples']);
  else if (pattern.share !== undefined) facts.push([percent(pattern.share), 'of samples']);
  if (pattern.side_share) facts.push([pattern.side_share.map(percent).join(' / '), 'on + / − side']);
  if (pattern.returned !== undefined) facts.push([percent(pattern.returned), 'of refits find it again']);
  if (pattern.n_stable !== undefined) facts.push([String(pattern.n_stable), pattern.n_stable === 1 ? 'stable bit' : 'stable bits']);
  if (pattern.confidence !== undefined) facts.push([pattern.confidence.toFixed(3), 'mean |m|']);
  if (pattern.uncertain !== undefined) facts.push([String(pattern.uncertain), pattern.uncertain === 1 ? 'uncertain bit' : 'uncertain bits']);
  if (pattern.majority) facts.push([`label ${pattern.majority.label}`, `for ${percent(pattern.majority.share)}`]);
  return facts;
}

function card(pattern) {
  const facts = factsOf(pattern);
  const said = facts.map(([value, what]) => `${value} ${what}`).join(', ');
  const badge = pattern.strength < 0 ? [make('span', { className: 'badge' }, 'repulsive')] : [];
  const inside = [make('span', { className: 'title' }, `Pattern ${pattern.index}`, ...badge)];
  if (pattern.m === undefined) inside.push(make('span', { className: 'none' }, 'not drawn'));
  else if (data.shape) inside.push(picture(() => magnetizationOf(pattern), `Image of pattern ${pattern.index}`));
  else inside.push(barRows(pattern));
  const lines = facts.map(([value, what]) => make('span', { className: 'fact' }, make('b', {}, value), ` ${what}`));
  const button = make('button', {
    type: 'button', className: 'card', 'aria-haspopup': 'dialog', 'data-pattern': String(pattern.index),
    'aria-label': `Pattern ${pattern.index}: ${said}. Show its samples`,
  }, ...inside, make('span', { className: 'numbers' }, ...lines));
  button.addEventListener('click', () => show(pattern.index));
  return button;
}

const cardOf = (index) => document.querySelector(`.card[data-pattern="${index}"]`);

function sortCards(key, button) {
  const value = (index) => (key === 'order' ? -index : data.patterns[index][key]);
  order.sort((a, b) => value(b) - value(a) || a - b);
  byId('cards').append(...order.map(cardOf));
  for (const other of document.querySelectorAll('[data-sort]')) {
    other.setAttribute('aria-pressed', String(other === button));
  }
}

// Arrow keys walk over the grid of cards as it is laid out.
function walkCards(event) {
  const here = order.indexOf(Number(event.target.closest('.card')?.dataset.pattern));
  if (here < 0) return;
  const tops = order.map((index) => cardOf(index).offsetTop);
  const columns = tops.filter((top) => top === tops[0]).length;
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns,
    Home: -here, End: order.length - 1 - here };
  const there = here + steps[event.key];
  if (!(event.key in steps)) return;
  event.preventDefault();
  if (there >= 0 && there < order.length) cardOf(order[there]).focus();
}

function sampleName(sample) {
  return sample.name || `sample ${sample.row}`;
}

function sampleImages(pattern) {
  const figures = pattern.nearest.map((sample) => {
    const values = spinsOf(sample);
    const caption = [make('b', {}, sampleName(sample))];
    if (sample.label) caption.push(make('span', {}, `label ${sample.label}`));
    caption.push(make('span', {}, `overlap ${(sample.flipped ? '−' : '') + sample.overlap.toFixed(2)}`));
    caption.push(make('span', {}, `${plural(sample.n_different, 'bit')} differ${sample.n_different === 1 ? 's' : ''}`));
    return make('figure', {}, picture(() => values, `Image of ${sampleName(sample)}`),
      make('figcaption', {}, ...caption));
  });
  return make('div', { className: 'samples' }, ...figures);
}

function sampleTable(pattern) {
  const hasLabels = pattern.nearest.some((sample) => sample.label !== undefined);
  const titles = ['sample', ...(hasLabels ? ['label'] : []), 'overlap', 'differing spins', 'names of these'];
  const rows = pattern.nearest.map((sample) => {
    const names = sample.different.map(spinName).join(', ');
    const more = sample.n_different - sample.different.length;
    const differing = names + (more > 0 ? ` and ${more} more` : '') || '–';
    const cells = [...(hasLabels ? [sample.label || '–'] : []),
      (sample.flipped ? '−' : '') + sample.overlap.toFixed(3), String(sample.n_different), differing];
    return make('tr', {}, make('th', { scope: 'row' }, sampleName(sample)),
      ...cells.map((cell) => make('td', {}, cell)));
  });
  const table = make('table', { className: 'sortable nearest' }, headings(titles), make('tbody', {}, ...rows));
  makeSortable(table);
  return make('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Nearest samples' }, table);
}

function samplesPart(pattern) {
  const heading = make('h3', {}, 'Nearest samples');
  if (!data.has_samples) return [heading, make('p', { className: 'note' }, 'The report was written without samples.')];
  const n = pattern.nearest.length;
  if (!n) return [heading, make('p', { className: 'note' }, 'No sample is nearest to this pattern.')];
  const flipped = pattern.n_flipped ? ` ${pattern.n_flipped} of them are nearer to its negative.` : '';
  const missing = pattern.nearest.some((sample) => sample.observed) ? ' Amber: not observed.' : '';
  const count = n < pattern.count ? `The nearest ${n} of ${pattern.count} samples.` : `All ${plural(n, 'sample')} of the pattern.`;
  const view = data.shape && pattern.m !== undefined ? sampleImages(pattern) : sampleTable(pattern);
  return [heading, make('p', { className: 'note' }, count + flipped + missing), view];
}

// A table of all spins, some rows at a time, that can be filtered and sorted.
function spinTable(pattern) {
  const m = magnetizationOf(pattern);
  const size = (i) => (m[i] === NO_PART ? -1 : Math.abs(m[i]));
  const value = (i) => (m[i] === NO_PART ? 0 : m[i]);
  const effect = hundredths(pattern.effect);
  const up = pattern.up && pattern.up.map(hundredths);
  const agreement = hundredths(pattern.agreement);
  const known = (number) => number !== NO_PART;
  const columns = [];
  if (effect) {
    columns.push(['effect', (i) => (m[i] === NO_PART ? -1 : Math.abs(effect[i])), (i) => signed(effect[i] / STEPS)]);
    ['+ side', '− side'].forEach((title, side) => columns.push([title, (i) => up[side][i],
      (i) => (known(up[side][i]) ? percent(up[side][i] / STEPS) : '–')]));
  }
  columns.push([data.has_confidence ? 'm' : 'sign', value, (i) => (m[i] === NO_PART ? '0' : signed(m[i] / STEPS))]);
  if (data.has_confidence) {
    columns.push(['confidence', size, (i) => (m[i] === NO_PART ? '–' : percent((1 + Math.abs(m[i]) / STEPS) / 2))]);
  }
  if (agreement) columns.push(['refits', (i) => agreement[i], (i) => percent(agreement[i] / STEPS)]);
  const keys = [(i) => sortKey(spinName(i)), ...columns.map(([, rank]) => (i) => [0, rank(i), ''])];
  const titles = ['spin', ...columns.map(([title]) => title)];
  const all = [...m.keys()];
  let rows = all;
  let shown = PAGE;
  const body = make('tbody');
  const count = make('p', { className: 'note', 'aria-live': 'polite' });
  const more = make('button', { type: 'button', className: 'quiet' }, 'Show more');
  const filter = make('input', { type: 'search', placeholder: 'Filter spins by name', 'aria-label': 'Filter spins by name' });
  const table = make('table', { className: data.names ? 'sortable spins' : 'sortable spins short' }, headings(data.shape ? titles : [...titles, '']), body);
  const fill = () => {
    body.replaceChildren(...rows.slice(0, shown).map((i) => {
      const absent = m[i] === NO_PART;
      const cells = columns.map(([, , text]) => text(i));
      const uncertain = !absent && Math.abs(m[i]) < UNCERTAIN * STEPS;
      return make('tr', { className: absent ? 'absent' : uncertain ? 'uncertain' : '' }, make('th', { scope: 'row' }, spinName(i)),
        ...cells.map((cell) => make('td', {}, cell)), ...(data.shape ? [] : [make('td', {}, bar(effect ? effect[i] : m[i], m[i]))]));
    }));
    count.textContent = `${Math.min(shown, rows.length)} of ${plural(rows.length, 'spin')} shown.`;
    more.hidden = shown >= rows.length;
  };
  const sort = (column, direction) => {
    const sign = direction === 'ascending' ? 1 : -1;
    const ranked = all.map((i) => [keys[column](i), i]);
    ranked.sort(([a, i], [b, j]) => sign * compareKeys(a, b) || i - j);
    ranked.forEach(([, i], rank) => { all[rank] = i; });
    markSorted(table.tHead.rows[0].cells[column], direction);
    search();
  };
  const search = () => {
    const wanted = filter.value.toLowerCase();
    rows = wanted ? all.filter((i) => spinName(i).toLowerCase().includes(wanted)) : all;
    shown = PAGE;
    fill();
  };
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    if (column === titles.length) cell.replaceChildren();
    else cell.firstChild.addEventListener('click', () => sort(column, nextDirection(cell, column > 0)));
  });
  filter.addEventListener('input', search);
  more.addEventListener('click', () => { shown += 5 * PAGE; fill(); });
  sort(effect || !data.has_confidence ? 1 : 2, 'descending');
  const explained = effect ? [make('p', { className: 'note' }, 'Effect: difference in the probability of +1 between the samples on the two sides of the pattern (next two columns).')] : [];
  return [make('h3', {}, 'Spins'), ...explained, filter,
    make('div', { className: 'scroll tall', tabIndex: 0, role: 'region', 'aria-label': 'Spins of the pattern' }, table), count, more];
}

function largeImage(pattern) {
  const canvas = picture(() => magnetizationOf(pattern), `Image of pattern ${pattern.index}`);
  const readout = make('figcaption', {}, 'Point at a pixel for its value.');
  canvas.addEventListener('pointermove', (event) => {
    const [rows, columns] = data.shape;
    const at = (offset, size, n) => Math.min(n - 1, Math.max(0, Math.floor(offset / size * n)));
    const i = at(event.offsetY, canvas.clientHeight, rows) * columns + at(event.offsetX, canvas.clientWidth, columns);
    const m = magnetizationOf(pattern)[i];
    readout.textContent = `${spinName(i)}: ${m === NO_PART ? 'not in the pattern' : `m = ${signed(m / STEPS)}`}`;
  });
  return make('figure', { className: 'large' }, canvas, readout);
}

function show(index) {
  const pattern = data.patterns[index];
  open = index;
  byId('pattern-title').textContent = `Pattern ${index}`;
  const facts = factsOf(pattern).map(([value, what]) => make('span', {}, make('b', {}, value), ` ${what}`));
  const drawn = pattern.m !== undefined;
  byId('pattern-body').replaceChildren(
    make('p', { className: 'facts-line' }, ...facts),
    make('div', { className: data.shape ? 'split image' : 'split' },
      make('div', { className: 'look' }, ...(drawn && data.shape ? [largeImage(pattern)] : [])),
      make('div', { className: 'near' }, ...samplesPart(pattern)),
      make('div', { className: 'all' }, ...(drawn ? spinTable(pattern) : []))));
  const dialog = byId('pattern');
  if (!dialog.open) dialog.showModal();
  dialog.querySelector('.sheet').scrollTop = 0;
  byId('pattern-title').focus();
}

function move(step) {
  const place = (order.indexOf(open) + step + order.length) % order.length;
  show(order[place]);
}

function startPatterns() {
  const dialog = byId('pattern');
  const grid = byId('cards');
  if (!grid) return;
  grid.append(...data.patterns.map(card));
  grid.addEventListener('keydown', walkCards);
  for (const button of document.querySelectorAll('[data-sort]')) {
    button.addEventListener('click', () => sortCards(button.dataset.sort, button));
  }
  byId('previous').addEventListener('click', () => move(-1));
  byId('next').addEventListener('click', () => move(1));
  byId('close').addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('close', () => cardOf(open).focus());
  dialog.addEventListener('keydown', (event) => {
    if (event.target.matches('input, .scroll')) return; // there arrows belong to the text or the table
    if (event.key === 'ArrowRight') move(1);
    if (event.key === 'ArrowLeft') move(-1);
  });
}
