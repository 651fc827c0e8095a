#!/usr/bin/env python3
"""report.py: the HTML report in a real browser.  Prints TAP.

report.py REPORT.html MODEL.json DAY.html [PICTURES]
report.py --open REPORT.html	any report: it opens, is drawn, and is silent; prints "N charts, N checkpoints, N pieces of advice"

REPORT.html	of a server whose names and settings are hostile markup
MODEL.json	report('json') of the same server at the same time
DAY.html	24 hours at the default interval
PICTURES	a directory: screenshots are left there
"""
import json
import re
import shutil
import sys
import time
from pathlib import Path

from webdriver import Browser, WebDriverError

OPENS_IN = 2.0  # s, of the page itself: from the begin of its loading until it is drawn
LARGEST = 5 * 1024 * 1024
HOSTILE = "<script>alert(1)</script>"

results = []


def ok(good, name, detail=""):
    results.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(results)} - {name}", flush=True)
    if not good:
        print(f"# {detail}", flush=True)


def equal(got, expected, name):
    ok(got == expected, name, f"got {got!r}, expected {expected!r}")


def load(browser, path):
    browser.open(Path(path).resolve().as_uri())
    return browser.wait("return document.documentElement.dataset.ready === 'yes'")


def quiet(browser, path, what):
    """Nothing in the console, nothing asked of any other address."""
    messages = [entry["message"] for entry in browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    equal(messages, [], f"{what}: the console is silent")
    asked = set()
    for entry in browser.log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            asked.add(event["params"]["request"]["url"].split("#")[0])
    equal(asked - {Path(path).resolve().as_uri(), "data:,"}, set(), f"{what}: the page asks for nothing but itself")


def first_frame(browser):
    browser.run("document.querySelector('.frame').scrollIntoView({block: 'center'})")
    return browser.run("const r = document.querySelector('.frame .u-over').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]")


def check_charts(browser, model):
    series = model["series"]
    lines = [key for key, line in series.items() if isinstance(line, dict)]
    counted = browser.run("""
        const found = {};
        for (const chart of kernelAdvisorReport.charts)
            chart.lines.forEach(([key], i) => { found[key] = [chart.plot.data[1 + 3 * i].length, chart.plot.data[1 + 3 * i].filter((v) => v !== null).length]; });
        return found;""")
    for key in ("transactions", "compact_stall", "pcp_pages", "page_table_bytes", "free_costly_blocks", "pressure_some"):
        if series[key] is None:
            continue
        known = sum(value is not None for value in series[key]["avg"])
        equal(counted.get(key), [len(series["at"]), known], f"the chart of {key} has every point")
    ok(set(counted) <= set(lines), "and no chart has a line that the model has not", counted)
    inked = browser.run("""
        return kernelAdvisorReport.charts.map((chart) => {
            const canvas = chart.plot.ctx.canvas;
            const pixels = chart.plot.ctx.getImageData(0, 0, canvas.width, canvas.height).data;
            const colours = new Set();
            for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3]) colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
            return colours.size;
        });""")
    ok(inked and all(colours > 3 for colours in inked), "every chart is drawn", inked)
    equal(browser.run("return document.querySelectorAll('#checkpoints tbody tr').length"), min(200, len(model["checkpoints"])),
          "a row for each checkpoint")
    equal(browser.run("return document.querySelectorAll('#advice-list article').length"), len(model["advice"]), "a card for each advice")


def check_tip(browser, model):
    left, top, width, height = first_frame(browser)
    browser.pointer((left + width * 0.3, top + height / 2), (left + width * 0.5, top + height / 2))
    shown = browser.wait("const t = document.querySelector('.chart .tip'); return t.hidden ? null : t.innerText")
    index = browser.run("return kernelAdvisorReport.charts[0].plot.cursor.idx")
    value = model["series"]["transactions"]["avg"][index]
    number = re.search(r"transactions: ([\d.,]+)/s", shown or "")
    ok(number and abs(float(number[1].replace(",", "")) - value) <= max(0.5, 0.005 * value),
       "the tooltip has the value of the point", f"{shown!r}, expected {value}")
    cursors = browser.run("return kernelAdvisorReport.charts.map((chart) => chart.plot.cursor.idx)")
    equal(set(cursors), {index}, "every chart shows the same moment")


def check_zoom(browser):
    scale = "const s = kernelAdvisorReport.charts.map((c) => c.plot.scales.x); return s.map((x) => [x.min, x.max])"
    before = browser.run(scale)
    left, top, width, height = first_frame(browser)
    browser.pointer((left + width * 0.25, top + height / 2), "down", (left + width * 0.5, top + height / 2),
                    (left + width * 0.75, top + height / 2), "up")
    after = browser.run(scale)
    part = (after[0][1] - after[0][0]) / (before[0][1] - before[0][0])
    ok(0.4 < part < 0.6 and all(scale == after[0] for scale in after), "dragging over a chart zooms all of them", (before[0], after))
    browser.run("document.querySelector('.frame').focus()")
    browser.press("Escape")
    equal(browser.run(scale), before, "Escape shows the whole range")


def check_keyboard(browser, model):
    browser.pointer((2, 2))  # or the pointer's chart takes the cursor when the page moves
    browser.run("document.querySelector('.frame').focus(); scrollTo(0, 0)")
    browser.press("End", "Left")
    spoken = browser.run("return document.getElementById('spoken').textContent")
    index = len(model["series"]["at"]) - 2
    equal(browser.run("return kernelAdvisorReport.charts[0].plot.cursor.idx"), index, "arrow keys move through the points")
    ok("transactions" in spoken, "and the value is said", spoken)
    browser.press("+")
    ok(browser.run("return !document.getElementById('whole').hidden"), "+ zooms")
    browser.press("Escape")
    stops = set()
    browser.run("document.activeElement.blur(); scrollTo(0, 0)")
    for _ in range(60):
        browser.press("Tab")
        stops.add(browser.run("const e = document.activeElement; return e.id || e.className || e.tagName"))
    ok({"theme", "print", "frame", "skip"} <= stops, "Tab reaches buttons, charts and the link to the advice", stops)


def check_theme(browser, path, pictures):
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(paper)
    browser.click("#theme")
    dark = browser.run(paper)
    if pictures:
        browser.screenshot(pictures / "dark.png")
    ok(light != dark and sum(map(int, re.findall(r"\d+", dark)[:3])) < 120, "the button makes it dark", (light, dark))
    equal(browser.run("return kernelAdvisorReport.charts.length > 0 && document.querySelectorAll('canvas').length === kernelAdvisorReport.charts.length"),
          True, "the charts are drawn anew")
    browser.click("#theme")
    equal(browser.run(paper), light, "and light again")
    for wanted, expected in (("dark", dark), ("light", light)):
        browser.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": wanted}])
        load(browser, path)
        equal(browser.run(paper), expected, f"it opens as the system wants it: {wanted}")


def check_hostile(browser, model):
    equal(model["server"]["cluster_name"], HOSTILE, "the server's name is what the test made it")
    ok(HOSTILE in browser.run("return document.getElementById('server').textContent"), "it is shown as text")
    settings = browser.run("return document.getElementById('settings').textContent")
    ok(HOSTILE in settings, "a setting's value is shown as text", settings[:300])
    ok(model["server"]["database"] in browser.run("return document.getElementById('server').textContent"), "the database's name is shown as text")
    equal(browser.run("return document.querySelectorAll('script').length"), 3, "no script came from a value")
    equal(browser.run("return document.querySelectorAll('img, iframe, object, b:not(.tip b)').length"), 0, "nor any other element")


def check_narrow(browser, pictures):
    for width in (375, 320):
        browser.size(width, 800)
        time.sleep(0.4)  # the charts follow a moment later
        wide = browser.run("return document.documentElement.scrollWidth")
        equal(wide, width, f"{width} pixels wide: nothing to scroll sideways")
        if pictures and width == 375:
            browser.screenshot(pictures / "phone.png")
    browser.size(1200, 900)
    time.sleep(0.4)


def check_day(browser, path):
    size = Path(path).stat().st_size
    ok(size < LARGEST, f"24 hours are {size / 1e6:.2f} MB, less than 5 MB")
    took = []
    for _ in range(3):
        load(browser, path)
        took.append(browser.run("return performance.getEntriesByName('report')[0].duration / 1000"))
    ok(min(took) < OPENS_IN, f"they open in {min(took):.2f} s, less than {OPENS_IN:.0f} s", took)
    points = browser.run("return kernelAdvisorReport.series.at.length")
    ok(1000 < points <= 1501, f"in {points} intervals", points)
    samples = browser.run("return kernelAdvisorReport.series.samples")
    ok(samples >= 86000, f"of {samples} samples", samples)
    quiet(browser, path, "24 hours")


def programs():
    return [shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")]


def only_open(path):
    with Browser(*programs()) as browser:
        browser.open("about:blank")
        browser.log("performance")
        ok(load(browser, path), "the report opens")
        quiet(browser, path, "the report")
        print("%d charts, %d checkpoints, %d pieces of advice" % tuple(browser.run("""
            return [document.querySelectorAll('.chart canvas').length, document.querySelectorAll('#checkpoints tbody tr').length,
                document.querySelectorAll('#advice-list article').length]""")))
    return 0 if all(results) else 1


def main():
    if sys.argv[1:2] == ["--open"] and len(sys.argv) == 3:
        return only_open(sys.argv[2])
    if len(sys.argv) not in (4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    report, model_path, day = sys.argv[1:4]
    pictures = Path(sys.argv[4]) if len(sys.argv) == 5 else None
    model = json.loads(Path(model_path).read_text())
    if not all(programs()):
        print("Bail out! chromium or chromedriver is missing")
        return 1
    with Browser(*programs()) as browser:
        browser.size(1200, 900)
        browser.open("about:blank")
        browser.log("performance")  # what the browser's own first page asked for
        ok(load(browser, report), "the report opens")
        check_charts(browser, model)
        check_tip(browser, model)
        check_zoom(browser)
        check_keyboard(browser, model)
        check_hostile(browser, model)
        if pictures:
            browser.run("document.activeElement.blur()")
            browser.screenshot(pictures / "light.png")
        check_theme(browser, report, pictures)
        check_narrow(browser, pictures)
        document = browser.printed()
        pages = len(re.findall(rb"/Type\s*/Page\b", document))
        ok(document.startswith(b"%PDF") and 2 <= pages <= 30, f"it prints, on {pages} pages", pages)
        quiet(browser, report, "the report")
        check_day(browser, day)
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WebDriverError as error:
        print(f"Bail out! the browser: {error}")
        sys.exit(1)
