"use strict";
// Draws the charts of a page when they come near the window. Without this script the page shows
// drawings. Everything that comes from a run is data and is only ever shown as text.
const chartsOfPage = (() => {
    const STEP = 0.2; // part of the range by which a key zooms or moves
    const HEIGHT = 300;
    const charts = new Map(); // by their figures

    const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const colour = (line, alpha = "") => css(`--c${line.colour}`) + alpha;
    const many = value => value === null || value === undefined ? "–" : value.toPrecision(6).replace(/\.?0+($|e)/, "$1");

    function shown(line) {
        return (u, value, series, index) => {
            if (value === null || value === undefined) return "–";
            const error = line.error && index !== null ? line.error[index] : null;
            return error === null || error === undefined ? many(value) : `${many(value)} ± ${error.toPrecision(2)}`;
        };
    }

    const offset = (values, errors, sign) =>
        values.map((one, i) => one === null || errors[i] === null ? null : one + sign * errors[i]);

    // Columns of the chart: the lines themselves, and both ends of their error bands, which the
    // legend leaves out.
    function columns(chart) {
        const data = [chart.x], series = [{label: chart.xLabel, value: (u, v) => many(v)}], bands = [];
        let begun = null;
        for (const line of chart.lines) {
            const one = {
                label: line.label,
                stroke: () => line.look === "thin" ? colour(line, "99") : colour(line),
                width: line.look === "line" ? 2 : 1,
                spanGaps: line.joined,
                points: {show: line.look === "points" || chart.x.length < 30 && line.look === "line"},
                value: shown(line),
            };
            if (line.look === "steps") {
                one.paths = uPlot.paths.stepped({align: 1});
                one.fill = () => colour(line, "33");
            }
            data.push(line.values);
            series.push(one);
            if (line.look === "points") {
                one.paths = () => null;
                one.points = {show: true, size: 7, fill: () => colour(line)};
            }
            if (line.look === "range") {
                one.width = 0.5;
                if (begun === null) begun = series.length - 1;
                else {
                    bands.push({series: [series.length - 1, begun], fill: () => colour(line, "44")});
                    begun = null;
                }
            }
            if (line.error && line.look !== "points") {
                for (const sign of [1, -1]) {
                    data.push(offset(line.values, line.error, sign));
                    series.push({label: "", show: true, stroke: "transparent", width: 0, points: {show: false}, class: "hidden"});
                }
                bands.push({series: [series.length - 2, series.length - 1], fill: () => colour(line, "44")});
            }
        }
        return {data, series, bands};
    }

    // The part that is left out of averages is shaded below the lines.
    const shade = cut => ({
        hooks: {
            drawClear: [u => {
                const end = Math.min(u.valToPos(cut, "x", true), u.bbox.left + u.bbox.width);
                if (end <= u.bbox.left) return;
                u.ctx.fillStyle = css("--cut");
                u.ctx.fillRect(u.bbox.left, u.bbox.top, end - u.bbox.left, u.bbox.height);
            }],
        },
    });

    // Errors of single points are bars.
    const whiskers = lines => ({
        hooks: {
            drawSeries: [(u, number) => {
                const line = lines.find(one => one.label === u.series[number].label && one.values === u.data[number]);
                if (!line || !line.error || line.look !== "points" || !u.series[number].show) return;
                u.ctx.save();
                u.ctx.strokeStyle = colour(line);
                u.ctx.beginPath();
                line.values.forEach((value, i) => {
                    const error = line.error[i], x = u.data[0][i];
                    if (value === null || error === null || x < u.scales.x.min || x > u.scales.x.max) return;
                    const at = u.valToPos(x, "x", true);
                    u.ctx.moveTo(at, u.valToPos(value - error, "y", true));
                    u.ctx.lineTo(at, u.valToPos(value + error, "y", true));
                });
                u.ctx.stroke();
                u.ctx.restore();
            }],
        },
    });

    function options(chart, width) {
        const {data, series, bands} = columns(chart);
        const axis = label => ({
            label, stroke: () => css("--ink"), grid: {stroke: () => css("--line"), width: 1},
            ticks: {stroke: () => css("--line"), width: 1, size: 5}, labelSize: 22, labelGap: 0, gap: 4, font: "12px system-ui", labelFont: "13px system-ui",
            values: (u, ticks) => ticks.map(many),
        });
        const zero = (u, low, high) => {
            if (low === null || high === null) return [0, 1];
            if (low === high) return [low - 1, high + 1];
            const room = 0.05 * (high - low);
            return [Math.min(chart.zero ? 0 : Infinity, low - (chart.zero && low >= 0 ? 0 : room)), high + room];
        };
        return {data, options: {
            width, height: HEIGHT, series, bands,
            scales: {x: {time: false}, y: {range: zero}},
            axes: [{...axis(chart.xLabel), size: 28}, {...axis(chart.yLabel), size: 58}],
            cursor: {drag: {x: true, y: false}},
            legend: {live: true},
            plugins: [whiskers(chart.lines), ...(chart.cut === null ? [] : [shade(chart.cut)])],
        }};
    }

    // Keys: arrows move the cursor, with Shift the part that is shown; plus and minus zoom; 0 and
    // Escape show all.
    function keys(u, chart, event) {
        const {min, max} = u.scales.x, x = u.data[0], span = max - min;
        const show = (low, high) => u.setScale("x", {min: low, max: high});
        const at = u.cursor.idx ?? u.valToIdx((min + max) / 2);
        const side = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        const middle = x[at];
        if (side && event.shiftKey) {
            show(min + side * STEP * span, max + side * STEP * span);
        } else if (side) {
            const index = Math.max(0, Math.min(x.length - 1, at + side));
            const left = u.valToPos(x[index], "x");
            const found = u.data.slice(1).map(one => one[index]).find(one => one !== null && one !== undefined);
            u.setCursor({left, top: found === undefined ? 0 : u.valToPos(found, "y")});
        } else if (event.key === "+" || event.key === "=") {
            show(middle - (middle - min) * (1 - STEP), middle + (max - middle) * (1 - STEP));
        } else if (event.key === "-") {
            show(middle - (middle - min) / (1 - STEP), middle + (max - middle) / (1 - STEP));
        } else if (event.key === "0" || event.key === "Escape") {
            show(x[0], x[x.length - 1]);
        } else {
            return;
        }
        event.preventDefault();
    }

    function draw(figure) {
        const live = document.createElement("div");
        live.className = "live";
        live.tabIndex = 0;
        live.setAttribute("role", "application");
        live.addEventListener("keydown", event => {
            const {u, chart} = charts.get(figure);
            keys(u, chart, event);
        });
        figure.append(live);
        figure.classList.add("drawn");
        paint(figure, live);
    }

    function paint(figure, live) {
        const chart = JSON.parse(figure.querySelector("script").textContent);
        live.setAttribute("aria-label", `${chart.title}. ` + figure.querySelector("svg").getAttribute("aria-label") +
            " Arrow keys show values, plus and minus zoom, 0 shows all.");
        const width = () => Math.max(240, Math.floor(figure.clientWidth - 4));
        const made = options(chart, width());
        const u = new uPlot(made.options, made.data, live);
        live.querySelector(".u-legend").setAttribute("aria-live", "polite");
        charts.set(figure, {u, chart, width, live});
        return u;
    }

    // Draws a chart whose data have changed; what the reader has chosen to see stays.
    function renew(figure) {
        if (!charts.has(figure)) return; // it has not come near the window yet
        const {u, live} = charts.get(figure);
        const {min, max} = u.scales.x, x = u.data[0], at = u.cursor.idx;
        const whole = min === x[0] && max === x[x.length - 1];
        const place = at === null || at === undefined ? null : x[at], top = u.cursor.top;
        const hidden = u.series.filter(one => !one.show).map(one => one.label);
        u.destroy();
        const fresh = paint(figure, live);
        fresh.batch(() => {
            if (!whole) fresh.setScale("x", {min, max});
            fresh.series.forEach((one, i) => {
                if (i && one.label && hidden.includes(one.label)) fresh.setSeries(i, {show: false});
            });
        });
        if (place !== null) fresh.setCursor({left: fresh.valToPos(place, "x"), top});
    }

    function remove(figure) {
        near.unobserve(figure);
        if (charts.has(figure)) charts.get(figure).u.destroy();
        charts.delete(figure);
    }

    const near = new IntersectionObserver(found => {
        for (const one of found) {
            if (one.isIntersecting) {
                near.unobserve(one.target);
                draw(one.target);
            }
        }
    }, {rootMargin: "800px"});
    const add = figure => near.observe(figure);
    document.querySelectorAll("figure.chart").forEach(add);

    const redraw = () => charts.forEach(({u}) => u.redraw(false));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    addEventListener("resize", () => charts.forEach(({u, width}) => u.setSize({width: width(), height: HEIGHT})));
    return {add, renew, remove, drawing: figure => charts.has(figure) && charts.get(figure).live.matches(":active")};
})();
