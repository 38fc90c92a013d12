# SPDX-License-Identifier: MIT
"""chrome: Chromium without a window, asked over its debugging pipe (a message is JSON and a NUL: in at file descriptor 3, out at 4).

    b = Browser("/path/page.html"); b.js("document.title"); b("Page.printToPDF"); b.shot(390, "dark", "page.png"); b.close()

The page is offline; what it says goes wrong is collected in b.said."""
import base64, json, os, subprocess, time
import harness as t


# how tall a picture is, the longest run of its rows that are of one colour from edge to edge, and its first pixel
LOOK = """(async () => {
    const i = await createImageBitmap(await (await fetch('data:image/png;base64,%s')).blob()), c = new OffscreenCanvas(i.width, i.height).getContext('2d')
    c.drawImage(i, 0, 0)
    const d = new Uint32Array(c.getImageData(0, 0, i.width, i.height).data.buffer)
    let run = 0, most = 0
    for (let y = 0; y < i.height; y++) {
        const row = d.subarray(y * i.width, (y + 1) * i.width)
        // a card's edges are drawn in every row: what is empty has nothing between them
        const middle = row.subarray(40, i.width - 40)
        run = middle.every(x => x === middle[0]) ? run + 1 : 0
        most = Math.max(most, run)
    }
    return [i.height, most, [0, 8, 16].map(k => (d[0] >> k) & 255)] })()"""


class Browser:
    """Chromium with one page; raises after so many seconds without what was waited for."""

    def __init__(self, page):
        to, out = os.pipe(), os.pipe()
        def ends():
            os.dup2(os.dup(to[0]), 3, inheritable=True)
            os.dup2(os.dup(out[1]), 4, inheritable=True)
        high = [os.dup(fd) for fd in (to[1], out[0])]
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--user-data-dir=" + t.at("profile"), "--window-size=1280,900"]
        self.p = subprocess.Popen(["chromium", *flags, "about:blank"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=ends)
        for fd in (*to, *out): os.close(fd)
        self.to, self.out, self.n, self.said, self.session = os.fdopen(high[0], "wb", 0), os.fdopen(high[1], "rb"), 0, [], None
        target = next(x for x in self("Target.getTargets")["targetInfos"] if x["type"] == "page")
        self.session = self("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network": self(domain + ".enable")
        self("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        self("Page.navigate", url="file://" + page)

    def __call__(self, method, **params):
        self.n += 1
        self.to.write(json.dumps({"id": self.n, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}).encode() + b"\0")
        while True:
            piece = b""
            while not piece.endswith(b"\0"): piece += self.out.read1(1 << 20) if not piece else self.rest()
            *whole, left = piece.split(b"\0")
            for m in map(json.loads, whole):
                if m.get("id") == self.n: answer = m
                elif m.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Network.requestWillBeSent"): self.said.append(m)
            if any(json.loads(w).get("id") == self.n for w in whole): break
        if "error" in answer: raise RuntimeError(method + ": " + str(answer["error"]))
        return answer["result"]

    def rest(self):
        b = self.out.read1(1 << 20)
        if not b: raise RuntimeError("chromium ended")
        return b

    def js(self, expression):
        r = self("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in r: raise RuntimeError(expression + ": " + str(r["exceptionDetails"])[:300])
        return r["result"].get("value")

    def until(self, expression, seconds=120):
        end = time.monotonic() + seconds
        while not self.js(expression):
            if time.monotonic() > end: raise RuntimeError("in vain: %s; the page says %r" % (expression, self.js("document.getElementById('status').textContent")))
            time.sleep(0.1)

    def key(self, key, code=None):
        for kind in "keyDown", "keyUp": self("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, text=key if len(key) == 1 and kind == "keyDown" else "", windowsVirtualKeyCode={"ArrowRight": 39, "ArrowLeft": 37}.get(key, ord(key[0].upper())))

    def close(self):
        self.p.terminate()
        self.p.wait(30)

    def seen(self, width, scheme):
        """On a screen so wide, in "light" or "dark"."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def shot(self, width, scheme, path):
        """The whole page as a picture; its bytes."""
        self.seen(width, scheme)
        high = self.js("document.documentElement.scrollHeight")
        # all of it in view: what lies beyond may not be painted yet
        self("Emulation.setDeviceMetricsOverride", width=width, height=high, deviceScaleFactor=1, mobile=False)
        before = None
        for _ in range(10):                                 # until it stands still: boxes that scroll are painted late
            self.js("new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 250))")
            data = base64.b64decode(self("Page.captureScreenshot", format="png")["data"])
            if data == before: break
            before = data
        with open(path, "wb") as f: f.write(data)
        return data

    def paper(self, path):
        """The page as it is printed; the bytes of its PDF."""
        self("Emulation.clearDeviceMetricsOverride")
        self("Emulation.setEmulatedMedia", media="", features=[])
        data = base64.b64decode(self("Page.printToPDF", preferCSSPageSize=True)["data"])
        with open(path, "wb") as f: f.write(data)
        return data

    def looked_at(self, png):
        """(height, most rows in turn that are each of one colour, that of the page's edge as three numbers) of a picture."""
        return self.js(LOOK % base64.b64encode(png).decode())
