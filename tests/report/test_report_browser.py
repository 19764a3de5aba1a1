"""The HTML report in a real browser."""

import json
import os
import re
import shutil

import numpy as np
import pytest
from examples import HOSTILE

from dualtap.fitted.meaning import profiles

CHROMIUM_OPTIONS = [
    *("--no-sandbox", "--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


# In a browser.


@pytest.fixture(scope="module")
def browser():
    program = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if program is None:
        reason = "NO CHROMIUM ON THIS MACHINE: the report is NOT tested in a browser"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def tabs(browser, pages):
    """Open a page, or come back to it: reading Plotly takes longer than any test."""
    opened, wrong = {}, []

    def _open(name, options):
        page = browser.new_context(**options).new_page()
        page.set_default_timeout(120_000)  # also on a busy machine
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: _only_local(request.url, wrong))
        page.goto((pages / f"{name}.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        return page

    def _tab(name, options):
        key = name, json.dumps(options)
        if key not in opened:
            opened[key] = _open(name, options)
        return opened[key]

    yield _tab, wrong
    for page in opened.values():
        page.context.close()


@pytest.fixture
def visit(tabs):
    """Go to a page as it was opened; nothing may go wrong in it and nothing be requested."""
    tab, wrong = tabs

    def _visit(name, **options):
        page = tab(name, options)
        page.evaluate(
            "document.querySelector('dialog').close(), document.activeElement.blur(), "
            "scrollTo(0, 0), document.querySelector('[data-sort=order]')?.click()"
        )
        return page

    yield _visit
    assert not wrong


def _only_local(url, wrong):
    if not url.startswith(("file:", "data:", "blob:")):
        wrong.append(f"requested {url}")


PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
NAMES = ["digits", "votes", "rbm", "deflation", "nothing", "general", "large"]


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_page_opens_also_on_a_phone(visit, name):
    page = visit(name, **PHONE)
    assert page.locator("h1").inner_text().endswith("found")
    n_charts = page.locator("[data-chart]").count()
    assert n_charts >= 2
    assert page.locator("[data-chart] > .plot-container").count() == n_charts
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if page.locator(".card").count():
        page.locator(".card").first.tap()
        assert page.locator("dialog").is_visible()
        assert page.evaluate("document.querySelector('.sheet').scrollWidth") <= 360


def test_clicking_a_pattern_shows_its_samples(visit, digits):
    page = visit("digits")
    assert page.locator(".card").count() == 8
    page.locator(".card").nth(2).click()
    assert page.locator("#pattern-title").inner_text() == "Pattern 2"
    count = int(np.sum(digits[0].predict(digits[1]) == 2))
    pictures = page.locator(".samples canvas")
    assert pictures.count() == min(24, count)
    assert "overlap" in page.locator(".samples figcaption").first.inner_text()
    page.locator("#close").click()
    assert not page.locator("dialog").is_visible()


def test_images_show_the_model_pixel_by_pixel(visit, digits):
    model = digits[0]
    page = visit("digits")
    pixels = page.evaluate(
        "[...document.querySelector('.card canvas').getContext('2d').getImageData(0,0,8,8).data]"
    )
    colour = [tuple(pixels[4 * i : 4 * i + 3]) for i in range(64)]
    m = np.round(model.magnetizations_[0], 2)
    on, off = ({colour[i] for i in np.flatnonzero(m == end)} for end in (m.max(), m.min()))
    assert len(on) == len(off) == 1
    assert on != off
    style = "getComputedStyle(document.querySelector('.card canvas')).imageRendering"
    assert page.evaluate(style) == "pixelated"


def test_the_keyboard_does_what_the_mouse_does(visit):
    page = visit("digits")
    focused = "document.activeElement.dataset.pattern"

    def leave():
        """Press Escape, and wait for the event that brings the focus back."""
        page.evaluate(
            """() => { window.left = new Promise((done) => document.querySelector('dialog')
                .addEventListener('close', () => done(true), { once: true })); }"""
        )
        page.keyboard.press("Escape")
        assert page.evaluate("() => window.left")

    page.locator(".card").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "1"
    page.keyboard.press("Enter")
    assert page.locator("#pattern-title").inner_text() == "Pattern 1"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#pattern-title").inner_text() == "Pattern 2"
    leave()
    assert not page.locator("dialog").is_visible()
    assert page.evaluate(focused) == "2"
    page.keyboard.press("Space")
    assert page.locator("dialog").is_visible()
    leave()
    page.keyboard.press("End")
    assert page.evaluate(focused) == "7"
    page.keyboard.press("ArrowUp")
    assert int(page.evaluate(focused)) < 7


def test_cards_can_be_sorted(visit, digits):
    model = digits[0]
    page = visit("digits")

    def order():
        cards = page.locator(".card").all()
        return [int(card.get_attribute("data-pattern")) for card in cards]

    page.locator("[data-sort=confidence]").click()
    part = model.patterns_ != 0
    sure = np.abs(model.magnetizations_).sum(axis=1) / part.sum(axis=1)
    assert (np.diff(sure[order()]) <= 1e-6).all()
    assert page.locator("[data-sort=confidence]").get_attribute("aria-pressed") == "true"
    page.locator("[data-sort=share]").press("Enter")
    assert (np.diff(model.weights_[order()]) <= 0).all()
    page.locator("[data-sort=order]").click()
    assert order() == list(range(8))


def test_tables_can_be_sorted_by_mouse_and_keyboard(visit):
    page = visit("digits")
    heading = page.locator("#labels thead th").nth(11)
    assert heading.inner_text() == "samples"

    def column():
        return [int(cell.inner_text()) for cell in page.locator("#labels td:nth-child(12)").all()]

    heading.locator("button").click()
    assert column() == sorted(column(), reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    heading.locator("button").press("Enter")
    assert column() == sorted(column())
    assert heading.get_attribute("aria-sort") == "ascending"


def test_spins_can_be_filtered_and_sorted_and_all_are_reachable(visit, taught):
    model, X, _ = taught
    page = visit("taught", **PHONE)
    page.locator(".card").first.click()
    rows = page.locator(".spins tbody tr")
    assert rows.count() == 100
    page.get_by_role("button", name="Show more").click()
    assert rows.count() == 200
    effect = np.abs(profiles(X, model.patterns_).effect[0])
    assert rows.first.locator("td").first.inner_text()[1:] == f"{effect.max():.2f}"
    page.locator(".spins thead button").nth(4).click()
    largest = model.magnetizations_[0].max()
    assert rows.first.locator("td").nth(3).inner_text() == f"+{largest:.2f}"
    page.get_by_role("searchbox").fill("spin 17")
    assert rows.count() == 11  # 17 and 170 … 179


def test_dark_and_light(visit):
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "document.querySelector('[data-chart]')._fullLayout.font.color"
    page = visit("taught", **PHONE)
    light = page.evaluate(background), page.evaluate(ink)
    page.get_by_role("button", name="Use dark colours").click()
    dark = page.evaluate(background), page.evaluate(ink)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    page.get_by_role("button", name="Use light colours").click()
    assert (page.evaluate(background), page.evaluate(ink)) == light
    page.evaluate("delete document.documentElement.dataset.theme")
    page.emulate_media(color_scheme="dark")
    _until(page, ink, dark[1])
    assert page.evaluate(background) == dark[0]
    page.emulate_media(color_scheme="light")


def _until(page, expression, value):
    """Wait for a listener to have run; the page's policy forbids Playwright's own way to wait."""
    for _ in range(100):
        if page.evaluate(expression) == value:
            return
        page.wait_for_timeout(50)
    assert page.evaluate(expression) == value


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}], ids=["light", "dark"])
def test_text_has_contrast(visit, options):
    page = visit("digits", **options)
    page.locator(".card").first.click()
    for selector in (
        *(".lead p:last-child", ".card .fact", "figcaption", ".bar nav a", ".note"),
        *("thead th[aria-sort] button", ".facts dt", "footer p"),
    ):
        colours = page.evaluate(COLOURS_OF, selector)
        assert _contrast(*colours) >= 4.5, (selector, colours)


COLOURS_OF = """(selector) => {
  let node = document.querySelector(selector);
  const text = getComputedStyle(node).color;
  const clear = 'rgba(0, 0, 0, 0)';
  while (getComputedStyle(node).backgroundColor === clear) node = node.parentElement;
  return [text, getComputedStyle(node).backgroundColor];
}"""


def _contrast(first, second):
    def luminance(colour):
        c = np.array([float(x) for x in re.findall(r"[\d.]+", colour)[:3]]) / 255
        return np.where(c <= 0.03928, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [
            *(0.2126, 0.7152, 0.0722)
        ]

    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


def test_focus_can_be_seen(visit):
    page = visit("digits")
    page.locator(".skip").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style == "solid"


def test_what_comes_from_files_is_never_markup(visit):
    page = visit("votes", **PHONE)
    assert page.locator("img, svg[onload], b:text-is('bold')").count() == 0
    assert HOSTILE in page.locator(".card .name").all_inner_texts()
    assert HOSTILE in page.locator("pre").inner_text()
    assert page.locator("#labels thead").inner_text().count(HOSTILE) == 1
    page.locator(".card").first.click()
    assert page.locator(".spins tbody").inner_text().count(HOSTILE) == 1
    assert f"<b>{HOSTILE}</b>" in page.locator(".nearest tbody th").first.inner_text()
    page.keyboard.press("Escape")
    page.locator("[data-chart=overlaps] .nsewdrag").hover()
    page.wait_for_selector("[data-chart=overlaps] .hovertext")
    assert (
        f"<b>{HOSTILE}</b>" in page.locator("[data-chart=overlaps] .hovertext").first.text_content()
    )
    assert page.locator("img").count() == 0


def test_when_nothing_is_found_the_page_says_why(visit, fair_spins):
    page = visit("nothing", **PHONE)
    assert page.locator("h1").inner_text() == "No pattern found"
    assert fair_spins[0].reason_[1:] in page.locator(".lead").inner_text()
    assert page.locator("#patterns").count() == 0
    assert page.locator("[data-chart=spectrum] .point").count() > 10


def test_the_page_marks_repulsive_patterns_and_names_their_spins(visit, general):
    model = general[0]
    page = visit("general", **PHONE)
    cards = page.locator(".card")
    assert cards.locator(".badge").all_inner_texts() == ["repulsive"]
    assert cards.nth(2).locator(".badge").count() == 1
    assert "−4 strength, repulsive" in cards.nth(2).inner_text()
    assert "3 of 64 spins" in cards.nth(1).inner_text()
    assert cards.nth(1).locator(".row").count() == 3  # no spin that takes no part
    assert page.locator(".legend").inner_text().endswith("not in the pattern")
    page.locator("[data-sort=n_part]").click()
    sizes = np.count_nonzero(model.patterns_, axis=1)
    order = [int(card.get_attribute("data-pattern")) for card in cards.all()]
    assert (np.diff(sizes[order]) <= 0).all()
    page.locator("[data-sort=order]").click()
    cards.nth(1).click()
    rows = page.locator(".spins tbody tr")
    assert page.locator(".spins tbody tr.absent").count() == 61
    assert "\t0\t" not in rows.nth(2).inner_text()
    assert "\t0\t" in rows.nth(3).inner_text()


def test_pixels_that_take_no_part_have_a_neutral_colour(visit, general):
    page = visit("images")
    pixels = page.evaluate(
        "[...document.querySelector('.card canvas').getContext('2d').getImageData(0,0,8,8).data]"
    )
    colour = np.reshape(pixels, (64, 4))[:, :3]
    zeros = general[0].patterns_[0] == 0
    neutral = np.unique(colour[zeros], axis=0)
    assert len(neutral) == 1
    assert not (colour[~zeros] == neutral).all(axis=1).any()


def test_the_page_has_the_steps_of_the_search(visit):
    page = visit("general", **PHONE)
    rows = page.locator("#search tbody tr")
    assert rows.count() == 3
    assert rows.nth(0).locator("td").all_inner_texts() == [
        *("add", HOSTILE, "2", "900.0", "99.5", "yes")
    ]
    assert rows.nth(2).locator("td").all_inner_texts()[-2:] == ["−3.0", "no"]
    assert page.locator("[data-chart=path] .scatterlayer .trace").count() == 2
    assert page.locator("[data-chart=strengths] .point").count() == 3


def test_an_rbm_shows_its_learning(visit, rbm):
    page = visit("rbm", **PHONE)
    assert page.locator(".card").count() == rbm[0].n_patterns_ == 2
    assert "Gaussian hidden units" in page.locator(".lead").inner_text()
    assert page.locator("[data-chart=singular] .scatterlayer .trace").count() == 4
    assert page.locator("[data-sort=confidence]").count() == 0


def test_on_paper_it_is_light_and_whole(visit):
    page = visit("digits", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".bar nav").is_visible()
    assert not page.locator("#theme").is_visible()
    for section in page.locator("main section").all():
        assert section.is_visible()
    _until(page, "document.querySelector('[data-chart]')._fullLayout.width", 640)
    style = "getComputedStyle(document.querySelector('.card')).breakInside"
    assert page.evaluate(style) == "avoid"
    assert page.pdf(format="A4").startswith(b"%PDF")
