// SPDX-License-Identifier: MIT
// lesson: one token's way through one layer, step by step, in the numbers of the model that is open; a tab of the page (page.js).
//
// in:  the numbers of a layer, as the worker has them from mlo's own run (numbers.js); which token, head and layer; the build: its kernels, their cycles.
// out: twelve steps, each a title, a paragraph, pictures and where in the Verilog it happens. Nothing here computes a number of the model: it picks,
//      rounds and draws. What integers stand for is reckoned as `quantize --report` says, zero + scale * shape * integer.
// A picture is SVG as wide as the column, so it prints and is as sharp on a telephone; each mark has its exact number as data-v, in its title, and in the
// table under the picture. Blue is above zero, red below.
//
// Example: steps[5].draw(view) of bert-tiny is the Softmax of a row, 32 pairs of bars: the float, and beside it the integer over the sum of the integers.
'use strict'

const lesson = (() => {
  const state = { step: 0, token: 0, head: 0, layer: 0, n: null, asked: null, wrong: '' }
  let wide = 700, tables = []

  // ---- numbers as people read them ----
  const exact = v => Number.isInteger(v) ? grouped(v) : String(Number(v.toPrecision(9)))
  const rounded = v => Number.isInteger(v) ? String(v) : Math.abs(v) < 0.00005 ? v.toExponential(0) : String(Number(v.toPrecision(3)))
  const short = v => rounded(v).replace(/-/g, '−'), factor = v => v < 0 ? `(${short(v)})` : short(v), whole = v => grouped(v).replace(/-/g, '−')
  const percent = v => v >= 0.0995 ? Math.round(100 * v) + ' %' : v >= 0.0005 ? (100 * v).toFixed(1) + ' %' : v ? '< 0.1 %' : '0'
  const list = x => Array.from(x), largest = x => list(x).reduce((m, v) => Math.max(m, Math.abs(v)), 0)

  // ---- parts of arrays ----
  // [.., heads, tokens, width]: the row of a head and a token; [1, tokens, width]: that of a token
  const row = (a, t, h = 0) => a.data.subarray((h * a.dims.at(-2) + t) * a.dims.at(-1), (h * a.dims.at(-2) + t + 1) * a.dims.at(-1))
  const column = (a, t, h) => Array.from({ length: a.dims.at(-2) }, (_, d) => row(a, d, h)[t])
  // (fewer heads of keys than of queries: a head of them is read by several)
  const shared = (a, h, heads) => Math.floor(h * (a.dims.length > 2 ? a.dims.at(-3) : 1) / heads)
  const at = (x, k) => typeof x === 'number' ? x : x[k]
  const worth = (m, ints, from = 0) => m && list(ints).map((y, k) => at(m.zero, from + k) + m.scale * at(m.shape, from + k) * y)

  // a row of a head in floats and integers: where pairs of channels turn together, the core has them side by side
  function both(float, ints, mean, from) {
    const said = worth(mean, ints, from), half = float && float.length / 2
    const paired = float && list(float).map((_, k) => float[k % 2 ? half + (k - 1) / 2 : k / 2]), far = f => f.reduce((s, x, k) => s + (x - said[k]) ** 2, 0)
    const turned = said && paired && Number.isInteger(half) && far(paired) < far(list(float)) / 4
    return { float: turned ? paired : float && list(float), ints: list(ints), said, scale: mean?.scale, turned }
  }

  // ---- pictures ----
  const words = (x, y, s, more = '') => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${html(s)}</text>`
  const svg = (height, label, inner) => `<svg viewBox="0 0 ${wide} ${Math.ceil(height)}" width="${wide}" height="${Math.ceil(height)}" role="img" aria-label="${html(label)}">${inner}</svg>`
  const mark = (x, y, w, h, v, title, more) => `<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${Math.max(0.5, w).toFixed(2)}" height="${Math.max(0, h).toFixed(2)}" data-v="${v}" ${more}><title>${html(title)}</title></rect>`
  const shade = (v, most) => `class="${v < 0 ? 'low' : 'high'}" fill-opacity="${(0.06 + 0.7 * Math.min(1, Math.abs(v) / (most || 1))).toFixed(3)}"`

  // rows of cells, one lane under the other: [{ name, of, values, tint (what the colour says), say }]
  function lanes(label, all) {
    const per = n => n <= 16 ? (wide < 560 && n > 8 ? 8 : n) : wide < 560 ? 32 : 64
    const most = Math.max(...all.map(l => largest(l.tint || l.values)))
    let y = 0, out = ''
    for (const l of all) {
      const n = l.values.length, line = per(n), w = Math.min(wide / line, 48), tall = w >= 34 ? 28 : 16
      const few = w >= 34 ? '' : ': ' + l.values.slice(0, wide < 560 ? 3 : 6).map(short).join('   ') + ' …'      // cells too small for a number
      out += words(0, y + 13, l.name + few, 'class="name"')
      y += 19
      out += `<g data-of="${l.of}">` + l.values.map((v, k) => {
        const x = w * (k % line), top = y + Math.floor(k / line) * (tall + 2), tint = l.tint ? l.tint[k] : v
        return mark(x, top, w - (w > 8 ? 2 : 0.5), tall, v, `${l.say ? l.say(k) : 'channel ' + k}: ${exact(v)}`, shade(tint, most)) + (w >= 34 ? words(x + w / 2 - 1, top + 18, short(v), 'class="in"') : '')
      }).join('') + '</g>'
      y += Math.ceil(n / line) * (tall + 2) + 9
    }
    tables.push({ head: ['', ...all.map(l => l.name)], rows: Array.from({ length: Math.max(...all.map(l => l.values.length)) }, (_, k) => [k, ...all.map(l => l.values[k])]) })
    return svg(y, label, out)
  }

  // floats over integers, in the same colours
  function pair(label, of, p) {
    const step = p.scale ? `integers, of steps of ${short(p.scale)}` : 'integers', before = label && label + ', '
    const say = k => `channel ${k}` + (p.said ? `: stands for ${exact(p.said[k])}` : '')
    return lanes(label || of, [...(p.float ? [{ name: before + 'floats', of: of + '.float', values: p.float }] : []), { name: p.float ? step : before + step, of: of + '.int', values: p.ints, tint: p.said, say }])
  }

  // a bar for each token, or several side by side: series [{ name, of, values, kind }]; hidden(k): no bar
  function bars(view, label, series, { height = 150, hidden = () => false, pale = () => false } = {}) {
    const { tokens } = view.n, slot = wide / tokens, foot = 34, values = series.flatMap(s => list(s.values).filter((_, k) => !hidden(k)))
    const top = Math.max(0, ...values), bottom = Math.min(0, ...values), scale = (height - 24) / (top - bottom || 1), zero = 22 + top * scale, width = slot * 0.84 / series.length
    const key = series.length > 1 ? series.map((s, k) => `<rect x="${k * wide / 2}" y="2" width="11" height="11" class="${s.kind}"/>` + words(k * wide / 2 + 16, 12, s.name, 'class="name"')).join('') : words(0, 12, series[0].name, 'class="name"')
    const drawn = series.map((s, m) => `<g data-of="${s.of}">` + list(s.values).map((v, k) => hidden(k) ? '' : mark(slot * k + slot * 0.08 + m * width, v < 0 ? zero : zero - v * scale, width, Math.abs(v) * scale, v, `${view.name(k)}: ${s.say ? s.say(k) : exact(v)}`, `class="${s.kind}${pale(k) ? ' pale' : ''}" data-token="${k}"`)).join('') + '</g>').join('')
    const every = Math.ceil(11 / slot), mine = k => k === view.t ? ' mine' : hidden(k) || pale(k) ? ' off' : ''
    const feet = Array.from({ length: tokens }, (_, k) => k % every && k !== view.t ? '' : `<g transform="translate(${(slot * k + slot / 2 + 4).toFixed(1)} ${height + 6}) rotate(-90)">` + words(0, 0, view.word(k).slice(0, 6), `class="foot${mine(k)}" data-token="${k}"`) + '</g>').join('')
    tables.push({ head: ['token', ...series.map(s => s.name)], rows: Array.from({ length: tokens }, (_, k) => [view.name(k), ...series.map(s => hidden(k) ? 'hidden' : s.values[k])]) })
    return svg(height + foot, label, key + `<line x1="0" x2="${wide}" y1="${zero.toFixed(1)}" y2="${zero.toFixed(1)}" class="axis"/>` + drawn + feet)
  }

  // the softmax of a whole head: a row for each query, the chosen one framed
  function square(view, label, a) {
    const { tokens } = view.n, side = Math.min(wide, 340), w = side / tokens
    const cells = Array.from({ length: tokens }, (_, i) => `<g data-token="${i}">` + list(row(a, i, view.h)).map((v, j) => `<rect x="${(w * j).toFixed(2)}" y="${(w * i + 18).toFixed(2)}" width="${w.toFixed(2)}" height="${w.toFixed(2)}" class="high" fill-opacity="${Math.sqrt(v).toFixed(3)}"><title>${html(view.name(i))} to ${html(view.name(j))}: ${exact(v)}</title></rect>`).join('') + '</g>').join('')
    return svg(side + 22, label, words(0, 12, label, 'class="name"') + `<rect x="0" y="18" width="${side}" height="${side}" class="frame"/>${cells}<rect x="0" y="${(w * view.t + 18).toFixed(2)}" width="${side}" height="${w.toFixed(2)}" class="mine"/>`)
  }

  function best(view, columns) {
    const rows = view.likely.slice(0, 5).map(k => `<tr><th scope="row">${html(view.name(k))}</th>${columns.map(c => `<td title="${exact(c.values[k])}">${c.say ? c.say(c.values[k], k) : short(c.values[k])}</td>`).join('')}</tr>`)
    return `<table class="best"><caption>${rows.length > 1 ? `the ${rows.length} that count most` : 'the only one that counts'}</caption><tr><th scope="col">token</th>${columns.map(c => `<th scope="col">${html(c.name)}</th>`).join('')}</tr>${rows.join('')}</table>`
  }

  // ---- what the steps draw from: the numbers of a layer for one token and one head ----
  function seen_by(n, t, h) {
    const width = n.int[n.q].dims[2] / n.heads, deep = n.int[n.v].dims[2] / n.kv_heads, kv = Math.floor(h * n.kv_heads / n.heads), f = n.floats, x = n.integers
    const mine = (name, from, count) => row(n.int[name], t).subarray(from, from + count)
    const weights = x.w || x.e, ints = row(weights, t, h), sum = list(ints).reduce((a, b) => a + b, 0), seen = (m => k => row(m, Math.min(t, m.dims.at(-2) - 1))[k] > 0)(x.seen)
    const part = list(ints).map(e => e / (sum || 1)), probs = f && row(f.probs, t, h)
    const id = k => n.ids.length === n.tokens ? n.ids[k] : k, word = k => n.words?.[id(k)]?.replace(/\n/g, '↵').replace(/ /g, '␣') ?? String(id(k))
    return {
      n, t, h, width, deep, kv, sum, seen, part, probs, ints: list(ints), weight: probs || part, word, name: k => `${k}: ${word(k)}`,
      likely: list(probs || part).map((_, k) => k).sort((a, b) => (probs || part)[b] - (probs || part)[a]).filter(seen),
      q: both(f && row(f.q, t, shared(f.q, h, n.heads)), mine(n.q, h * width, width), n.means[n.q], h * width),
      k: both(f && column(f.k, t, shared(f.k, h, n.heads)), mine(n.k, kv * width, width), n.means[n.k], kv * width),
      v: both(f && row(f.v, t, shared(f.v, h, n.heads)), mine(n.v, kv * deep, deep), n.means[n.v], kv * deep),
      value: k => both(f && row(f.v, k, shared(f.v, h, n.heads)), row(n.int[n.v], k).subarray(kv * deep, (kv + 1) * deep), n.means[n.v], kv * deep),
      mixed: both(f && row(f.mixed, t, h), mine(n.mixed, h * deep, deep), n.means[n.mixed], h * deep),
      steps: f && f.steps.map(s => ({ op: s.op, values: list(row(s, t, h)) })), scores: list(row(x.scores, t, h)), below: list(row(x.t, t, h)), octave: x.w ? 4096 : 64,
      stream: k => {
        const scale = n.rows.scales[k], ints = row(n.rows.int[k], t)
        return { float: n.rows.float[k] ? list(row(n.rows.float[k], t)) : null, ints: list(ints), said: scale ? list(ints).map(y => y * scale) : null, scale }
      },
    }
  }

  const does = {
    Requant: () => 'brings the row to the width that multipliers take', MVU: () => 'multiplies the row by a matrix', MVUTable: () => 'multiplies by a matrix and looks each result up in a table, the activation',
    Add: () => 'adds the row that went past: the residual', LayerNorm: k => k.center ? 'layer norm: mean 0, spread 1' : 'rms norm: spread 1', Rotary: () => 'turns pairs of channels by the token\'s place',
    Mul: () => 'multiplies two rows, channel by channel', Attention: () => 'compares the token with the others and mixes their values',
  }
  const what = k => (does[k.op] || (k.op.startsWith('Attention') ? does.Attention : () => k.op))(k)

  // the kernels from the projection behind attention on: those before the next matrix, and the rest
  function behind(n) {
    const all = n.kernels.slice(n.kernels.findIndex(k => k.value === n.mixed) + 1), matrix = k => k.op.startsWith('MVU')
    const second = all.findIndex((k, i) => i > all.findIndex(matrix) && matrix(k))
    return second < 0 ? [all, []] : [all.slice(0, second), all.slice(second)]
  }
  const through = (view, kernels) => kernels.map(k => {
    const { n, t } = view, float = n.float[k.value]
    return `<h3>${kernel_link(n, k.value)} ${html(what(k))}</h3>` + pair('', k.value, both(float && list(row(float, t)), row(n.int[k.value], t), n.means[k.value], 0))
  }).join('')

  // a number in full: the first channel of this token's values, by the matrix-vector unit
  function in_full({ n, t, kv, deep }) {
    const s = n.sum
    if (!s || !n.int[s.bias]) return ''
    const c = s.at + kv * deep, x = row(n.int[s.x], t), w = n.int[s.w], one = name => n.int[name].data[c], M = one(s.mult), S = one(s.shift)
    const products = list(x).map((v, k) => v * row(w, k)[c]), acc = products.reduce((a, b) => a + b, 0) + one(s.bias)
    const head = list(x).slice(0, 3).map((v, k) => `${factor(v)} × ${factor(row(w, k)[c])}`).join(' + ')
    const y = Math.floor((acc * M + 2 ** (S - 1)) / 2 ** S)
    return `<p class="full"><b>One number in full.</b> v’s first channel: ${head} + … (${x.length} products) = ${whole(acc - one(s.bias))}; ` +
      `bias ${whole(one(s.bias))}: ${whole(acc)}; × ${whole(M)} / 2<sup>${S}</sup>, rounded: <b data-v="${y}" data-of="full">${whole(y)}</b>. That last step is all there is of a scale in hardware: no division.</p>`
  }

  const chips = view => `<div class="chips">${Array.from({ length: view.n.tokens }, (_, k) => `<button data-token="${k}" tabindex="-1"${k === view.t ? ' aria-pressed="true"' : ''}><small>${k}</small>${html(view.word(k))}</button>`).join('')}</div>`

  // the loop: sheets of weights in memory, one layer of hardware, the way back
  function loop_picture({ n }) {
    const shown = Math.min(n.layers, 6), left = 2, box = { x: wide * 0.38, y: 62, w: wide * 0.5, h: 74 }, narrow = wide < 560
    const order = Array.from({ length: shown }, (_, i) => (n.layer + shown - 1 - i) % n.layers)                // the chosen one lies on top
    const sheets = order.map((k, i) => `<rect x="${left + 9 * i}" y="${60 + 9 * i}" width="${wide * 0.2}" height="44" rx="4" class="sheet${k === n.layer ? ' mine' : ''}"/>` + (k === n.layer ? words(left + 9 * i + wide * 0.1, 87 + 9 * i, `of layer ${k + 1}`, 'class="in"') : '')).join('')
    const back = `M${box.x + box.w - 20} ${box.y} V34 H${box.x + 20} V${box.y - 3}`, from = left + wide * 0.2 + 9 * (shown - 1)
    const text = words(left, 50, narrow ? 'weights' : 'weights, in memory', 'class="name"') + words(box.x + box.w / 2, 92, 'one layer of hardware', 'class="in big"') + words(box.x + box.w / 2, 112, `${n.kernels.length} kernels`, 'class="in"') + words(box.x + box.w / 2, 26, `${n.layers - 1} time${n.layers > 2 ? 's' : ''} back`, 'class="in"')
    const arrows = `<path d="${back}" class="way" marker-end="url(#tip)"/><path d="M${from + 2} 99 H${box.x - 4}" class="way" marker-end="url(#tip)"/><path d="M${box.x + box.w * 0.2} 182 V${box.y + box.h + 4}" class="way" marker-end="url(#tip)"/><path d="M${box.x + box.w * 0.8} ${box.y + box.h} V178" class="way" marker-end="url(#tip)"/>`
    return svg(200, `${n.layers} sheets of weights, one layer of hardware, its output led back to its input`, '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 Z" class="tip"/></marker></defs>' +
      sheets + `<rect x="${box.x}" y="${box.y}" width="${box.w}" height="${box.h}" rx="8" class="sheet"/>` + text + arrows + words(box.x + box.w * 0.2, 196, 'rows in', 'class="in"') + words(box.x + box.w * 0.8, 196, 'rows out', 'class="in"'))
  }
  function patch(w, from, size = 12) {
    const most = largest(w.data.subarray(0, 4096)), rows = Math.min(size, w.dims[0]), columns = Math.min(size, w.dims[1] - from)
    const cells = Array.from({ length: rows * columns }, (_, k) => (v => mark(8 * (k % columns), 8 * Math.floor(k / columns), 7.5, 7.5, v, `weight ${Math.floor(k / columns)}, ${from + k % columns}: ${v}`, shade(v, most)))(row(w, Math.floor(k / columns))[from + k % columns]))
    return `<svg viewBox="0 0 ${8 * columns} ${8 * rows}" width="${8 * columns}" height="${8 * rows}" role="img" aria-label="weights">${cells.join('')}</svg>`
  }
  const layers = view => view.n.weights.concat(view.n.weights.length ? [] : view.n.rows.int.slice(0, view.n.layers).map(() => null)).map((w, k) => {
    const r = view.stream(k), small = wide
    if (wide >= 560) wide -= 210
    const card = `<div class="layer"><button data-layer="${k}"${k === view.n.layer ? ' aria-pressed="true"' : ''}>layer ${k + 1}</button>${w ? `<span>${patch(w, view.n.sum.at)}</span>` : ''}<div>${lanes(`the row as it enters layer ${k + 1}`, [{ name: 'the row as it enters', of: `layer${k}`, values: r.float || r.ints, tint: r.float || r.said }])}</div></div>`
    wide = small
    return card
  }).join('')

  function cycles({ n }) {
    const all = summary.kernels, total = summary.cycles, state = [['busy', 'works'], ['starved_parameters', 'waits for weights'], ['starved_input', 'waits for rows'], ['blocked', 'is held up']]
    const bar = k => state.map(([key], i) => `<rect x="${(100 * state.slice(0, i).reduce((s, [b]) => s + k[b], 0) / total).toFixed(2)}" y="0" width="${(100 * k[key] / total).toFixed(2)}" height="10" class="is-${key}"/>`).join('')
    const key = state.map(([key, name]) => `<span><svg width="11" height="11" aria-hidden="true"><rect width="11" height="11" class="is-${key}"/></svg> ${name}</span>`).join(' ')
    tables.push({ head: ['kernel', ...state.map(s => s[1])], rows: all.map(k => [k.name, ...state.map(([key]) => k[key])]) })
    return `<p class="key">${key}</p><div class="cycles">` + all.map(k => {
      const made = kernels_of().find(x => x.name === k.name), node = n.kernels.find(x => x.value === made?.value)
      return `<div class="kernel"><div>${file_link(made ? 'rtl/' + made.module + '.v' : '', k.name)}<small>${html(node ? what(node) : '')}</small></div><svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="${html(k.name)}: ${k.busy} of ${total} cycles">${bar(k)}</svg><b data-v="${k.busy}">${grouped(k.busy)}</b></div>`
    }).join('') + '</div>'
  }

  // ---- where in the Verilog ----
  const kernels_of = () => JSON.parse(decode(files.get('manifest.json'))).kernels
  const file_link = (path, label) => files.has(path) ? `<button class="link" data-verilog="${html(path)}">${html(label)}</button>` : html(label)
  function kernel_link(n, value) {
    const k = kernels_of().find(x => x.value === value)
    return k ? file_link(`rtl/${k.module}.v`, k.name) : ''
  }
  const where = (n, values, names = []) => [...values.map(v => kernel_link(n, v)), ...names.map(f => files.has(`rtl/${f}.v`) ? file_link(`rtl/${f}.v`, f + '.v') : '')].filter(Boolean)

  // ---- the steps ----
  const root = n => Math.sqrt(n.int[n.q].dims[2] / n.heads)
  const before = { Gather: 'a table of words', Add: 'additions', LayerNormalization: 'a norm' }
  const unit = n => [...new Set([n.q, n.k, n.v].map(x => n.kernels.find(k => k.value === x)?.value || n.sum?.node))].filter(Boolean)
  const steps = [{
    title: 'A sentence is a row of numbers',
    text: ({ n, t, word }) => `A transformer reads ${n.ids.length === n.tokens ? `tokens: pieces of text, each of them a number` : 'pieces of its input, one after the other'}. These are ${n.tokens}, ` +
      (n.causal && n.ids.length === n.tokens && n.ids[0] === 1 ? 'a text that this model tells itself from token 1 on' : 'the first frame that the core’s test bench sends') + `. <b>Choose one</b>, here or above; the lesson follows it. Now it is number ${t}, <b>${html(word(t))}</b>.` +
      (n.words ? '' : ' <span class="hint">A trained model that tells stories: drop tests/models/stories260k-prompt.onnx and examples/tok512.bin, its words, on this page together, and the lesson is about it.</span>'),
    draw: chips, verilog: n => where(n, [], ['mlo_top']),
  }, {
    title: 'The token becomes a row',
    text: ({ n }) => `The host’s part comes first: ${[...new Set(n.before.map(o => before[o] || o))].join(', ') || 'what stands in front of the layers'}. What it hands over is a row of ${n.channels} floats for each token. The core knows integers only: each float is divided by one step and rounded. <b>These ${n.channels} integers of 16 bits enter the core</b>, and the rows of the other tokens behind them.` + (n.layer ? ` (You look at layer ${n.layer + 1}: its row came round the loop.)` : ''),
    draw: view => pair(`the row of token ${view.t}`, 'row', view.stream(view.n.layer)), verilog: n => where(n, [], ['mlo_core', 'mlo_entry']),
  }, {
    title: 'Three small rows: query, key, value',
    text: view => `The row is multiplied by three matrices. <b>q</b> says what this token looks for, <b>k</b> what it offers to be found by, <b>v</b> what it gives when it is found. They are cut into ${view.n.heads} heads, which work alike, each with ${view.width} channels; this is head ${view.h + 1}. Above: the floats. Below: the integers that the core has for the same numbers; colours show what they stand for` + (moved(view) ? ', as some channels count from a zero of their own. ' : '. ') + (view.q.turned ? '(q and k have been turned by the token’s place; the core keeps the two channels that turn together side by side.)' : ''),
    draw: view => pair('q', 'q', view.q) + pair('k', 'k', view.k) + pair('v', 'v', view.v) + in_full(view), verilog: n => where(n, unit(n), ['mlo_dots']),
  }, {
    title: 'Scores: whom does it look for?',
    text: view => `The query is multiplied with the key of <b>every token</b>, channel by channel, and summed: ${view.width} products, one score. A large score says: this one fits what I look for. The integers are exact sums of products of integers; they may lie higher or lower than the floats all together, which the next step does not notice.` + (view.n.causal ? ' (Pale: tokens that this one must not see; the next step hides them.)' : ''),
    draw: view => (view.steps ? bars(view, 'scores, floats', [{ name: 'q · k, floats', of: 'scores.float', values: view.steps[0].values, kind: 'plain' }], ahead(view)) : '') + bars(view, 'scores, integers', [{ name: 'q · k, integers', of: 'scores.int', values: view.scores, kind: 'whole' }], ahead(view)) +
      best(view, [...(view.steps ? [{ name: 'float', values: view.steps[0].values }] : []), { name: 'integer', values: view.scores, say: whole }]),
    verilog: n => where(n, [n.mixed], ['mlo_attention_score']),
  }, {
    title: 'Scale and mask',
    text: view => `Floats divide the score by √${view.width} = ${short(root(view.n))}${view.steps && view.steps.length < 2 ? ' (this model has done so before)' : ''}, so that it does not grow with the number of channels. ` + (view.n.causal ? `<b>Then the mask:</b> a token may look back, not ahead, so what comes behind token ${view.t} is hidden. ` : 'A mask could hide tokens, as those that fill a short sentence up; here all may be seen. ') +
      `The core does both at once: it asks only <b>how far a score lies below the largest</b>, in octaves. An octave lower is half of the weight.`,
    draw: view => (view.steps ? bars(view, 'scaled and masked, floats', [{ name: `what softmax takes, floats (${view.steps.slice(1).map(s => s.op).join(', ') || 'as it is'})`, of: 'scaled.float', values: view.steps.at(-1).values, kind: 'plain' }], { hidden: k => !view.seen(k), height: 120 }) : '') + octaves(view),
    verilog: n => where(n, [n.mixed], ['mlo_attention_max']),
  }, {
    title: 'Softmax: scores become shares',
    text: view => `Each distance becomes a weight, 2 to the power of minus its octaves: the largest score has ${Math.max(...view.ints)}, an octave below it is half of that. A table of powers of two does it in hardware, no exponential is computed. <b>Over their sum, ${grouped(view.sum)}, the weights are shares</b>: this is what floats call softmax, and here are both, side by side. Below, the whole head, a line for each token: click on another one.`,
    draw: view => bars(view, 'softmax', [...(view.probs ? [{ name: 'softmax, floats', of: 'softmax.float', values: view.probs, kind: 'plain' }] : []), { name: 'the core’s, weight / sum', of: 'softmax.int', values: view.part, kind: 'whole', say: k => `${view.ints[k]} / ${view.sum} = ${exact(view.part[k])}` }], { hidden: k => !view.seen(k) }) +
      '<div class="beside">' + best(view, [...(view.probs ? [{ name: 'float', values: view.probs }] : []), { name: 'integer', values: view.ints }, { name: 'share', values: view.part, say: percent }]) + (view.probs ? square(view, `head ${view.h + 1}: who looks (down) at whom (across)`, view.n.floats.probs) : '') + '</div>',
    verilog: n => where(n, [n.mixed], ['mlo_attention_softmax', 'mlo_exp2']),
  }, {
    title: 'A mixture of values',
    text: view => `Now each token gives its value, as much of it as its share says, and the sum is what this head found for token ${view.t}. The core sums integer weights times integer values and <b>divides by the sum of the weights once, at the end</b>, instead of rounding each share.`,
    draw: view => lanes('values of the tokens that count most', view.likely.slice(0, 4).map(k => (v => ({ name: `v of ${view.name(k)}, counts ${percent(view.weight[k])}`, of: 'value' + k, values: v.float || v.ints, tint: v.float || v.said }))(view.value(k)))) + pair('their mixture', 'mixed', view.mixed),
    verilog: n => where(n, [n.mixed], ['mlo_attention_mix', 'mlo_divide']),
  }, {
    title: 'Back into the stream',
    text: ({ n }) => `What the ${n.heads} heads found lies side by side and is multiplied by a matrix once more. <b>Then it is added to the row that came in</b>, which had waited in a FIFO: the layer does not replace the row, it corrects it.` + (behind(n)[0].some(k => k.op === 'LayerNorm') ? ' A norm brings its numbers back to an even size.' : ''),
    draw: view => through(view, behind(view.n)[0]), verilog: n => where(n, behind(n)[0].map(k => k.value)),
  }, {
    title: 'Each token for itself: the feed-forward part',
    text: ({ n }) => `Attention looked at others; what follows looks at this row alone. A matrix makes it ${behind(n)[1].length ? n.int[behind(n)[1][0].value].dims[2] : 'more'} channels wide, a curve bends each number (in hardware a table), a second matrix brings it back to ${n.channels}, and again it is added to what went past.`,
    draw: view => through(view, behind(view.n)[1]), verilog: n => where(n, behind(n)[1].map(k => k.value)),
  }, {
    title: 'The row leaves the layer',
    text: view => `This is the row as it came in, and as it leaves: in floats, and in the core. ${away(view)} The integers of this lesson are those of the Verilog, bit for bit.`,
    draw: view => pair(`token ${view.t}, into layer ${view.n.layer + 1}`, 'in', view.stream(view.n.layer)) + pair(`token ${view.t}, out of layer ${view.n.layer + 1}`, 'out', view.stream(view.n.layer + 1)), verilog: n => where(n, [n.result], ['mlo_core', 'mlo_exit']),
  }, {
    title: 'The next layer is the same hardware',
    text: ({ n }) => `A transformer is the same layer again and again, only with other weights. So the hardware is there <b>once</b>. When a row leaves, the loop leads it back to the entrance, and meanwhile the weights of the next layer have been read from memory: ${n.layers} layers, ${n.layers} times round. That is multi-layer offload, <b>MLO</b>. Press a layer and go back: all steps then show its numbers.`,
    draw: view => loop_picture(view) + layers(view), verilog: n => where(n, [], ['mlo_loop', 'mlo_loader', 'mlo_core']),
  }, {
    title: 'Who works when',
    text: () => `All kernels work at the same time, each on another token, like workers at a belt. A frame takes <b data-v="${summary.cycles}" data-of="cycles">${grouped(summary.cycles)}</b> cycles; this is how many of them each kernel works, and what it waits for otherwise. The one that works most sets the pace: give it more multipliers with the slider under <i>Folded</i>, and come back.`,
    draw: cycles, verilog: () => [],
  }]

  const ahead = view => ({ pale: k => !view.seen(k) })
  const moved = ({ n }) => [n.q, n.k, n.v].some(x => n.means[x] && largest([n.means[x].zero].flat()) > 0)
  function octaves(view) {
    const values = view.steps?.at(-1).values, top = values && Math.max(...values.filter((_, k) => view.seen(k)))
    const core = view.below.map(t => t / view.octave), float = values && values.map(v => Math.min((top - v) * Math.LOG2E, 64))
    return bars(view, 'octaves below the largest', [...(float ? [{ name: 'octaves below, floats', of: 'below.float', values: float, kind: 'plain' }] : []), { name: 'the core’s, t / ' + view.octave, of: 'below.int', values: core, kind: 'whole', say: k => `t = ${view.below[k]}, ${exact(core[k])} octaves` }], { hidden: k => !view.seen(k), height: 120 })
  }
  function away(view) {
    const out = view.stream(view.n.layer + 1)
    if (!out.float || !out.said) return ''
    const off = Math.max(...out.float.map((v, k) => Math.abs(v - out.said[k]))), most = largest(out.float)
    return `Of ${view.n.channels} numbers up to ${short(most)}, none is farther than ${short(off)} from its float.`
  }

  // ---- the frame around them ----
  const options = (n, label, chosen) => Array.from({ length: n }, (_, k) => `<option value="${k}"${k === chosen ? ' selected' : ''}>${html(String(label(k)))}</option>`).join('')
  function numbers_of(all) {
    if (!all.length) return ''
    const cell = v => typeof v === 'number' ? exact(v) : html(String(v ?? ''))
    return `<details><summary>all numbers, exact</summary>${all.map(t => `<div class="scroll"><table><tr>${t.head.map(h => `<th scope="col">${html(h)}</th>`).join('')}</tr>${t.rows.map(r => `<tr>${r.map(v => `<td>${cell(v)}</td>`).join('')}</tr>`).join('')}</table></div>`).join('')}</details>`
  }
  function article(view, k) {
    tables = []
    const s = steps[k], drawn = s.draw(view), links = s.verilog(view.n)
    return `<article><h2><small>${k + 1} of ${steps.length}</small> ${s.title}</h2><p>${s.text(view)}</p><figure>${drawn}</figure>${links.length ? `<p class="where">In the Verilog: ${links.join(' ')}</p>` : ''}${numbers_of(tables)}</article>`
  }
  function controls(view) {
    const { n } = view, line = steps.map((s, k) => `<button data-step="${k}" title="${s.title}" aria-label="step ${k + 1}: ${s.title}"${k === state.step ? ' aria-current="step"' : ''} class="${k <= state.step ? 'past' : ''}"></button>`).join('')
    return `<div class="bar"><label>token <select id="lesson-token">${options(n.tokens, view.name, state.token)}</select></label><label>head <select id="lesson-head">${options(n.heads, k => k + 1, state.head)}</select></label><label>layer <select id="lesson-layer">${options(n.layers, k => k + 1, state.layer)}</select></label>` +
      `<span class="steps"><button id="lesson-back" data-step="${state.step - 1}"${state.step ? '' : ' disabled'} title="arrow left">Back</button><button id="lesson-next" data-step="${state.step + 1}"${state.step < steps.length - 1 ? '' : ' disabled'} title="arrow right">Next</button></span></div><div class="line" role="group" aria-label="steps">${line}</div>`
  }

  const pane = () => $('lesson')
  // (a redraw takes the element away that has the focus: it goes back to the one of the same name)
  function draw(whole = false) {
    const { n } = state, focus = document.activeElement?.id
    if (!n || !files) return pane().innerHTML = `<article><p role="status">${html(state.wrong || 'The lesson begins as soon as the core is there.')}</p></article>`
    wide = whole ? 660 : Math.max(240, Math.min(720, pane().clientWidth - 32))
    const view = seen_by(n, state.token, state.head)
    pane().innerHTML = whole ? steps.map((_, k) => article(view, k)).join('') : controls(view) + article(view, state.step)
    if (focus?.startsWith('lesson')) ($(focus)?.disabled ? pane() : $(focus) || pane()).focus()
  }
  function go(step) {
    if (!state.n || step < 0 || step >= steps.length) return
    state.step = step
    draw()
    pane().scrollTop = 0
  }
  async function ask_for(layer) {
    const mine = state.asked = {}
    state.layer = layer
    try {
      const n = await ask('lesson', { layer })
      if (mine !== state.asked) return
      Object.assign(state, { token: n.causal && !state.n ? n.tokens >> 2 : Math.min(state.token, n.tokens - 1), n, wrong: '', head: Math.min(state.head, n.heads - 1) })
    } catch (e) {
      if (mine !== state.asked) return
      Object.assign(state, { n: null, wrong: e.message })
    }
    draw()
  }
  function set(what, value) {
    if (what === 'layer') return ask_for(value)
    state[what] = value
    draw()
  }

  return {
    state, draw,
    /** Another model: nothing is left of this one's. */
    forget() { Object.assign(state, { step: 0, token: 0, head: 0, layer: 0, n: null, asked: null, wrong: '' }) },
    /** The tab is shown, and there is a core. */
    show() {
      if (!state.asked) ask_for(state.layer)
      draw()
    },
    /** true: the key was the lesson's. */
    key(e) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key]
      if (step) go(state.step + step)
      return !!step
    },
    listen() {
      pane().onclick = e => {
        const of = e.target.closest('[data-step],[data-token],[data-layer],[data-verilog]')?.dataset
        if (!of) return
        if (of.step) go(Number(of.step))
        else if (of.token) set('token', Number(of.token))
        else if (of.layer) set('layer', Number(of.layer))
        else look(of.verilog)
      }
      pane().onchange = e => set(e.target.id.replace('lesson-', ''), Number(e.target.value))
      new ResizeObserver(() => { if (!pane().hidden && Math.min(720, pane().clientWidth - 32) !== wide) draw() }).observe(pane())
      addEventListener('beforeprint', () => { if (!pane().hidden) draw(true) })
      addEventListener('afterprint', () => { if (!pane().hidden) draw() })
    },
  }
})()
