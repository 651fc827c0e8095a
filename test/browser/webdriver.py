"""webdriver: a small client of the WebDriver protocol (W3C), for chromedriver.  Standard library only."""
import base64
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

START_LIMIT = 120  # s; a browser on a busy machine takes its time
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's reference, by the standard
KEYS = {"Left": "\ue012", "Right": "\ue014", "Home": "\ue011", "End": "\ue010", "Escape": "\ue00c", "Tab": "\ue004"}


class WebDriverError(Exception):
    """What the driver answered instead of a value."""


class Browser:
    """A headless Chromium with a profile of its own; a context manager.

    chromium, chromedriver: programs.  The browser's own sandbox is off: it needs user namespaces, which a container or a
    root directory of another release may lack, and the pages are ours.
    """

    def __init__(self, chromium, chromedriver, width=1200, height=900):
        self.profile = tempfile.TemporaryDirectory(prefix="kernel_advisor_browser.", ignore_cleanup_errors=True)
        self.driver = subprocess.Popen([chromedriver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       env={**os.environ, "HOME": self.profile.name})
        self.url = f"http://127.0.0.1:{self._port()}"
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        options = {"binary": chromium, "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                                "--disable-background-networking", "--no-first-run", "--hide-scrollbars",
                                                f"--user-data-dir={self.profile.name}/profile", f"--window-size={width},{height}"]}
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"pageLoad": START_LIMIT * 1000, "script": START_LIMIT * 1000}}}})
        self.session = f"/session/{session['sessionId']}"

    def _port(self):
        end = time.monotonic() + START_LIMIT
        for line in self.driver.stdout:
            if match := re.search(r"started successfully on port (\d+)", line):
                return match[1]
            if time.monotonic() > end:
                break
        raise WebDriverError("chromedriver does not start")

    def _call(self, method, path, body=None):
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with self.opener.open(request, timeout=2 * START_LIMIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise WebDriverError(json.load(error)["value"]["message"]) from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", self.session)
        except (WebDriverError, OSError):
            pass
        self.driver.terminate()
        self.driver.wait()
        self.profile.cleanup()

    def open(self, url):
        self._call("POST", f"{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        """The value that the script's body returns."""
        return self._call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def command(self, name, **parameters):
        """A command of the DevTools protocol."""
        return self._call("POST", f"{self.session}/goog/cdp/execute", {"cmd": name, "params": parameters})

    def log(self, kind):
        return self._call("POST", f"{self.session}/se/log", {"type": kind})

    def size(self, width, height):
        """The size of the page, which a window of its own would not take below 500 pixels."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def element(self, selector):
        found = self._call("POST", f"{self.session}/element", {"using": "css selector", "value": selector})
        return {ELEMENT: found[ELEMENT]}

    def click(self, selector):
        self._call("POST", f"{self.session}/element/{self.element(selector)[ELEMENT]}/click")

    def press(self, *keys):
        actions = [step for key in keys for step in
                   ({"type": "keyDown", "value": KEYS.get(key, key)}, {"type": "keyUp", "value": KEYS.get(key, key)})]
        self._call("POST", f"{self.session}/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def pointer(self, *steps):
        """Steps: (x, y) moves to a point of the window; "down" and "up" are the left button."""
        actions = []
        for step in steps:
            if step in ("down", "up"):
                actions.append({"type": "pointerDown" if step == "down" else "pointerUp", "button": 0})
            else:
                actions.append({"type": "pointerMove", "duration": 50, "x": round(step[0]), "y": round(step[1])})
        self._call("POST", f"{self.session}/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}]})

    def wait(self, script, limit=60):
        """Until the script's body returns something true; that, or its last value."""
        end = time.monotonic() + limit
        while not (value := self.run(script)) and time.monotonic() < end:
            time.sleep(0.1)
        return value

    def screenshot(self, path):
        """The whole page."""
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return innerWidth")
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": width, "height": min(height, 12000), "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def printed(self):
        """The page as a PDF document."""
        return base64.b64decode(self.command("Page.printToPDF", printBackground=True)["data"])
