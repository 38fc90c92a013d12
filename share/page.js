/* What a page does beyond being read: its pictures are zoomed and moved, what they draw is searched, and paper gets
   what was folded away. Without a script the page says the same. */
(() => {
    const of = (selector, from = document) => [...from.querySelectorAll(selector)];
    const make = (parent, tag, words, change) => {
        const e = document.createElement(tag);
        e.textContent = words;
        Object.assign(e, change);
        parent.append(e);
        return e;
    };

    /* ---- pictures: a box scrolls what is in it ---- */

    const LEAST = 0.02, MOST = 4;

    /* So many times as large as drawn; the point (x, y) of the box stays where it is. */
    const zoomTo = (box, scale, x = box.clientWidth / 2, y = box.clientHeight / 2) => {
        const svg = box.querySelector("svg.picture");
        const before = svg.getBoundingClientRect().width;
        const width = Math.min(MOST, Math.max(LEAST, scale)) * svg.viewBox.baseVal.width;
        const times = width / before;
        svg.style.cssText = `width:${width}px;max-width:none;min-width:0`;
        box.scrollLeft = (box.scrollLeft + x) * times - x;
        box.scrollTop = (box.scrollTop + y) * times - y;
    };
    const scaleOf = box => {
        const svg = box.querySelector("svg.picture");
        return svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    };
    /* All of it in the box, as high as the window. */
    const fit = box => {
        const { width, height } = box.querySelector("svg.picture").viewBox.baseVal;
        zoomTo(box, Math.min(1, box.clientWidth / width, innerHeight * 0.9 / height));
    };

    const drag = box => {
        let from = null;
        box.onpointerdown = e => {
            if (e.pointerType !== "mouse" || e.button) return;
            from = [e.clientX + box.scrollLeft, e.clientY + box.scrollTop];
            box.setPointerCapture(e.pointerId);
        };
        box.onpointermove = e => {
            if (!from) return;
            box.scrollLeft = from[0] - e.clientX;
            box.scrollTop = from[1] - e.clientY;
        };
        box.onpointerup = box.onpointercancel = () => { from = null; };
    };

    const viewer = box => {
        const tools = document.createElement("div");
        tools.className = "tools";
        box.before(tools);
        make(tools, "button", "+", { title: "larger (+)", onclick: () => zoomTo(box, scaleOf(box) * 1.25) });
        make(tools, "button", "\u2212", { title: "smaller (-)", onclick: () => zoomTo(box, scaleOf(box) / 1.25) });
        make(tools, "button", "all", { title: "all of it (0)", onclick: () => fit(box) });
        make(tools, "span", "drag moves it, Ctrl and the wheel zoom");
        box.tabIndex = 0;
        box.addEventListener("wheel", e => {
            if (!e.ctrlKey) return;
            e.preventDefault();
            const at = box.getBoundingClientRect();
            zoomTo(box, scaleOf(box) * Math.exp(-e.deltaY / 300), e.clientX - at.left, e.clientY - at.top);
        }, { passive: false });
        box.onkeydown = e => {
            if (e.ctrlKey || e.metaKey || !"+-0".includes(e.key)) return;
            if (e.key === "0") fit(box);
            else zoomTo(box, scaleOf(box) * (e.key === "+" ? 1.25 : 0.8));
            e.preventDefault();
        };
        drag(box);
    };

    /* ---- search ---- */

    const finder = () => {
        const nodes = of("svg.picture g.v");
        if (!nodes.length) return;
        const form = document.createElement("form");
        form.className = "find";
        document.querySelector(".sub").after(form);
        const field = make(form, "input", "", { type: "search", placeholder: "find a node, an op, a scope (/)" });
        field.setAttribute("aria-label", "find in the pictures");
        const said = make(form, "output", "");
        let found = [], at = -1;
        const show = next => {
            found.forEach(g => g.classList.remove("here"));
            if (!found.length) return;
            at = (next + found.length) % found.length;
            const g = found[at];
            for (let e = g.closest("details"); e; e = e.parentElement.closest("details")) e.open = true;
            g.classList.add("here");
            g.scrollIntoView({ block: "center", inline: "center" });
            said.textContent = `${at + 1} of ${found.length}`;
        };
        field.oninput = () => {
            const word = field.value.trim().toLowerCase();
            nodes.forEach(g => g.classList.remove("found", "here"));
            found = word ? nodes.filter(g => g.textContent.toLowerCase().includes(word)) : [];
            found.forEach(g => g.classList.add("found"));
            at = -1;
            said.textContent = word ? `${found.length} found` : "";
        };
        form.onsubmit = e => {
            e.preventDefault();
            show(at + 1);
        };
        addEventListener("keydown", e => {
            if (e.key !== "/" || e.target.tagName === "INPUT") return;
            field.focus();
            e.preventDefault();
        });
    };

    of(".draw").filter(box => box.querySelector("svg.picture")).forEach(viewer);
    finder();
    addEventListener("beforeprint", () => of("details").forEach(e => { e.open = true; }));
})();
