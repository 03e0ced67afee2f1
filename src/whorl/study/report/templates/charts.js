// Charts: the library is unpacked from the page itself; values are read with the pointer or with the arrow keys.
{
  const unpack = async () => {
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  };

  const narrow = () => document.documentElement.clientWidth < 704;
  const coarse = matchMedia("(pointer: coarse)").matches;
  const thin = (axis) => {
    const every = Math.ceil(axis.tickvals.length / 8);
    return { ...axis, ticktext: axis.ticktext.map((text, k, all) => (k % every && k < all.length - 1 ? "" : text)) };
  };
  const layout = (own) => {
    const axis = { automargin: true, ticks: "", fixedrange: coarse, exponentformat: "power", minexponent: 5 };
    return {
      ...own,
      autosize: true,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: narrow() ? 11 : 13 },
      margin: { l: 8, r: 12, t: 28, b: 8 },
      xaxis: { ...axis, ...(narrow() && own.xaxis.tickvals ? thin(own.xaxis) : own.xaxis) },
      yaxis: { ...axis, ...own.yaxis },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", ...own.legend },
      hoverlabel: { bgcolor: "{{ light.ink }}", bordercolor: "{{ both.quiet }}", font: { color: "{{ light.paper }}", size: 13 }, align: "left" },
      hovermode: "closest",
      dragmode: coarse ? false : "zoom",
    };
  };

  // An axis for values that are all one number: it and the published one are named, and there is room around both.
  const short = (value) => Number(value.toPrecision(6));
  const alone = (value, { published, bars: [[a, b]] }) => {
    const apart = Math.abs(published - value);
    const room = apart > b - a ? apart / 2 : 3 * (b - a);
    const ticks = apart > b - a ? [value, published] : [value];
    return { range: [Math.min(value, published) - room, Math.max(value, published) + room], tickvals: ticks, ticktext: ticks.map((one) => String(short(one))) };
  };

  // The distribution of one quantity over root seeds, with the published value and that of this run.
  const spread = (choice) => {
    // Lines of two heights: where both values are the same, one still sees two markers.
    const most = Math.max(...choice.counts);
    const line = (name, value, colour, dash, height) => ({
      type: "scatter", mode: "lines+markers", name, x: [value, value], y: [0, most * height], line: { color: colour, width: 3, dash },
      marker: { color: colour, size: [0.1, 11], symbol: dash === "solid" ? "diamond" : "circle" }, hovertemplate: `${name}: ${value}<extra></extra>`,
    });
    const single = choice.bars.length === 1;
    const middle = ([a, b]) => (choice.wide ? Math.sqrt(a * b) : (a + b) / 2);
    const bars = {
      type: "bar", name: "our root seeds", x: choice.bars.map(middle), width: choice.bars.map(([a, b]) => (b - a) * 0.94), y: choice.counts,
      customdata: choice.bars, marker: { color: "{{ both.quiet }}" },
      hovertemplate: choice.bars.map(([a, b]) => (single ? `%{y} seeds at ${short(middle([a, b]))}` : `%{y} seeds from ${a} to ${b}`) + "<extra></extra>"),
    };
    const xaxis = { title: { text: choice.name }, ...(choice.wide ? { type: "log", dtick: 1 } : {}) };
    if (single) Object.assign(xaxis, alone(middle(choice.bars[0]), choice));
    else if (choice.bars.every(([a, b]) => b - a === 1)) xaxis.dtick = 1; // things that are counted
    return {
      data: [bars, line("published", choice.published, "{{ both.other }}", "solid", 1.08), line("this run", choice.here, "{{ both.native }}", "dot", 1.18)],
      layout: { xaxis, yaxis: { title: { text: "root seeds" }, rangemode: "tozero" } },
    };
  };

  const plain = (html) => html.replace(/<br>/g, ", ").replace(/<[^>]*>/g, "");
  const said = (trace, at) => {
    const template = Array.isArray(trace.hovertemplate) ? trace.hovertemplate[at] : trace.hovertemplate;
    const filled = template.replace(/%\{customdata\[(\d+)\]\}/g, (_, k) => trace.customdata[at][k]).replace(/%\{y\}/g, trace.y[at]);
    return plain(filled.replace(/<extra><\/extra>/, "")).replace(/-(?=[\d.])/g, "−");
  };

  const draw = (spec, plot, readout) => {
    const config = { displayModeBar: false, responsive: true, doubleClick: "reset", showTips: false };
    return Plotly.react(plot, spec.data, layout(spec.layout), config).then(() => {
      // Every point that says something, from left to right: the way of the arrow keys.
      plot.walk = spec.data.flatMap((trace, curve) =>
        trace.hovertemplate && trace.visible !== "legendonly" ? trace.x.map((x, point) => ({ curve, point, x, y: trace.y[point] })) : [],
      ).filter((p) => p.x !== null && p.y !== null && !(spec.data[p.curve].mode === "lines+markers" && p.point === 0))
        .sort((a, b) => a.x - b.x || a.y - b.y);
      plot.at = -1;
      plot.removeAllListeners("plotly_hover");
      plot.on("plotly_hover", ({ points: [p] }) => {
        readout.textContent = said(spec.data[p.curveNumber], p.pointNumber);
        plot.at = plot.walk.findIndex((w) => w.curve === p.curveNumber && w.point === p.pointNumber);
      });
    });
  };

  const walk = (event, plot, readout) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1, PageUp: 20, PageDown: -20, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") Plotly.Fx.unhover(plot);
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    plot.at = Math.max(0, Math.min(plot.walk.length - 1, plot.at + steps[event.key]));
    const { curve, point } = plot.walk[plot.at];
    readout.textContent = said(plot.data[curve], point);
    Plotly.Fx.hover(plot, [{ curveNumber: curve, pointNumber: point }]);
  };

  const start = async () => {
    await unpack();
    for (const figure of document.querySelectorAll("figure.chart")) {
      const { figure: spec, choices } = JSON.parse(figure.querySelector(".data").textContent);
      const [plot, readout, select] = [".plot", ".readout", ".choice"].map((name) => figure.querySelector(name));
      const now = () => (select ? spread(choices[select.value]) : spec);
      plot.style.display = "block";
      const again = () => draw(now(), plot, readout);
      await again();
      plot.addEventListener("keydown", (event) => walk(event, plot, readout));
      plot.addEventListener("blur", () => Plotly.Fx.unhover(plot));
      select?.addEventListener("change", () => {
        figure.querySelector(".of-choice").textContent = choices[select.value].summary;
        readout.textContent = "";
        again();
      });
    }
    for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => document.querySelectorAll(".plot").forEach((plot) => Plotly.Plots.resize(plot)));
    document.documentElement.dataset.charts = "ready";
  };
  start().catch(() => { document.documentElement.dataset.charts = "none"; });
}
