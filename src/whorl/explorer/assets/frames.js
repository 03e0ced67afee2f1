// Moving a figure to another moment without asking the server: traces carry what they look like at every moment in `meta`.
const frames = (() => {
  const BEND = Array.from({ length: 12 }, (_, i) => i / 11);

  // Plotly packs arrays as bytes; ours are 32-bit floats, in one or two dimensions.
  function unpacked(value) {
    if (!value || !value.bdata) return value;
    const bytes = Uint8Array.from(atob(value.bdata), (letter) => letter.charCodeAt(0));
    const flat = new Float32Array(bytes.buffer);
    const shape = String(value.shape || "").split(",").map(Number);
    if (shape.length < 2) return flat;
    return Array.from({ length: shape[0] }, (_, row) => flat.subarray(row * shape[1], (row + 1) * shape[1]));
  }

  // Take what moves out of a figure, so that Plotly does not carry it along.
  function taken(figure) {
    const moving = { traces: [], notes: figure.layout.meta ? figure.layout.meta.notes : null };
    figure.data.forEach((trace, index) => {
      if (!trace.meta) return;
      for (const [how, what] of Object.entries(trace.meta)) {
        const values = typeof what === "object" ? Object.fromEntries(Object.entries(what).map(([key, value]) => [key, unpacked(value)])) : what;
        moving.traces.push({ index, how, values });
      }
      delete trace.meta;
    });
    delete figure.layout.meta;
    return moving;
  }

  function tops(flow, gap) {
    let top = (1 + gap * (flow.length - 1)) / 2;
    return Array.from(flow, (width) => { const here = top; top -= width + gap; return here; });
  }

  // The network view's polygons; the server draws the same for the first moment.
  function network(nodes, moment) {
    const { numbers, widths, gap, half, sources } = nodes;
    const row = numbers[moment];
    let at = 0;
    const take = (count) => row.subarray(at, (at += count));
    const flows = widths.map((width) => take(width));
    const layers = widths.slice(1).map((width, number) => take(width * widths[number]));
    const streams = Array.from({ length: sources }, () => ({ x: [], y: [] }));
    const boxes = { x: [], y: [] };
    flows.forEach((flow, number) => tops(flow, gap).forEach((top, node) => {
      boxes.x.push(number - half, number + half, number + half, number - half, number - half, NaN);
      boxes.y.push(top, top, top - flow[node], top - flow[node], top, NaN);
    }));
    layers.forEach((layer, number) => {
      const leaving = tops(flows[number], gap), arriving = tops(flows[number + 1], gap), across = widths[number];
      for (let column = 0; column < across; column++) {
        for (let target = 0; target < widths[number + 1]; target++) {
          const width = layer[target * across + column] * flows[number][column];
          if (width > 5e-4) {
            const x = BEND.map((t) => number + half + (1 - 2 * half) * t);
            const y = BEND.map((t) => leaving[column] + (arriving[target] - leaving[column]) * t * t * (3 - 2 * t));
            streams[column].x.push(...x, ...x.toReversed(), NaN);
            streams[column].y.push(...y, ...y.map((v) => v - width).reverse(), NaN);
          }
          leaving[column] -= width;
          arriving[target] -= width;
        }
      }
    });
    return { streams, boxes };
  }

  // What one trace looks like at a moment.
  function look({ how, values }, moment, drawn) {
    if (how === "stream") return drawn.streams[values];
    if (how === "nodes") return drawn.boxes;
    if (how === "bars") {
      const x = Array.from(values.x[moment]), [whole, rise, fall] = values.colours;
      const colour = x.map((size, bar) => (values.whole.includes(bar) ? whole : size > 0 ? rise : fall));
      return { x, base: Array.from(values.base[moment]), "marker.color": colour };
    }
    const change = {};
    for (const [key, all] of Object.entries(values)) {
      const last = Math.min(moment, all.length - 1);
      change[key] = how === "as" ? all[last] : how === "at" ? [all[last]] : all.slice(0, last + 1);
    }
    return change;
  }

  // What every moving trace looks like at a moment, and the note.
  function looks(moving, moment) {
    const nodes = moving.traces.find((trace) => trace.how === "nodes");
    const drawn = nodes ? network(nodes.values, Math.min(moment, nodes.values.numbers.length - 1)) : null;
    const changes = moving.traces.map((trace) => look(trace, trace.how === "bars" ? Math.min(moment, trace.values.x.length - 1) : moment, drawn));
    // Numbers beside bars are annotations behind the note.
    const layout = {};
    for (const { how, values } of moving.traces) {
      if (how === "bars") values.text[Math.min(moment, values.text.length - 1)].split("|").forEach((words, bar) => { layout[`annotations[${bar + 1}].text`] = words; });
    }
    return { changes, layout, note: moving.notes ? moving.notes[Math.min(moment, moving.notes.length - 1)] : null };
  }

  // Set a figure that is not drawn yet to a moment.
  function place(figure, moving, moment) {
    const { changes, layout, note } = looks(moving, moment);
    for (const [path, value] of Object.entries(layout)) { const [, number, key] = path.match(/^annotations\[(\d+)\]\.(.*)$/); figure.layout.annotations[number][key] = value; }
    changes.forEach((change, number) => {
      const trace = figure.data[moving.traces[number].index];
      for (const [key, value] of Object.entries(change)) {
        const [outer, inner] = key.split(".");
        if (inner) (trace[outer] ||= {})[inner] = value; else trace[outer] = value;
      }
    });
    if (note !== null) figure.layout.annotations[0].text = note;
  }

  // Move a figure that is drawn.
  function show(plot, moving, moment) {
    if (!moving || !plot.data) return;
    const { changes, layout, note } = looks(moving, moment);
    // Every column has a place for every trace: what a trace does not change is left undefined.
    const columns = {};
    for (const key of new Set(changes.flatMap(Object.keys))) columns[key] = changes.map((change) => change[key]);
    if (note !== null) layout["annotations[0].text"] = note;
    if (changes.length || note !== null) Plotly.update(plot, columns, layout, moving.traces.map((trace) => trace.index));
  }

  return { taken, place, show };
})();
