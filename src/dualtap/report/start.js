// Cards and tables at once; charts when Plotly, which follows in the page, has been read.

readColours();
startPatterns();
document.querySelectorAll('#main table.sortable').forEach(makeSortable);

document.addEventListener('DOMContentLoaded', () => {
  byId('theme').addEventListener('click', toggleTheme);
  dark.addEventListener('change', redraw);
  printed.addEventListener('change', redraw);
  redraw();
  document.documentElement.dataset.ready = 'yes';
});
