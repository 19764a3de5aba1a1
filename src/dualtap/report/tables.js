// Tables sorted by their headings, by mouse and by keyboard.

// Numbers, also with a percent sign, sort as numbers and before words.
function sortKey(text) {
  const number = text.trim() === '' ? NaN : Number(text.trim().replace('−', '-').replace(/\s*%$/, ''));
  return Number.isNaN(number) ? [1, 0, text] : [0, number, ''];
}

const words = new Intl.Collator(undefined, { numeric: true });

function compareKeys(a, b) {
  return a[0] - b[0] || a[1] - b[1] || (a[0] && words.compare(a[2], b[2]));
}

// Largest first at the first click for numbers, from A for words; then the other way round.
function nextDirection(heading, isNumber) {
  const now = heading.getAttribute('aria-sort');
  if (!now) return isNumber ? 'descending' : 'ascending';
  return now === 'ascending' ? 'descending' : 'ascending';
}

function markSorted(heading, direction) {
  for (const other of heading.parentElement.children) other.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', direction);
}

function sortRows(table, column) {
  const body = table.tBodies[0];
  const heading = table.tHead.rows[0].cells[column];
  const rows = [...body.rows].map((row) => [sortKey(row.cells[column].textContent), row]);
  const direction = nextDirection(heading, rows.some(([key]) => key[0] === 0));
  const sign = direction === 'ascending' ? 1 : -1;
  rows.sort(([a], [b]) => sign * compareKeys(a, b));
  body.append(...rows.map(([, row]) => row));
  markSorted(heading, direction);
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    cell.querySelector('button').addEventListener('click', () => sortRows(table, column));
  });
}

function headings(titles) {
  const cells = titles.map((title) => make('th', { scope: 'col' },
    make('button', { type: 'button' }, title)));
  return make('thead', {}, make('tr', {}, ...cells));
}
