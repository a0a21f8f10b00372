// Follows the run: takes the parts that have changed from the server and puts them into the page.
// What the reader has opened, chosen or focused stays.
(() => {
    const AGAIN = 2000; // milliseconds until the next attempt if the server does not answer
    const main = document.querySelector("main"), connection = document.querySelector("#connection");
    const parts = new Map([...main.children].map(one => [one.dataset.part, one]));
    const late = new Set(); // charts in which the reader is marking a range
    let source = null, waiting = 0;

    const say = (words, lost) => {
        if (connection.textContent !== words) connection.textContent = words;
        connection.classList.toggle("caution", lost);
    };

    const isChart = node => node.nodeName === "FIGURE" && node.classList.contains("chart");
    const charts = node => isChart(node) ? [node] : node.querySelectorAll ? [...node.querySelectorAll("figure.chart")] : [];

    function renew(chart) {
        if (chartsOfPage.drawing(chart)) late.add(chart);
        else chartsOfPage.renew(chart);
    }
    addEventListener("pointerup", () => setTimeout(() => {
        late.forEach(chartsOfPage.renew);
        late.clear();
    }));

    function put(parent, node, before) {
        const own = document.importNode(node, true);
        parent.insertBefore(own, before);
        charts(own).forEach(chartsOfPage.add);
        return own;
    }

    function drop(node) {
        charts(node).forEach(chartsOfPage.remove);
        node.remove();
    }

    // Makes a node equal to another one with as few changes as possible.
    function settle(old, fresh) {
        if (old.nodeName !== fresh.nodeName) {
            put(old.parentNode, fresh, old);
            drop(old);
        } else if (old.nodeType === Node.TEXT_NODE) {
            if (old.data !== fresh.data) old.data = fresh.data;
        } else {
            const chart = isChart(old), before = chart && old.querySelector("script").textContent;
            for (const {name} of chart ? [] : [...old.attributes]) {
                if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
            }
            for (const {name, value} of fresh.attributes) {
                if (!chart && old.getAttribute(name) !== value) old.setAttribute(name, value);
            }
            const own = [...old.childNodes].filter(one => !one.classList || !one.classList.contains("live"));
            const next = [...fresh.childNodes];
            next.forEach((one, i) => own[i] ? settle(own[i], one) : put(old, one, null));
            own.slice(next.length).forEach(drop);
            if (chart && old.querySelector("script").textContent !== before) renew(old);
        }
    }

    function show(changes) {
        const names = new Set(changes.map(([name]) => name));
        for (const [name, part] of parts) {
            if (!names.has(name)) {
                drop(part);
                parts.delete(name);
            }
        }
        let last = null;
        for (const [name, html] of changes) {
            const fresh = html === null ? null : new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
            const next = last ? last.nextElementSibling : main.firstElementChild;
            if (!parts.has(name)) parts.set(name, put(main, fresh, next));
            else {
                if (fresh) settle(parts.get(name), fresh);
                if (parts.get(name) !== next) main.insertBefore(parts.get(name), next);
            }
            last = parts.get(name);
        }
        const title = main.querySelector("[data-title]");
        if (title) document.title = title.dataset.title;
    }

    function leave() {
        clearTimeout(waiting);
        if (source) source.close();
        source = null;
    }

    function follow() {
        leave();
        source = new EventSource("events");
        source.onmessage = event => {
            say("This page follows the run.", false);
            show(JSON.parse(event.data));
        };
        source.onerror = () => {
            leave();
            say("The server does not answer: it has ended, or the connection is lost. This page tries again by itself.", true);
            waiting = setTimeout(follow, AGAIN);
        };
    }

    // A browser has few connections to a server, so that a page that nobody sees takes none.
    const turn = () => document.hidden ? leave() : follow();
    document.addEventListener("visibilitychange", turn);
    turn();
})();
