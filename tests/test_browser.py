"""The built site in a real browser: its figures react, and its search finds pages.

`make browser` builds the site and runs these tests; they are skipped without Chromium.
"""

import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
SITE = Path(__file__).parents[1] / "out/site"
CHOOSE, LOOP, FAQ = "guide/choosing", "guide/loop", "guide/faq"
# pages of which one must be the first or the second result
SEARCHES = {
    "alpha": ("reference/glossary", CHOOSE),
    "what is alpha": ("reference/glossary", CHOOSE),
    "choose k": (CHOOSE,),
    "default alpha": (CHOOSE,),
    "how to cite": ("index", FAQ),
    "citation": ("index", FAQ),
    "license": ("index", FAQ),
    "licence": ("index", FAQ),
    "install": ("index",),
    "cpu install": ("index",),
    "wheel": ("index",),
    "ddp": ("guide/devices",),
    "distributed": ("guide/devices",),
    "multi-gpu": ("guide/devices",),
    "amp": ("guide/devices", LOOP),
    "bf16": ("guide/devices", LOOP),
    "mixed precision": ("guide/devices", LOOP),
    "segmentation": ("guide/segmentation",),
    "masks": ("guide/segmentation",),
    "object detection": (FAQ,),
    "boxes": (FAQ,),
    "bert": (FAQ, "guide/text"),
    "text": (FAQ, "guide/text"),
    "tokens": (FAQ, "guide/text"),
    "regression": ("guide/regression",),
    "class imbalance": (FAQ,),
    "multi-label": ("guide/targets", FAQ),
    "label smoothing": (FAQ,),
    "lam_per": ("api/kmixup.KMixup",),
    "one lam per sample": ("api/kmixup.KMixup",),
    "k larger than batch size": ("guide/small-batches",),
    "memory": ("guide/small-batches",),
    "resume": (LOOP,),
    "checkpoint": (LOOP,),
    "batch norm": ("guide/batchnorm",),
    "cutmix": ("methods", "guide/cutmix"),
    "puzzlemix": ("methods", "api/kmixup.PuzzleMix"),
    "timm": ("frameworks/timm",),
    "torchvision": ("frameworks/torchvision",),
    "lightning": ("frameworks/lightning",),
    "keras": ("frameworks/keras",),
    "csv": ("own-data",),
    "excel": ("own-data",),
    "tune": ("own-data",),
    "sweep": ("experiments",),
    "ray": ("experiments",),
    "changelog": ("changelog",),
    "what is new": ("changelog",),
}


@pytest.fixture(scope="module")
def browser():
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs the programs chromium and chromedriver")
    assert (SITE / "index.html").exists(), "run make browser, which builds the site first"
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--window-size=1200,900",
    ):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(driver)) as opened:
        yield opened


def visit(browser, page):
    """Open a page from the disk, and raise if its scripts do."""
    browser.get((SITE / f"{page}.html").as_uri())
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def test_the_demo_shows_the_errors_of_the_chosen_k_and_alpha(browser):
    from selenium.webdriver.common.keys import Keys

    visit(browser, "index")
    assert not find(browser, 'img[src$="demo.webp"]')  # the figure is in its place
    errors = browser.execute_script("return kmixupDemo.errors")
    alphas = browser.execute_script("return kmixupDemo.alphas")
    alpha, k = find(browser, ".demo input")

    def shown():
        return [span.text for span in find(browser, ".demo .panels span")]

    def expected(k, at):
        values = errors["0"][0], errors["1"][at], errors[k][at]
        return [f"test error {value:.1f} %" for value in values]

    last = len(alphas) - 1
    assert shown() == expected("16", last)
    before = browser.execute_script(
        "return document.querySelectorAll('.demo canvas')[2].toDataURL()"
    )
    alpha.send_keys(Keys.HOME)
    assert shown() == expected("16", 0)
    k.send_keys(Keys.ARROW_LEFT)
    assert shown() == expected("4", 0)
    after = browser.execute_script(
        "return document.querySelectorAll('.demo canvas')[2].toDataURL()"
    )
    assert before != after
    assert "alpha = 0.05" in find(browser, ".demo figcaption")[0].get_attribute("textContent")


def test_the_matching_figure_follows_its_slider(browser):
    from selenium.webdriver.common.keys import Keys

    visit(browser, "learn/matching")
    (slider,) = find(browser, ".matching input")
    slider.send_keys(Keys.HOME)
    (caption,) = find(browser, ".matching figcaption")
    assert caption.text.startswith("k = 1 (mixup, random pairs)")


def test_pages_have_no_scripts_from_the_network_and_fit_a_phone(browser):
    browser.set_window_size(400, 800)
    for page in ("index", CHOOSE, "api/kmixup.KMixup", "methods"):
        visit(browser, page)
        width = browser.execute_script("return document.documentElement.scrollWidth")
        assert width <= browser.execute_script("return window.innerWidth"), page
        loaded = browser.execute_script(
            "return performance.getEntriesByType('resource').map((entry) => entry.name)"
        )
        assert not [address for address in loaded if address.startswith("http")]
    browser.set_window_size(1200, 900)


@pytest.mark.parametrize("query", SEARCHES)
def test_search_finds_the_page_first_or_second(browser, query):
    from selenium.webdriver.support.ui import WebDriverWait

    visit(browser, "index")
    browser.execute_script("document.querySelector('#__search').click()")
    (box,) = find(browser, "input.md-search__input")
    box.send_keys(query)

    def results(_):
        links = find(browser, ".md-search-result__item > a")
        return [link.get_attribute("href").partition("site/")[2] for link in links]

    found = WebDriverWait(browser, 20).until(results)
    first = [*dict.fromkeys(address.partition(".html")[0] for address in found)][:2]
    assert set(first) & set(SEARCHES[query]), first
